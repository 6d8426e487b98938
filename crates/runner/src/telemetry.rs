use std::io::BufReader;
use std::time::{Duration, Instant};

use perfval_verdict::gpus::Recorder;
use perfval_verdict::gpus::dcgm::{PageError, ScrapedGpu, read};
use ureq::Agent;

use crate::scrape::agent;
use crate::ticker::Ticker;

/// Time-out of a page. The exporter answers from memory; without an answer in this time there is no page for this
/// second.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Reason why a page could not be read.
#[derive(Debug, thiserror::Error)]
enum Failed {
    /// No answer came.
    #[error("{0}")]
    Request(#[from] ureq::Error),
    /// Another answer than a page: a redirect is not followed.
    #[error("the exporter answered {0}")]
    Status(u16),
    /// The answer is no page of metrics.
    #[error("{0}")]
    Page(#[from] PageError),
}

/// Starts reading the page of the node's DCGM exporter; seconds are counted from now, as those of the workers are. Pods of other
/// namespaces than this one are counted, but their names are not recorded.
pub fn start(url: &str, namespace: &str) -> Ticker<Recorder> {
    let (url, agent) = (url.to_owned(), agent(TIMEOUT));
    let read = move |recorder: &mut Recorder, second| match page(&agent, &url) {
        Ok(gpus) => recorder.add(second, gpus),
        Err(error) => recorder.failed(&error.to_string()),
    };
    Ticker::start(Instant::now(), Recorder::new(namespace), read)
}

fn page(agent: &Agent, url: &str) -> Result<Vec<ScrapedGpu>, Failed> {
    let answer = agent.get(url).call()?;
    if answer.status() != 200 {
        return Err(Failed::Status(answer.status().as_u16()));
    }
    Ok(read(BufReader::new(answer.into_body().into_reader()))?)
}
