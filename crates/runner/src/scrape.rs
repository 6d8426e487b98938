use std::io::{self, BufRead as _, BufReader, Read as _};
use std::net::IpAddr;
use std::time::Duration;

use perfval_verdict::dynamo::worker_metrics::{ExpositionError, Page};
use perfval_verdict::workers::{Reading, Silence};
use ureq::Agent;

/// Time-out of an answer. Healthy vLLM workers at 20,000 tokens/s took up to 1.8 s for it (H200).
const TIMEOUT: Duration = Duration::from_secs(5);

/// Largest page that is read; a vLLM worker's has 113 KB.
const PAGE_BYTES: u64 = 4 << 20;
/// Longest line that is read; the longest of a vLLM worker has 0.4 KB. A longer line has no counter that is read
/// here.
const LINE_BYTES: u64 = 16 << 10;

/// Reason why a scrape brought no counters.
#[derive(Debug, thiserror::Error)]
pub enum ScrapeError {
    /// No complete answer came in time.
    #[error("{0}")]
    Request(ureq::Error),
    /// Another answer than a page: a redirect is not followed.
    #[error("the worker answered {0}")]
    Status(u16),
    /// The answer is not a worker's.
    #[error("{0}")]
    Answer(#[from] ExpositionError),
}

impl ScrapeError {
    /// Returns `TimedOut` if no whole answer came in time, and else `Failed`.
    pub fn silence(&self) -> Silence {
        match self {
            Self::Request(ureq::Error::Timeout(_)) => Silence::TimedOut,
            Self::Request(ureq::Error::Io(error)) if error.kind() == io::ErrorKind::TimedOut => Silence::TimedOut,
            _ => Silence::Failed,
        }
    }
}

/// Client for pages in the cluster.
pub fn agent(timeout: Duration) -> Agent {
    Agent::config_builder()
        .timeout_global(Some(timeout))
        // A proxy of the environment is for the world outside, not for pods.
        .proxy(None)
        // No redirects: the scrape stays at its own port.
        .max_redirects(0)
        // A kept connection that the other side closed would look like a failure.
        .max_idle_connections(0)
        .build()
        .into()
}

/// Reader of one worker's metrics.
pub struct Scraper {
    agent: Agent,
    url: String,
}

impl Scraper {
    pub fn new(address: IpAddr, port: u16) -> Self {
        Self {
            agent: agent(TIMEOUT),
            url: format!("http://{}/metrics", std::net::SocketAddr::new(address, port)),
        }
    }

    /// Reads the counters of one worker. Fails after 5 s, or if the page has more than 4 MiB.
    pub fn scrape(&self) -> Result<Reading, ScrapeError> {
        let mut answer = self.agent.get(&self.url).call().map_err(ScrapeError::Request)?;
        if answer.status() != 200 {
            return Err(ScrapeError::Status(answer.status().as_u16()));
        }
        let body = answer.body_mut().with_config().limit(PAGE_BYTES).reader();
        let mut lines = BufReader::new(body);
        let (mut page, mut line, mut begun) = (Page::default(), Vec::new(), false);
        loop {
            line.clear();
            let read = lines.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line);
            // A time-out within the page is hidden in an `io::Error`.
            if read.map_err(|error| ScrapeError::Request(error.into()))? == 0 {
                return Ok(page.finish()?);
            }
            let ends = line.ends_with(b"\n");
            // Half a line may hold half a number.
            if ends && !begun {
                page.line(&String::from_utf8_lossy(&line));
            }
            begun = !ends;
        }
    }
}
