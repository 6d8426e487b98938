use std::io;
use std::net::IpAddr;
use std::time::Duration;

use perfval_verdict::dynamo::worker_metrics::{ExpositionError, Scraped, read};
use perfval_verdict::workers::Silence;
use ureq::Agent;

/// A worker answers in milliseconds; one that does not within a second counts as silent for that second.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A worker's metrics are 15 to 60 KB.
const ANSWER_BYTES: u64 = 4 << 20;

/// Why a scrape brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum ScrapeError {
    /// No whole answer came.
    #[error("{0}")]
    Request(ureq::Error),
    /// The answer is not a worker's.
    #[error("{0}")]
    Answer(#[from] ExpositionError),
}

impl ScrapeError {
    /// How it counts.
    pub fn silence(&self) -> Silence {
        match self {
            Self::Request(ureq::Error::Timeout(_)) => Silence::TimedOut,
            Self::Request(ureq::Error::Io(error)) if error.kind() == io::ErrorKind::TimedOut => Silence::TimedOut,
            _ => Silence::Failed,
        }
    }
}

/// Asks one worker after the other second for its metrics.
pub struct Scraper {
    agent: Agent,
    url: String,
}

impl Scraper {
    pub fn new(address: IpAddr, port: u16) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            // A proxy of the environment is for the world outside, not for pods.
            .proxy(None)
            // A kept connection that the worker closed would look like a failure.
            .max_idle_connections(0)
            .build();
        Self {
            agent: config.into(),
            url: format!("http://{}/metrics", std::net::SocketAddr::new(address, port)),
        }
    }

    pub fn scrape(&self) -> Result<Scraped, ScrapeError> {
        let mut answer = self.agent.get(&self.url).call().map_err(ScrapeError::Request)?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES).lossy_utf8(true);
        let text = body.read_to_string().map_err(ScrapeError::Request)?;
        Ok(read(&text)?)
    }
}
