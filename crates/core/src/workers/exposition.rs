use super::Reading;

const IN_FLIGHT: &str = "dynamo_component_inflight_requests";
const STARTED: &str = "dynamo_component_requests_total";
const FINISHED: &str = "dynamo_component_request_duration_seconds_count";

/// vLLM's counter of generated tokens, and the one that Dynamo's mocker has in its place (one count per token).
const TOKENS: [&str; 2] = ["vllm:generation_tokens_total", "vllm:inter_token_latency_seconds_count"];

/// More than a process can have served; keeps sums of counters far from overflow.
const ABSURD: f64 = 1e15;

/// Why a worker's answer holds no counters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpositionError {
    /// Not a worker's metrics, or its endpoint is not registered yet.
    #[error("the worker's metrics have no `{0}` of dynamo_endpoint=\"generate\"")]
    Missing(&'static str),
    /// A counter that no counter can be.
    #[error("`{series}` of the worker is {value:?}, expected a finite number ≥ 0")]
    Number {
        /// Name of the series.
        series: String,
        /// The beginning of what is there.
        value: String,
    },
}

/// What a worker's `/metrics` says of its `generate` endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scraped {
    /// The `worker_id` label.
    pub worker_id: Option<String>,
    /// The counters, summed over the series of the endpoint.
    pub reading: Reading,
}

/// Reads a worker's `/metrics` (Prometheus text format), only the few series that are judged.
pub fn read(text: &str) -> Result<Scraped, ExpositionError> {
    let mut worker_id = None;
    let (mut in_flight, mut started, mut finished) = (None, None, None);
    let mut tokens = [None; 2];

    for line in text.lines() {
        let Some((name, labels, value)) = split(line) else {
            continue;
        };
        if let Some(index) = TOKENS.iter().position(|t| *t == name) {
            add(&mut tokens[index], name, value)?;
            continue;
        }
        let sum = match name {
            IN_FLIGHT => &mut in_flight,
            STARTED => &mut started,
            FINISHED => &mut finished,
            _ => continue,
        };
        // Other endpoints of the same process answer the router's own questions.
        if label(labels, "dynamo_endpoint") == Some("generate") {
            add(sum, name, value)?;
            worker_id = label(labels, "worker_id").map(|id| crate::aiperf::bounded(id, 40));
        }
    }
    let reading = Reading {
        in_flight: in_flight.ok_or(ExpositionError::Missing(IN_FLIGHT))?,
        started: started.ok_or(ExpositionError::Missing(STARTED))?,
        finished: finished.ok_or(ExpositionError::Missing(FINISHED))?,
        tokens: tokens[0].or(tokens[1]),
    };
    Ok(Scraped { worker_id, reading })
}

/// Name, labels and value of a sample line; `None` for comments and anything else.
fn split(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (series, labels, rest) = match line.split_once('{') {
        // No series of ours has a `}` inside a label value.
        Some((name, rest)) => rest.split_once('}').map(|(labels, rest)| (name, labels, rest))?,
        None => line.split_once(' ').map(|(name, rest)| (name, "", rest))?,
    };
    // A time stamp may follow the value.
    Some((series.trim(), labels, rest.split_whitespace().next()?))
}

/// The value of a label; a quoted text that merely looks like one does not count, because names start after a comma.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    labels.split("\",").find_map(|pair| {
        let (key, value) = pair.split_once("=\"")?;
        (key.trim() == name).then(|| value.strip_suffix('"').unwrap_or(value))
    })
}

fn add(sum: &mut Option<i64>, series: &str, value: &str) -> Result<(), ExpositionError> {
    let number: Option<f64> = value.parse().ok();
    let Some(number) = number.filter(|n| (0.0..=ABSURD).contains(n)) else {
        return Err(ExpositionError::Number {
            series: series.to_owned(),
            value: crate::aiperf::bounded(value, 40),
        });
    };
    #[allow(clippy::cast_possible_truncation)] // within ±1e15, where every whole double is an i64
    let whole = number as i64;
    *sum = Some(sum.unwrap_or(0) + whole);
    Ok(())
}
