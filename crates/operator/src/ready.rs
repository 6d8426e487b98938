//! `ready`: reads from a running operator if it is ready, as `helm test` does. It needs no right in the cluster.

use std::thread;
use std::time::{Duration, Instant};

use ureq::Agent;

use crate::cli::ReadyArgs;

/// Time between two questions, and the longest that one may take.
const AGAIN: Duration = Duration::from_secs(1);
const ONE: Duration = Duration::from_secs(5);
/// Longest answer that is read: one line of why it is not ready.
const ANSWER_BYTES: u64 = 64 << 10;

/// The operator did not report that it is ready.
#[derive(Debug, thiserror::Error)]
#[error("{url} is not ready after {timeout} s: {last}")]
pub struct NotReady {
    /// URL of the request.
    pub url: String,
    /// Time of the attempts (seconds).
    pub timeout: u64,
    /// The last answer, or why there was none.
    pub last: String,
}

/// Repeats the request until the operator is ready, or the time is over. Returns its answer.
pub fn run(args: &ReadyArgs) -> Result<String, NotReady> {
    let config = Agent::config_builder()
        .timeout_global(Some(ONE))
        .http_status_as_error(false)
        // A proxy of the environment is for the world outside.
        .proxy(None)
        .max_redirects(0);
    let agent: Agent = config.build().into();
    let began = Instant::now();
    loop {
        let last = match ask(&agent, &args.url) {
            Ok(answer) => return Ok(format!("{answer}\n")),
            Err(refusal) => refusal,
        };
        if began.elapsed() + AGAIN > Duration::from_secs(args.timeout) {
            return Err(NotReady {
                url: args.url.clone(),
                timeout: args.timeout,
                last,
            });
        }
        thread::sleep(AGAIN);
    }
}

/// Requests the state. Returns the operator's text if it is ready, and fails with its text if it is not.
fn ask(agent: &Agent, url: &str) -> Result<String, String> {
    let mut response = agent.get(url).call().map_err(|error| error.to_string())?;
    let text = response
        .body_mut()
        .with_config()
        .limit(ANSWER_BYTES)
        .read_to_string()
        .map_err(|error| error.to_string())?;
    if response.status().is_success() {
        Ok(text)
    } else {
        Err(format!("{}: {text}", response.status()))
    }
}
