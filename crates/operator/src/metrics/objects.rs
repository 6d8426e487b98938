//! Series of the objects as they are now. An object that is gone leaves no series behind.

use std::sync::atomic::AtomicU64;

use kube::ResourceExt;
use perfval_api::{Leftovers, PerfValidation, PerfValidationSpec, PerfValidationStatus, Phase, Verdict};
use perfval_fleet::measurement::policy_of;
use perfval_run::status::phase_started_at;
use perfval_run::{machine, queue};
use perfval_sizing::holds_node;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::InPhase;
use super::last::{LastNumbers, LastVerdict, lost_results, node};
use super::series;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Object {
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OnNode {
    namespace: String,
    name: String,
    node: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Judged {
    namespace: String,
    name: String,
    node: String,
    verdict: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SlowGpu {
    namespace: String,
    name: String,
    node: String,
    gpu_uuid: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct At {
    namespace: String,
    name: String,
    phase: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Left {
    namespace: String,
    name: String,
    node: String,
    state: &'static str,
}

type Measured = Family<OnNode, Gauge<f64, AtomicU64>>;

/// Series that are renewed for each scrape.
#[derive(Default)]
pub(super) struct ObjectSeries {
    active: Family<InPhase, Gauge>,
    queue_length: Gauge,
    throughput: Measured,
    ttft_p99: Measured,
    errors: Measured,
    slowest_worker: Measured,
    verdict: Family<Judged, Gauge>,
    verdict_time: Family<OnNode, Gauge>,
    slow_gpu: Family<SlowGpu, Gauge>,
    unsaved_results: Family<OnNode, Gauge>,
    phase_since: Family<At, Gauge>,
    phase_limit: Family<At, Gauge>,
    held_gpus: Family<Object, Gauge>,
    leftovers: Family<Left, Gauge>,
}

impl ObjectSeries {
    /// Those of all objects together, and of each one unless that is switched off.
    pub(super) fn register(registry: &mut Registry, each: bool) -> Self {
        let all = Self::default();
        series::ACTIVE_RUNS.register(registry, all.active.clone());
        series::QUEUE_LENGTH.register(registry, all.queue_length.clone());
        if each {
            series::LAST_THROUGHPUT.register(registry, all.throughput.clone());
            series::LAST_TTFT_P99.register(registry, all.ttft_p99.clone());
            series::LAST_ERROR.register(registry, all.errors.clone());
            series::LAST_SLOWEST_WORKER.register(registry, all.slowest_worker.clone());
            series::LAST_VERDICT.register(registry, all.verdict.clone());
            series::LAST_VERDICT_TIME.register(registry, all.verdict_time.clone());
            series::SLOW_GPU.register(registry, all.slow_gpu.clone());
            series::UNSAVED_RESULTS.register(registry, all.unsaved_results.clone());
            series::PHASE_SINCE.register(registry, all.phase_since.clone());
            series::PHASE_LIMIT.register(registry, all.phase_limit.clone());
            series::HELD_GPUS.register(registry, all.held_gpus.clone());
            series::LEFTOVERS.register(registry, all.leftovers.clone());
        }
        all
    }

    /// Replaces what the last scrape showed. One scrape at a time.
    pub(super) fn set(&self, objects: impl IntoIterator<Item = PerfValidation>) {
        self.clear();
        for phase in active_phases() {
            self.active(phase).set(0);
        }
        self.queue_length.set(0);
        for object in objects {
            let current = phase(object.status.as_ref());
            if !current.is_over() {
                self.active(current).inc();
            }
            let Some(status) = &object.status else { continue };
            if queue::is_queued(status) {
                self.queue_length.inc();
            }
            let of = Object {
                namespace: object.namespace().unwrap_or_default(),
                name: object.name_any(),
            };
            if lost_results(status) {
                let of = OnNode {
                    namespace: of.namespace.clone(),
                    name: of.name.clone(),
                    node: node(status),
                };
                self.unsaved_results.get_or_create(&of).set(1);
            }
            // A policy keeps several old ones of a node, and the node's own series show the newest. They do not show a run that
            // could not be judged.
            let is_unjudged = matches!(status.verdict, Some(Verdict::Error | Verdict::Inconclusive));
            if policy_of(&object.metadata).is_none() || is_unjudged {
                self.set_results(&of, status);
            }
            self.set_state(&of, &object.spec, status);
        }
    }

    fn active(&self, phase: Phase) -> Gauge {
        self.active.get_or_create_owned(&InPhase { phase: phase.as_str() })
    }

    fn clear(&self) {
        self.throughput.clear();
        self.ttft_p99.clear();
        self.errors.clear();
        self.slowest_worker.clear();
        self.verdict.clear();
        self.verdict_time.clear();
        self.slow_gpu.clear();
        self.unsaved_results.clear();
        self.phase_since.clear();
        self.phase_limit.clear();
        self.held_gpus.clear();
        self.leftovers.clear();
    }

    /// Results of the last run that has some.
    fn set_results(&self, of: &Object, status: &PerfValidationStatus) {
        let on = |node: &str| OnNode {
            namespace: of.namespace.clone(),
            name: of.name.clone(),
            node: node.to_owned(),
        };
        let last = LastNumbers::from_status(status);
        for (series, value) in [
            (&self.throughput, last.throughput),
            (
                &self.ttft_p99,
                last.ttft_p99_ms.map(|milliseconds| milliseconds / 1000.0),
            ),
            (&self.errors, last.error_percent.map(|percent| percent / 100.0)),
            (
                &self.slowest_worker,
                last.slowest_worker_percent.map(|percent| percent / 100.0),
            ),
        ] {
            if let Some(value) = value {
                series.get_or_create(&on(&last.node)).set(value);
            }
        }
        let Some(judged) = LastVerdict::from_status(status) else {
            return;
        };
        let OnNode { namespace, name, node } = on(&judged.node);
        let verdict = judged.verdict.as_str();
        for gpu_uuid in judged.slow_gpus {
            let (namespace, name, node) = (namespace.clone(), name.clone(), node.clone());
            let gpu = SlowGpu {
                namespace,
                name,
                node,
                gpu_uuid,
            };
            self.slow_gpu.get_or_create(&gpu).set(1);
        }
        if let Some(at) = judged.at {
            self.verdict_time.get_or_create(&on(&judged.node)).set(at.timestamp());
        }
        let judged = Judged {
            namespace,
            name,
            node,
            verdict,
        };
        self.verdict.get_or_create(&judged).set(1);
    }

    /// State of the current run.
    fn set_state(&self, of: &Object, spec: &PerfValidationSpec, status: &PerfValidationStatus) {
        let plan = status.placement.as_ref().filter(|_| holds_node(status));
        self.held_gpus.get_or_create(of).set(plan.map_or(0, |plan| plan.gpus));
        let Object { namespace, name } = of.clone();
        if let Some(leftovers) = status.state.leftovers {
            let left = Left {
                namespace: namespace.clone(),
                name: name.clone(),
                node: node(status),
                state: match leftovers {
                    Leftovers::Kept => "Kept",
                    Leftovers::Overdue => "Overdue",
                },
            };
            self.leftovers.get_or_create(&left).set(1);
        }
        let current = phase(Some(status));
        let Some(since) = phase_started_at(status).filter(|_| !current.is_over()) else {
            return;
        };
        let at = At {
            namespace,
            name,
            phase: current.as_str(),
        };
        self.phase_since.get_or_create(&at).set(since.timestamp());
        if let Some(limit) = machine::phase_ends_by(spec, status) {
            self.phase_limit.get_or_create(&at).set(limit.timestamp());
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
