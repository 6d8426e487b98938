//! Reader of a worker's own metrics.

use std::collections::BTreeSet;

use perfval_api::text::cut;

use crate::exposition::{self, ExpositionLine};
use crate::number::MOST;
use crate::workers::{Engine, Reading};

const IN_FLIGHT: &str = "dynamo_component_inflight_requests";
const STARTED: &str = "dynamo_component_requests_total";
const FINISHED: &str = "dynamo_component_request_duration_seconds_count";

/// Reason why a worker's answer holds no counters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // each text shows what the fields are
pub enum ExpositionError {
    /// Not a worker's metrics, or its endpoint is not registered yet.
    #[error("the worker's metrics have no `{0}` of dynamo_endpoint=\"generate\"")]
    Missing(&'static str),
    /// A counter that no counter can be.
    #[error("`{series}` of the worker is {value:?}, expected a finite number ≥ 0")]
    Number { series: String, value: String },
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
    /// Engines with estimates per GPU: one for each data-parallel rank of the worker.
    engines: BTreeSet<String>,
}

impl Page {
    /// Takes the next line.
    pub fn line(&mut self, line: &str) {
        let line = line.trim();
        let name = exposition::name(line);
        let sample = || ExpositionLine::read(&line[name.len()..]);
        if self.add_engine(name, sample) || !name.starts_with("dynamo_component_") {
            return;
        }
        // Other endpoints of the same process answer the router's own questions.
        if let Some(sample) = sample().filter(|sample| sample.label("dynamo_endpoint") == Some("generate")) {
            self.add_endpoint(name, &sample);
        }
    }

    /// Counters of vLLM, and where a request can wait before the engine runs it: Dynamo's work queue, its request queue
    /// (1.6) and vLLM's. Dynamo's mocker has some of them under the same names.
    fn add_engine<'a>(&mut self, name: &str, sample: impl Fn() -> Option<ExpositionLine<'a>>) -> bool {
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
            "vllm:estimated_flops_per_gpu_total" => (&mut engine.gflop, 1e-9),
            "vllm:estimated_read_bytes_per_gpu_total" | "vllm:estimated_write_bytes_per_gpu_total" => {
                (&mut engine.moved_mb, 1e-6)
            }
            _ => return false,
        };
        let Some(sample) = sample() else { return true };
        if let Some(engine) = sample.label("engine").filter(|_| name.contains("_per_gpu_")) {
            self.engines.insert(engine.to_owned());
        }
        add(sum, sample.number(scale));
        true
    }

    fn add_endpoint(&mut self, name: &str, sample: &ExpositionLine) {
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
                value: cut(sample.value, 40),
            });
        }
        add(sum, number);
    }

    /// Counters of the whole page.
    pub fn finish(self) -> Result<Reading, ExpositionError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let engines = i64::try_from(self.engines.len()).unwrap_or(i64::MAX).max(1);
        let per_gpu = |sum: Option<i64>| sum.map(|sum| sum / engines);
        let engine = self.rest.engine;
        Ok(Reading {
            in_flight: self.in_flight.ok_or(ExpositionError::Missing(IN_FLIGHT))?,
            started: self.started.ok_or(ExpositionError::Missing(STARTED))?,
            finished: self.finished.ok_or(ExpositionError::Missing(FINISHED))?,
            // The mocker counts one gap per token.
            tokens: self.generated.or(engine.gaps),
            engine: Engine {
                gflop: per_gpu(engine.gflop),
                moved_mb: per_gpu(engine.moved_mb),
                ..engine
            },
            ..self.rest
        })
    }
}

fn add(sum: &mut Option<i64>, number: Option<i64>) {
    if let Some(number) = number {
        *sum = Some((sum.unwrap_or(0) + number).min(MOST));
    }
}
