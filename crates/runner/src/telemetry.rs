use std::io::BufReader;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use perfval_verdict::gpus::Recorder;
use perfval_verdict::gpus::dcgm::{PageError, ScrapedGpu, read};
use ureq::Agent;

/// Time-out of a page. The exporter answers from memory; without an answer in this time there is no page for this
/// second.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Reads the page of the node's DCGM exporter once a second, until it is stopped.
pub struct GpuSampler {
    stop: Sender<()>,
    thread: JoinHandle<Recorder>,
}

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

impl GpuSampler {
    /// Starts reading; seconds are counted from now, as those of the workers are. Pods of other namespaces than this
    /// one are counted, but their names are not recorded.
    pub fn start(url: &str, namespace: &str) -> Self {
        let (stop, stopped) = channel();
        let (url, mut recorder) = (url.to_owned(), Recorder::new(namespace));
        let started = Instant::now();
        let thread = thread::spawn(move || {
            let agent = agent();
            loop {
                let second = started.elapsed().as_secs();
                match page(&agent, &url) {
                    Ok(gpus) => recorder.add(i64::try_from(second).unwrap_or(i64::MAX), gpus),
                    Err(error) => recorder.failed(&error.to_string()),
                }
                // A second that the exporter took for its answer is left out.
                let next = started + Duration::from_secs(started.elapsed().as_secs() + 1);
                let wait = next.saturating_duration_since(Instant::now());
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return recorder;
                }
            }
        });
        Self { stop, thread }
    }

    /// Stops, and waits for a page under way.
    pub fn stop(self) -> Recorder {
        drop(self.stop);
        // A thread that panicked leaves no samples, which is no evidence of anything.
        self.thread.join().unwrap_or_default()
    }
}

fn agent() -> Agent {
    Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        // A proxy of the environment is for the world outside, not for pods.
        .proxy(None)
        .max_redirects(0)
        .max_idle_connections(0)
        .build()
        .into()
}

fn page(agent: &Agent, url: &str) -> Result<Vec<ScrapedGpu>, Failed> {
    let answer = agent.get(url).call()?;
    if answer.status() != 200 {
        return Err(Failed::Status(answer.status().as_u16()));
    }
    Ok(read(BufReader::new(answer.into_body().into_reader()))?)
}
