//! Series of the objects as they are now. An object that is gone leaves no series behind.

use std::fmt;
use std::sync::Arc;

use kube::ResourceExt;
use perfval_api::{PerfValidation, PerfValidationSpec, PerfValidationStatus, Phase};
use perfval_fleet::measurement::policy_of;
use perfval_run::status::phase_started_at;
use perfval_run::{machine, queue};
use perfval_sizing::holds_node;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::last::{LastNumbers, LastVerdict, lost_results, node};
use super::newest::NewestResults;
use super::samples::Samples;
use super::series::{self, Series};

/// Series in the order of the page.
const OF_OBJECTS: &[Series] = &[
    series::ACTIVE_RUNS,
    series::QUEUE_LENGTH,
    series::LAST_THROUGHPUT,
    series::LAST_TTFT_P99,
    series::LAST_ERROR,
    series::LAST_SLOWEST_WORKER,
    series::LAST_VERDICT,
    series::LAST_VERDICT_TIME,
    series::SLOW_GPU,
    series::UNSAVED_RESULTS,
    series::PHASE_SINCE,
    series::PHASE_LIMIT,
    series::HELD_GPUS,
    series::LEFTOVERS,
];

/// Series of the objects, made for one scrape.
#[derive(Debug)]
pub(super) struct ObjectSeries(Samples);

impl ObjectSeries {
    /// `each`: each object has series of its own.
    pub(super) fn new(each: bool, objects: impl IntoIterator<Item = PerfValidation>) -> Self {
        let mut all = Self(Samples::new(OF_OBJECTS));
        let mut active: Vec<(Phase, i64)> = active_phases().map(|phase| (phase, 0)).collect();
        let mut queue_length = 0;
        let mut of_policies = NewestResults::default();
        for object in objects {
            let current = phase(object.status.as_ref());
            if let Some((_, count)) = active.iter_mut().find(|(phase, _)| *phase == current) {
                *count += 1;
            }
            let Some(status) = &object.status else { continue };
            queue_length += i64::from(queue::is_queued(status));
            if each {
                all.add(&object, status, &mut of_policies);
            }
        }
        for result in of_policies.into_unjudged() {
            all.add_verdict([&result.namespace, &result.name], result.verdict);
        }
        for (phase, count) in active {
            all.0.add(&series::ACTIVE_RUNS, [&phase.as_str().into()], count);
        }
        all.0.add(&series::QUEUE_LENGTH, [], queue_length);
        all
    }

    /// Adds the series of an object. The result of a policy's validation waits in `of_policies` for those of the same node.
    fn add(&mut self, object: &PerfValidation, status: &PerfValidationStatus, of_policies: &mut NewestResults) {
        let namespace: Arc<str> = object.namespace().unwrap_or_default().into();
        let name: Arc<str> = object.name_any().into();
        if lost_results(status) {
            let node = node(status).into();
            self.0.add(&series::UNSAVED_RESULTS, [&namespace, &name, &node], 1);
        }
        if let Some(policy) = policy_of(&object.metadata) {
            of_policies.add(policy, [&namespace, &name], object, status);
        } else {
            self.add_numbers([&namespace, &name], LastNumbers::from_status(status));
            if let Some(last) = LastVerdict::from_status(status) {
                self.add_verdict([&namespace, &name], last);
            }
        }
        self.add_state([&namespace, &name], &object.spec, status);
    }

    /// Numbers of the last run that measured.
    fn add_numbers(&mut self, [namespace, name]: [&Arc<str>; 2], last: LastNumbers) {
        let node: &Arc<str> = &last.node.into();
        let ratio = |percent: f64| percent / 100.0;
        for (series, value) in [
            (series::LAST_THROUGHPUT, last.throughput),
            (series::LAST_TTFT_P99, last.ttft_p99_ms.map(|ms| ms / 1000.0)),
            (series::LAST_ERROR, last.error_percent.map(ratio)),
            (series::LAST_SLOWEST_WORKER, last.slowest_worker_percent.map(ratio)),
        ] {
            if let Some(value) = value {
                self.0.add(&series, [namespace, name, node], value);
            }
        }
    }

    /// Verdict of the last run that has one.
    fn add_verdict(&mut self, [namespace, name]: [&Arc<str>; 2], last: LastVerdict) {
        let node: &Arc<str> = &last.node.into();
        if let Some(at) = last.at {
            let at = at.timestamp();
            self.0.add(&series::LAST_VERDICT_TIME, [namespace, name, node], at);
        }
        for gpu in last.slow_gpus {
            self.0.add(&series::SLOW_GPU, [namespace, name, node, &gpu.into()], 1);
        }
        let verdict = &last.verdict.as_str().into();
        self.0.add(&series::LAST_VERDICT, [namespace, name, node, verdict], 1);
    }

    fn add_state(
        &mut self,
        [namespace, name]: [&Arc<str>; 2],
        spec: &PerfValidationSpec,
        status: &PerfValidationStatus,
    ) {
        let plan = status.placement.as_ref().filter(|_| holds_node(status));
        let held = plan.map_or(0, |plan| plan.gpus);
        self.0.add(&series::HELD_GPUS, [namespace, name], held);
        if let Some(leftovers) = status.state.leftovers {
            let left: [&Arc<str>; 4] = [namespace, name, &node(status).into(), &leftovers.as_str().into()];
            self.0.add(&series::LEFTOVERS, left, 1);
        }
        let current = phase(Some(status));
        let Some(since) = phase_started_at(status).filter(|_| !current.is_over()) else {
            return;
        };
        let at: [&Arc<str>; 3] = [namespace, name, &current.as_str().into()];
        self.0.add(&series::PHASE_SINCE, at, since.timestamp());
        if let Some(limit) = machine::phase_ends_by(spec, status) {
            self.0.add(&series::PHASE_LIMIT, at, limit.timestamp());
        }
    }
}

impl Collector for ObjectSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.encode(&mut encoder)
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
