//! What a scrape shows of the objects as they are now. An object that is gone leaves no series behind.

use std::sync::atomic::AtomicU64;

use kube::ResourceExt;
use perfval_api::{PerfValidation, PerfValidationStatus, Phase};
use perfval_run::queue;
use perfval_sizing::holds_node;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::InPhase;
use super::series;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Object {
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Judged {
    namespace: String,
    name: String,
    verdict: &'static str,
}

type Measured = Family<Object, Gauge<f64, AtomicU64>>;

/// Series that are made anew for each scrape.
pub(super) struct ObjectSeries {
    active: Family<InPhase, Gauge>,
    queue_length: Gauge,
    throughput: Measured,
    ttft_p99: Measured,
    errors: Measured,
    slowest_worker: Measured,
    verdict: Family<Judged, Gauge>,
    held_gpus: Family<Object, Gauge>,
}

impl ObjectSeries {
    /// Those of all objects together, and of each one unless that is switched off.
    pub(super) fn register(registry: &mut Registry, each: bool) -> Self {
        let all = Self {
            active: Family::default(),
            queue_length: Gauge::default(),
            throughput: Family::default(),
            ttft_p99: Family::default(),
            errors: Family::default(),
            slowest_worker: Family::default(),
            verdict: Family::default(),
            held_gpus: Family::default(),
        };
        series::ACTIVE_RUNS.register(registry, all.active.clone());
        series::QUEUE_LENGTH.register(registry, all.queue_length.clone());
        if each {
            series::LAST_THROUGHPUT.register(registry, all.throughput.clone());
            series::LAST_TTFT_P99.register(registry, all.ttft_p99.clone());
            series::LAST_ERROR.register(registry, all.errors.clone());
            series::LAST_SLOWEST_WORKER.register(registry, all.slowest_worker.clone());
            series::LAST_VERDICT.register(registry, all.verdict.clone());
            series::HELD_GPUS.register(registry, all.held_gpus.clone());
        }
        all
    }

    /// Replaces what the last scrape showed. One scrape at a time.
    pub(super) fn set(&self, objects: &[&PerfValidation]) {
        let statuses: Vec<_> = objects.iter().map(|object| object.status.as_ref()).collect();
        let phases: Vec<Phase> = statuses.iter().map(|status| phase(*status)).collect();
        for phase in active_phases() {
            let count = phases.iter().filter(|other| **other == phase).count();
            let active = InPhase { phase: phase.as_str() };
            self.active.get_or_create(&active).set(number(count));
        }
        let queued = statuses.iter().flatten().filter(|status| queue::is_queued(status));
        self.queue_length.set(number(queued.count()));

        self.throughput.clear();
        self.ttft_p99.clear();
        self.errors.clear();
        self.slowest_worker.clear();
        self.verdict.clear();
        self.held_gpus.clear();
        for object in objects {
            self.set_each(object);
        }
    }

    fn set_each(&self, object: &PerfValidation) {
        let Some(status) = &object.status else { return };
        let of = Object {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        };
        let last = Last::of(status);
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
                series.get_or_create(&of).set(value);
            }
        }
        let plan = status.placement.as_ref().filter(|_| holds_node(status));
        self.held_gpus.get_or_create(&of).set(plan.map_or(0, |plan| plan.gpus));
        if let Some(verdict) = last.verdict {
            let Object { namespace, name } = of;
            let verdict = verdict.as_str();
            self.verdict
                .get_or_create(&Judged {
                    namespace,
                    name,
                    verdict,
                })
                .set(1);
        }
    }
}

/// What the last run found that has found something.
struct Last {
    verdict: Option<perfval_api::Verdict>,
    throughput: Option<f64>,
    ttft_p99_ms: Option<f64>,
    error_percent: Option<f64>,
    slowest_worker_percent: Option<f64>,
}

impl Last {
    fn of(status: &PerfValidationStatus) -> Self {
        let read = |text: &Option<String>| text.as_ref()?.parse().ok();
        let earlier = || status.history.iter();
        let verdict = status.verdict.or_else(|| earlier().find_map(|run| run.verdict));
        if let Some(measured) = &status.metrics {
            return Self {
                verdict,
                throughput: read(&measured.output_token_throughput),
                ttft_p99_ms: read(&measured.ttft_p99_ms),
                error_percent: read(&measured.request_error_percent),
                slowest_worker_percent: read(&measured.slowest_worker_percent),
            };
        }
        let measured = earlier().find(|run| run.throughput.is_some());
        Self {
            verdict,
            throughput: measured.and_then(|run| read(&run.throughput)),
            ttft_p99_ms: measured.and_then(|run| read(&run.ttft_p99_ms)),
            error_percent: None,
            slowest_worker_percent: None,
        }
    }
}

/// Phases of a run that is not over.
pub(super) fn active_phases() -> impl Iterator<Item = Phase> {
    let is_active = |phase: &Phase| !matches!(phase, Phase::Completed | Phase::Suspended);
    Phase::ALL.into_iter().filter(is_active)
}

/// One that was not looked at yet is Pending.
fn phase(status: Option<&PerfValidationStatus>) -> Phase {
    status.and_then(|status| status.phase).unwrap_or(Phase::Pending)
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
