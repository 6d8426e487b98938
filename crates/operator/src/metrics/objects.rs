//! Series of the objects as they are now. An object that is gone leaves no series behind.

use std::fmt;
use std::sync::Arc;

use kube::ResourceExt;
use perfval_api::{Leftovers, PerfValidation, PerfValidationSpec, PerfValidationStatus, Phase, Verdict};
use perfval_fleet::measurement::policy_of;
use perfval_run::status::phase_started_at;
use perfval_run::{machine, queue};
use perfval_sizing::holds_node;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};

use super::labels::InPhase;
use super::last::{LastNumbers, LastVerdict, lost_results, node};
use super::samples::{Samples, describe};
use super::series;

#[derive(Clone, Debug, EncodeLabelSet)]
struct Object {
    namespace: Arc<str>,
    name: Arc<str>,
}

#[derive(Clone, Debug, EncodeLabelSet)]
struct OnNode {
    namespace: Arc<str>,
    name: Arc<str>,
    node: Arc<str>,
}

#[derive(Debug, EncodeLabelSet)]
struct ObjectVerdict {
    namespace: Arc<str>,
    name: Arc<str>,
    node: Arc<str>,
    verdict: &'static str,
}

#[derive(Debug, EncodeLabelSet)]
struct SlowGpu {
    namespace: Arc<str>,
    name: Arc<str>,
    node: Arc<str>,
    gpu_uuid: String,
}

#[derive(Debug, EncodeLabelSet)]
struct At {
    namespace: Arc<str>,
    name: Arc<str>,
    phase: &'static str,
}

#[derive(Debug, EncodeLabelSet)]
struct Left {
    namespace: Arc<str>,
    name: Arc<str>,
    node: Arc<str>,
    state: &'static str,
}

/// Series of the objects, made for one scrape.
#[derive(Debug)]
pub(super) struct ObjectSeries {
    active: Samples<InPhase, i64>,
    queue_length: i64,
    /// Series of each object, unless they are switched off.
    each: Option<EachObject>,
}

#[derive(Debug)]
struct EachObject {
    throughput: Samples<OnNode, f64>,
    ttft_p99: Samples<OnNode, f64>,
    errors: Samples<OnNode, f64>,
    slowest_worker: Samples<OnNode, f64>,
    verdict: Samples<ObjectVerdict, i64>,
    verdict_time: Samples<OnNode, i64>,
    slow_gpu: Samples<SlowGpu, i64>,
    unsaved_results: Samples<OnNode, i64>,
    phase_since: Samples<At, i64>,
    phase_limit: Samples<At, i64>,
    held_gpus: Samples<Object, i64>,
    leftovers: Samples<Left, i64>,
}

impl ObjectSeries {
    /// `each`: each object has series of its own.
    pub(super) fn new(each: bool, objects: impl IntoIterator<Item = PerfValidation>) -> Self {
        let mut all = Self {
            active: Samples::new(&series::ACTIVE_RUNS),
            queue_length: 0,
            each: each.then(EachObject::new),
        };
        let mut active: Vec<(Phase, i64)> = active_phases().map(|phase| (phase, 0)).collect();
        for object in objects {
            let current = phase(object.status.as_ref());
            if let Some((_, count)) = active.iter_mut().find(|(phase, _)| *phase == current) {
                *count += 1;
            }
            let Some(status) = &object.status else { continue };
            all.queue_length += i64::from(queue::is_queued(status));
            if let Some(each) = &mut all.each {
                each.add(&object, status);
            }
        }
        for (phase, count) in active {
            all.active.add(InPhase { phase: phase.as_str() }, count);
        }
        all
    }
}

impl Collector for ObjectSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.active.encode(&mut encoder)?;
        describe(&series::QUEUE_LENGTH, &mut encoder, |mut length| {
            length.encode_gauge(&self.queue_length)
        })?;
        let Some(each) = &self.each else { return Ok(()) };
        each.throughput.encode(&mut encoder)?;
        each.ttft_p99.encode(&mut encoder)?;
        each.errors.encode(&mut encoder)?;
        each.slowest_worker.encode(&mut encoder)?;
        each.verdict.encode(&mut encoder)?;
        each.verdict_time.encode(&mut encoder)?;
        each.slow_gpu.encode(&mut encoder)?;
        each.unsaved_results.encode(&mut encoder)?;
        each.phase_since.encode(&mut encoder)?;
        each.phase_limit.encode(&mut encoder)?;
        each.held_gpus.encode(&mut encoder)?;
        each.leftovers.encode(&mut encoder)
    }
}

impl EachObject {
    fn new() -> Self {
        Self {
            throughput: Samples::new(&series::LAST_THROUGHPUT),
            ttft_p99: Samples::new(&series::LAST_TTFT_P99),
            errors: Samples::new(&series::LAST_ERROR),
            slowest_worker: Samples::new(&series::LAST_SLOWEST_WORKER),
            verdict: Samples::new(&series::LAST_VERDICT),
            verdict_time: Samples::new(&series::LAST_VERDICT_TIME),
            slow_gpu: Samples::new(&series::SLOW_GPU),
            unsaved_results: Samples::new(&series::UNSAVED_RESULTS),
            phase_since: Samples::new(&series::PHASE_SINCE),
            phase_limit: Samples::new(&series::PHASE_LIMIT),
            held_gpus: Samples::new(&series::HELD_GPUS),
            leftovers: Samples::new(&series::LEFTOVERS),
        }
    }

    fn add(&mut self, object: &PerfValidation, status: &PerfValidationStatus) {
        let of = Object {
            namespace: object.namespace().unwrap_or_default().into(),
            name: object.name_any().into(),
        };
        if lost_results(status) {
            self.unsaved_results.add(of.on(node(status)), 1);
        }
        // A policy keeps several old ones of a node, and the node's own series show the newest. They do not show a run that
        // could not be judged.
        let is_unjudged = matches!(status.verdict, Some(Verdict::Error | Verdict::Inconclusive));
        if policy_of(&object.metadata).is_none() || is_unjudged {
            self.add_results(&of, status);
        }
        self.add_state(&of, &object.spec, status);
    }

    /// Results of the last run that has some.
    fn add_results(&mut self, of: &Object, status: &PerfValidationStatus) {
        let last = LastNumbers::from_status(status);
        let on = of.on(last.node);
        for (series, value) in [
            (&mut self.throughput, last.throughput),
            (
                &mut self.ttft_p99,
                last.ttft_p99_ms.map(|milliseconds| milliseconds / 1000.0),
            ),
            (&mut self.errors, last.error_percent.map(|percent| percent / 100.0)),
            (
                &mut self.slowest_worker,
                last.slowest_worker_percent.map(|percent| percent / 100.0),
            ),
        ] {
            if let Some(value) = value {
                series.add(on.clone(), value);
            }
        }
        let Some(judged) = LastVerdict::from_status(status) else {
            return;
        };
        let on = of.on(judged.node);
        if let Some(at) = judged.at {
            self.verdict_time.add(on.clone(), at.timestamp());
        }
        for gpu_uuid in judged.slow_gpus {
            let OnNode { namespace, name, node } = on.clone();
            let gpu = SlowGpu {
                namespace,
                name,
                node,
                gpu_uuid,
            };
            self.slow_gpu.add(gpu, 1);
        }
        let OnNode { namespace, name, node } = on;
        let judged = ObjectVerdict {
            namespace,
            name,
            node,
            verdict: judged.verdict.as_str(),
        };
        self.verdict.add(judged, 1);
    }

    /// State of the current run.
    fn add_state(&mut self, of: &Object, spec: &PerfValidationSpec, status: &PerfValidationStatus) {
        let plan = status.placement.as_ref().filter(|_| holds_node(status));
        self.held_gpus.add(of.clone(), plan.map_or(0, |plan| plan.gpus));
        if let Some(leftovers) = status.state.leftovers {
            let OnNode { namespace, name, node } = of.on(node(status));
            let left = Left {
                namespace,
                name,
                node,
                state: match leftovers {
                    Leftovers::Kept => "Kept",
                    Leftovers::Overdue => "Overdue",
                },
            };
            self.leftovers.add(left, 1);
        }
        let current = phase(Some(status));
        let Some(since) = phase_started_at(status).filter(|_| !current.is_over()) else {
            return;
        };
        let at = || At {
            namespace: of.namespace.clone(),
            name: of.name.clone(),
            phase: current.as_str(),
        };
        self.phase_since.add(at(), since.timestamp());
        if let Some(limit) = machine::phase_ends_by(spec, status) {
            self.phase_limit.add(at(), limit.timestamp());
        }
    }
}

impl Object {
    fn on(&self, node: String) -> OnNode {
        OnNode {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            node: node.into(),
        }
    }
}

/// Phases of a run that is not over.
pub(super) fn active_phases() -> impl Iterator<Item = Phase> {
    Phase::ALL.iter().copied().filter(|phase| !phase.is_over())
}

/// Phase of an object; an object without status is Pending.
fn phase(status: Option<&PerfValidationStatus>) -> Phase {
    status.and_then(|status| status.phase).unwrap_or(Phase::Pending)
}
