use std::io::BufReader;
use std::time::{Duration, Instant};

use perfval_verdict::gpus::Recorder;
use perfval_verdict::gpus::dcgm::{ScrapedGpu, read};
use ureq::Agent;

use crate::scrape::agent;
use crate::ticker::Ticker;

/// Time-out of a page. The exporter answers from memory; without an answer in this time there is no page for this
/// second.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Starts reading the page of the node's DCGM exporter. Seconds are counted from now. A page belongs to the second of its request, up
/// to 2 s before it arrived; a worker's page belongs to the second in which it arrived. Pods in other namespaces are
/// counted, but their names are not recorded.
pub fn start(url: &str, namespace: &str) -> Ticker<Recorder> {
    let (url, agent) = (url.to_owned(), agent(TIMEOUT));
    let read = move |recorder: &mut Recorder, second| match page(&agent, &url) {
        Ok(gpus) => recorder.add(second, gpus),
        Err(error) => recorder.failed(&error),
    };
    Ticker::start(Instant::now(), Recorder::new(namespace), read)
}

fn page(agent: &Agent, url: &str) -> Result<Vec<ScrapedGpu>, String> {
    let answer = agent.get(url).call().map_err(|error| error.to_string())?;
    // A redirect is not followed.
    if answer.status() != 200 {
        return Err(format!("the exporter answered {}", answer.status().as_u16()));
    }
    read(BufReader::new(answer.into_body().into_reader())).map_err(|error| error.to_string())
}
