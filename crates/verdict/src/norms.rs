//! Approved normal speeds of environments, with which gates on `BaselinePercent` compare a run.

use std::collections::BTreeMap;

use perfval_api::fleet::{BaselineMetricName, PerfBaseline, baselines_in_use};
use perfval_api::{Environment, quantity};
use rust_decimal::Decimal;

use crate::diagnosis::peers::Worker;
use crate::environment;
use crate::frame::{Outcome, TrialRecord};
use crate::gate::show;
use crate::workers::WorkerSummary;

/// Normal speed of a worker in one environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Norm {
    /// Name of the `PerfBaseline`.
    pub baseline: String,
    /// Its approved revision.
    pub revision: i64,
    /// Tokens per second of one request, by the engine's time from one token to the next; above 0.
    pub decode_speed: Decimal,
}

/// Norms by digest of the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Norms(BTreeMap<String, Norm>);

impl Norms {
    /// Norms of the approved baselines. Of several approved ones of an environment the oldest counts.
    pub fn new(baselines: &[PerfBaseline]) -> Self {
        let present = baselines
            .iter()
            .filter(|baseline| baseline.metadata.deletion_timestamp.is_none());
        let norms = baselines_in_use(present).into_iter().filter_map(|(digest, baseline)| {
            let approved = baseline.approved()?;
            let metrics = approved.metrics.iter();
            let speed = metrics.filter(|metric| metric.name == BaselineMetricName::DecodeSpeed);
            let norm = Norm {
                baseline: baseline.metadata.name.clone()?,
                revision: approved.revision,
                decode_speed: speed
                    .filter_map(|metric| quantity::parse(&metric.centre))
                    .find(|centre| *centre > Decimal::ZERO)?,
            };
            Some((digest.to_owned(), norm))
        });
        Self(norms.collect())
    }

    /// Norm of the environment of a trial, by the digest in its status; `None` while the environment is not known. The record of the
    /// first trial completes it with AIPerf's version.
    pub fn find(&self, environment: Option<&Environment>, record: &TrialRecord) -> Option<&Norm> {
        let mut environment = environment?.clone();
        if let Outcome::Report(report) = &record.outcome {
            environment::complete(&mut environment, report.aiperf_version.as_ref(), None);
        }
        let norm = self.0.get(&environment::digest(&environment));
        // Of an unknown product there is one digest for all.
        norm.filter(|_| environment::is_known(&environment))
    }
}

impl Norm {
    /// Speed of the slowest worker (percent of the norm); `None` unless the speed of every worker is known.
    pub(crate) fn slowest_percent(&self, loads: &[WorkerSummary]) -> Option<Decimal> {
        let percents: Option<Vec<Decimal>> = loads.iter().map(|load| self.percent(load)).collect();
        percents?.into_iter().min()
    }

    fn percent(&self, load: &WorkerSummary) -> Option<Decimal> {
        let speed = Decimal::ONE_THOUSAND.checked_div(load.speed.as_ref()?.token_ms)?;
        speed.checked_mul(Decimal::ONE_HUNDRED)?.checked_div(self.decode_speed)
    }

    /// The workers by which a gate of this name is missed, in words; `None` if there is none.
    pub(crate) fn explain(
        &self,
        gate: &str,
        workers: &[Worker<'_>],
        is_missed: impl Fn(Decimal) -> bool,
        gpu: impl Fn(&Worker<'_>) -> String,
    ) -> Option<String> {
        let percents = workers
            .iter()
            .filter_map(|worker| Some((self.percent(worker.load)?, worker)));
        let below: Vec<(Decimal, &Worker<'_>)> = percents.filter(|(percent, _)| is_missed(*percent)).collect();
        let (percent, slowest) = below.iter().min_by_key(|(percent, _)| *percent)?;
        let which = match workers.len() {
            1 => "the only worker".to_owned(),
            all => format!("{} of {all} workers miss gate {gate}; the slowest", below.len()),
        };
        Some(format!(
            "{which}, {}{}, decodes at {} % of the {} tok/s of baseline {} (revision {})",
            slowest.name,
            gpu(slowest),
            // Rounded down: a miss never looks like its threshold.
            show(percent.trunc_with_scale(1)),
            show(self.decode_speed),
            self.baseline,
            self.revision
        ))
    }
}
