//! Reader of a worker's own metrics.

use crate::exposition::{self, Sample};
use crate::number::MOST;
use crate::workers::Reading;

const IN_FLIGHT: &str = "dynamo_component_inflight_requests";
const STARTED: &str = "dynamo_component_requests_total";
const FINISHED: &str = "dynamo_component_request_duration_seconds_count";

/// Reason why a worker's answer holds no counters.
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
        /// The beginning of the unreadable value.
        value: String,
    },
}

/// Reads a whole page.
pub fn read(text: &str) -> Result<Reading, ExpositionError> {
    let mut page = Page::default();
    text.lines().for_each(|line| page.line(line));
    page.finish()
}

/// A page (Prometheus text format) that is read line by line as it arrives: a vLLM worker's page has 113 KB, and
/// about twenty lines of it are judged. The three series that every version has must be there; of the others, those
/// that are missing or no number are left out.
#[derive(Debug, Default)]
pub struct Page {
    wrong: Option<ExpositionError>,
    in_flight: Option<i64>,
    started: Option<i64>,
    finished: Option<i64>,
    /// Everything that may be absent.
    rest: Reading,
    /// Tokens by vLLM's own counter, which Dynamo's mocker lacks.
    generated: Option<i64>,
    /// The share of the KV cache in use by its name before vLLM 0.10.
    old_kv_percent: Option<i64>,
}

impl Page {
    /// Takes the next line.
    pub fn line(&mut self, line: &str) {
        let line = line.trim();
        let name = exposition::name(line);
        let sample = || Sample::read(&line[name.len()..]);
        if self.add_engine(name, |scale| sample()?.number(scale)) || !name.starts_with("dynamo_component_") {
            return;
        }
        // Other endpoints of the same process answer the router's own questions.
        if let Some(sample) = sample().filter(|sample| sample.label("dynamo_endpoint") == Some("generate")) {
            self.add_endpoint(name, &sample);
        }
    }

    /// Counters of vLLM, and where a request can wait before the engine runs it: Dynamo's work queue, its request queue
    /// (1.6) and vLLM's. Dynamo's mocker has some of them under the same names.
    fn add_engine(&mut self, name: &str, number: impl Fn(f64) -> Option<i64>) -> bool {
        let engine = &mut self.rest.engine;
        let (sum, scale) = match name {
            "dynamo_work_handler_queue_depth" | "dynamo_request_queue" | "vllm:num_requests_waiting" => {
                (&mut self.rest.waiting, 1.0)
            }
            "vllm:generation_tokens_total" => (&mut self.generated, 1.0),
            "vllm:inter_token_latency_seconds_count" => (&mut engine.gaps, 1.0),
            "vllm:inter_token_latency_seconds_sum" => (&mut engine.gap_us, 1e6),
            "vllm:iteration_tokens_total_count" => (&mut engine.steps, 1.0),
            "vllm:request_prefill_time_seconds_sum" => (&mut engine.prefill_ms, 1e3),
            "vllm:request_queue_time_seconds_sum" => (&mut engine.queue_ms, 1e3),
            "vllm:prompt_tokens_total" => (&mut engine.prompt_tokens, 1.0),
            "vllm:prefix_cache_hits_total" => (&mut engine.cached_tokens, 1.0),
            "vllm:num_preemptions_total" => (&mut engine.preemptions, 1.0),
            "vllm:estimated_flops_per_gpu_total" => (&mut engine.gflop, 1e-9),
            "vllm:estimated_read_bytes_per_gpu_total" | "vllm:estimated_write_bytes_per_gpu_total" => {
                (&mut engine.moved_mb, 1e-6)
            }
            "vllm:kv_cache_usage_perc" => return highest(&mut self.rest.kv_percent, number(100.0)),
            "vllm:gpu_cache_usage_perc" => return highest(&mut self.old_kv_percent, number(100.0)),
            _ => return false,
        };
        add(sum, number(scale));
        true
    }

    fn add_endpoint(&mut self, name: &str, sample: &Sample) {
        let sum = match name {
            "dynamo_component_response_bytes_total" => return add(&mut self.rest.bytes, sample.number(1.0)),
            "dynamo_component_request_duration_seconds_sum" => {
                return add(&mut self.rest.busy_ms, sample.number(1000.0));
            }
            IN_FLIGHT => &mut self.in_flight,
            STARTED => &mut self.started,
            FINISHED => &mut self.finished,
            _ => return,
        };
        let number = sample.number(1.0);
        if number.is_none() {
            self.wrong.get_or_insert_with(|| ExpositionError::Number {
                series: name.to_owned(),
                value: crate::aiperf::beginning(sample.value, 40),
            });
        }
        add(sum, number);
    }

    /// Counters of the whole page.
    pub fn finish(self) -> Result<Reading, ExpositionError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        Ok(Reading {
            in_flight: self.in_flight.ok_or(ExpositionError::Missing(IN_FLIGHT))?,
            started: self.started.ok_or(ExpositionError::Missing(STARTED))?,
            finished: self.finished.ok_or(ExpositionError::Missing(FINISHED))?,
            // The mocker counts one gap per token.
            tokens: self.generated.or(self.rest.engine.gaps),
            kv_percent: self.rest.kv_percent.or(self.old_kv_percent),
            ..self.rest
        })
    }
}

fn highest(most: &mut Option<i64>, number: Option<i64>) -> bool {
    *most = (*most).max(number);
    true
}

fn add(sum: &mut Option<i64>, number: Option<i64>) {
    if let Some(number) = number {
        *sum = Some((sum.unwrap_or(0) + number).min(MOST));
    }
}
