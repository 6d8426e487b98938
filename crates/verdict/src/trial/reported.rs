//! The rules of a trial that left a report, in their order.

use perfval_api::{Gate, GateOperator, GateResult, Metric, MetricSource, PerfValidationSpec, Statistic, TrialOutcome};
use rust_decimal::Decimal;

use super::evidence::{Evidence, cpu_shortage, lost};
use crate::aiperf::Report;
use crate::diagnosis::cause::{Cause, Explained};
use crate::diagnosis::decay;
use crate::diagnosis::peers::{self, Worker};
use crate::diagnosis::roofline::Reached;
use crate::diagnosis::speed;
use crate::diagnosis::trial::{self as diagnosis, changed, most_frequent};
use crate::frame::Part;
use crate::gate::{self, JudgedGate, show};
use crate::generator::GeneratorCpu;
use crate::trials::averages;

/// A trial that left a report.
#[derive(Clone, Copy)]
pub(super) struct ReportedTrial<'a> {
    pub(super) evidence: Evidence<'a>,
    pub(super) report: &'a Report,
    pub(super) spec: &'a PerfValidationSpec,
    pub(super) judged: &'a [JudgedGate],
    pub(super) workers: &'a [Worker<'a>],
}

impl ReportedTrial<'_> {
    /// The rules, in their order.
    pub(super) fn outcome(self) -> (TrialOutcome, Vec<Explained>) {
        use TrialOutcome::{Invalid, Miss, Pass};
        if let Some(incomplete) = self.incomplete() {
            // A crash counts, although it left no numbers.
            return (Invalid, [incomplete].into_iter().chain(self.lost()).collect());
        }
        // Before errors: a worker that its probe ended for want of CPU fails the requests that it held, too.
        if let Some(starved) = self.lost().filter(|(cause, _)| *cause == Cause::NodeCPUPressure) {
            return (Invalid, vec![starved]);
        }
        // Errors come before validity: a dead worker also lowers the achieved concurrency, and must not be excused by
        // it. Requests that only timed out, in a generator that both ends show to be starved, are no errors of the
        // deployment: a request that a worker or the frontend refuses, drops or delays shows as another error or as
        // the frontend's time.
        if let Some(errors) = self.errors() {
            if let Some(starved) = self.timed_out_in_generator() {
                return (Invalid, vec![starved]);
            }
            return (Miss, errors.into_iter().chain(self.slower()).collect());
        }
        if let Some(other) = self.other_workers() {
            return (Invalid, vec![other]);
        }
        let aside = self.aside();
        // Gates over the whole deployment can be met with a worker that does next to nothing. It lowers the achieved
        // concurrency too (72 of 128 measured under least-loaded) and must not be excused by it either.
        if let Some(text) = self.stalled() {
            return (Miss, [(Cause::WorkerStall, text)].into_iter().chain(aside).collect());
        }
        if let Some(starved) = self.starved() {
            return (Invalid, vec![starved]);
        }
        // Before gates that were not measured: a missed gate decides.
        if self.judged.iter().any(JudgedGate::is_missed) {
            let reached = self.reached();
            let mut causes = diagnosis::miss(self.report, self.workers, self.spec, self.judged, reached.as_ref());
            // What made a few requests wait slowed no worker down, unless one is known to have been slow or to have stood still.
            let of_workers = aside.iter().any(|(cause, _)| *cause != Cause::WorkersNotSampled);
            if let Some(tail) = self.tail().filter(|_| !of_workers)
                && causes.iter().all(|(cause, _)| *cause == Cause::BalancedDegradation)
            {
                causes = vec![(Cause::TailLatency, tail)];
            }
            // A gate on the slowest worker was missed, so they did not work alike. Beside a slow one none is called so.
            if let Some(slowest) = self.slowest_missed().filter(|_| self.slower().is_none()) {
                causes.retain(|(cause, _)| *cause != Cause::BalancedDegradation);
                causes.push((Cause::SlowWorker, slowest));
            }
            // The user of the CPUs is unknown, so the gates count. The reader must see the shortage all the same.
            if let Some(shortage) = cpu_shortage(self.evidence.record) {
                let balanced = causes
                    .iter_mut()
                    .filter(|(cause, _)| *cause == Cause::BalancedDegradation);
                balanced.for_each(|(_, text)| *text = format!("{text}; {shortage}"));
            }
            return (Miss, causes.into_iter().chain(aside).collect());
        }
        if let Some(unmeasured) = self.unmeasured() {
            // The first cause is the reason: only workers without samples may be it.
            let unsampled = aside
                .into_iter()
                .filter(|(cause, _)| *cause == Cause::WorkersNotSampled);
            return (Invalid, [unmeasured].into_iter().chain(unsampled).collect());
        }
        let frontend = diagnosis::frontend_bound(self.report, self.workers);
        (Pass, aside.into_iter().chain(frontend).collect())
    }

    fn incomplete(self) -> Option<Explained> {
        if self.report.cancelled || !self.report.complete {
            let why = self.report.incomplete_reason.as_deref();
            let why = why.unwrap_or("AIPerf did not run to its end");
            return Some((Cause::ResultIncomplete, why.to_owned()));
        }
        None
    }

    fn errors(self) -> Option<Vec<Explained>> {
        let (report, allowed) = (self.report, self.spec.trials.allowed_percent());
        let percent = report.error_percent();
        if percent <= allowed {
            return None;
        }
        let text = format!(
            "{} % of {} requests failed or came back short (allowed: {} %): {}",
            show(percent),
            report.failed.saturating_add(report.succeeded),
            show(allowed),
            most_frequent(&report.errors)
        );
        let changed = changed(self.evidence.before, self.evidence.after, None);
        let router = self.spec.dynamo().router_mode;
        let mut explained = diagnosis::errors(report, self.workers, changed, router, &text);
        if explained
            .iter()
            .all(|(cause, _)| matches!(cause, Cause::RequestErrors | Cause::FrontendLost))
        {
            let stall = self.stalled().map(|text| (Cause::WorkerStall, text));
            // The frontend gives up on the requests of a worker that stands still: 8 of 448 requests failed in a stop
            // of 10 s.
            let why = stall.or_else(|| self.stood_still());
            // Behind a throttled frontend requests time out too; where the time passed before it, it is not to blame.
            let frontend =
                || diagnosis::frontend_bound(report, self.workers).filter(|_| report.time_outside().is_none());
            explained.extend(why.or_else(frontend));
        }
        Some(explained)
    }

    /// Not the same workers from its start to its end, or not all of them.
    fn other_workers(self) -> Option<Explained> {
        self.lost()
            .or_else(|| peers::idle(self.workers).map(|text| (Cause::UnevenService, text)))
    }

    fn lost(self) -> Option<Explained> {
        lost(self.evidence, self.workers)
    }

    /// Nothing is missed but tails of latencies, and the same gates hold for nine of ten requests.
    fn tail(self) -> Option<String> {
        let gates = self.spec.gates.iter().zip(self.judged);
        let missed = gates.filter(|(_, judged)| judged.is_missed());
        let texts: Option<Vec<String>> = missed.map(|(gate, judged)| self.tail_of(gate, judged)).collect();
        texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join("; "))
    }

    fn tail_of(self, gate: &Gate, judged: &JudgedGate) -> Option<String> {
        let most = Gate {
            statistic: Statistic::P90,
            ..gate.clone()
        };
        let found = self.report.value(gate.metric, Statistic::P90)?;
        let of_tail = diagnosis::BEYOND_P90.contains(&gate.statistic);
        let holds = gate::judge(&most, Some(found), self.evidence.share).status.result == GateResult::Met;
        let late = of_tail && gate.operator == GateOperator::AtMost && holds;
        late.then(|| {
            format!(
                "{}; nine of ten requests took at most {}",
                judged.in_words(),
                show(found)
            )
        })
    }

    fn starved(self) -> Option<Explained> {
        let waited = self.report.starved().then(|| starved_text(self.report));
        let texts: Vec<String> = self.report.time_outside().into_iter().chain(waited).collect();
        (!texts.is_empty()).then(|| (Cause::GeneratorStarved, texts.join("; ")))
    }

    /// Errors that the load generator made itself: only time-outs, while no worker was lost or stalled.
    fn timed_out_in_generator(self) -> Option<Explained> {
        let (starved, timed_out) = (self.report.time_outside()?, self.report.only_timed_out()?);
        let worker = self.other_workers().is_some() || self.stalled().is_some() || self.stood_still().is_some();
        (!worker).then(|| {
            let text = format!("{starved}; {timed_out} requests timed out");
            (Cause::GeneratorStarved, text)
        })
    }

    fn unmeasured(self) -> Option<Explained> {
        let mut gates = self.spec.gates.iter().zip(self.judged);
        let (Gate { name, metric, .. }, _) = gates.find(|(_, judged)| judged.unmeasured)?;
        let workers = self.workers.len();
        let text = match metric.source() {
            MetricSource::Peers | MetricSource::Baseline | MetricSource::EngineEstimate
                if self.evidence.record.abridged.contains(&Part::Workers) =>
            {
                format!(
                    "gate {name} needs the workers' metrics, which this record lacks (AIPerf's export alone has none)"
                )
            }
            MetricSource::Peers if workers < 2 => {
                format!("gate {name} compares workers with each other, and there is {workers}")
            }
            MetricSource::Peers | MetricSource::Baseline
                if self.workers.iter().any(|worker| worker.load.samples == 0) =>
            {
                format!(
                    "gate {name} needs the metrics of every worker, and not every worker answered on its metrics port"
                )
            }
            MetricSource::EngineEstimate if self.workers.iter().all(|worker| worker.load.samples == 0) => {
                format!("gate {name} needs the workers' metrics, and no worker answered on its metrics port")
            }
            MetricSource::Peers => format!(
                "gate {name} needs the workers' own time between tokens in at least 4 windows of 2 s: their engines do not \
                 report it (vLLM does), or the trial was too short"
            ),
            MetricSource::Baseline => format!(
                "gate {name} needs the workers' own time between tokens: their engines do not report it (vLLM does), or the \
                 trial was too short"
            ),
            MetricSource::EngineEstimate => format!(
                "gate {name} needs a GPU whose bandwidth is known ({}), and engines that estimate their memory traffic: vLLM \
                 does with --enable-mfu-metrics in workload.dynamo.worker.args",
                self.evidence.product.unwrap_or("its product is not")
            ),
            MetricSource::AIPerf(..) | MetricSource::OwnPast => {
                format!("AIPerf did not report the metric of gate {name}")
            }
        };
        Some((Cause::MetricMissing, text))
    }

    fn stalled(self) -> Option<String> {
        let gpu = |worker: &Worker<'_>| self.evidence.gpu_of(worker);
        peers::stalled(self.workers, self.spec.dynamo().router_mode, gpu)
    }

    pub(super) fn margins(self, outcome: TrialOutcome) -> Vec<Decimal> {
        if !self.is_judged_by_gates(outcome) {
            return Vec::new();
        }
        averages::margins(&self.spec.gates, self.judged)
    }

    pub(super) fn is_judged_by_gates(self, outcome: TrialOutcome) -> bool {
        outcome != TrialOutcome::Invalid && self.errors().is_none() && self.stalled().is_none()
    }

    fn stood_still(self) -> Option<Explained> {
        let text = peers::stood_still(self.workers, |worker| self.evidence.gpu_of(worker))?;
        Some((Cause::TransientStall, text))
    }

    fn slower(self) -> Option<Explained> {
        speed::slower(&self.compared()).map(|text| (Cause::SlowWorker, text))
    }

    /// The worker by which a gate on the slowest one was missed.
    fn slowest_missed(self) -> Option<String> {
        let mut gates = self.spec.gates.iter().zip(self.judged);
        gates.find(|(gate, judged)| gate.metric == Metric::SlowestWorkerPercent && judged.is_missed())?;
        speed::slowest(&self.compared())
    }

    fn compared(self) -> Vec<speed::Compared> {
        speed::compared(self.workers, self.evidence.devices)
    }

    /// Explanation of a miss that is no jitter.
    pub(super) fn instead_of_jitter(self) -> Option<Explained> {
        let tail = self.tail().map(|tail| (Cause::TailLatency, tail));
        tail.or_else(|| diagnosis::shared(self.workers, self.judged, self.reached().as_ref()))
    }

    fn reached(self) -> Option<Reached> {
        Reached::new(self.evidence.product, &self.evidence.record.workers)
    }

    /// Findings that are reported with any result of the gates.
    fn aside(self) -> Vec<Explained> {
        let record = self.evidence.record;
        // Left out of a short message is not unsampled.
        let unsampled =
            self.workers.iter().all(|worker| worker.load.samples == 0) && !record.abridged.contains(&Part::Workers);
        let unsampled = unsampled.then(|| {
            let text = "no worker answered on its metrics port during the trial";
            (Cause::WorkersNotSampled, text.to_owned())
        });
        // A worker that stalls is slower than its peers too.
        let slower = self.slower().filter(|_| self.stalled().is_none());
        let decayed = decay::decayed(self.workers);
        let aside = self.stood_still().into_iter().chain(slower).chain(decayed);
        aside.chain(unsampled).collect()
    }
}

fn starved_text(report: &Report) -> String {
    let number = |value: Option<Decimal>| value.map_or("?".to_owned(), show);
    let generator = &report.generator;
    let cpu = generator.cpu.as_ref().map(GeneratorCpu::in_words);
    let cpu = cpu
        .filter(|cpu| !cpu.is_empty())
        .map_or(String::new(), |cpu| format!("; {cpu}"));
    format!(
        "{} requests in flight of {} asked (median), each waited {} ms in the generator and took {} ms{cpu}",
        number(generator.effective_concurrency_p50),
        report.concurrency,
        number(generator.credit_to_start_p50_ms),
        number(generator.request_latency_p50_ms)
    )
}
