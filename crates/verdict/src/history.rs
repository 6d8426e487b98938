//! Earlier runs, and how the current one compares with them.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use chrono::{DateTime, Utc};
use perfval_api::{
    Comparison, EarlierRun, Environment, Finding, PassedRun, PerfValidationStatus, PhaseSeconds, Reason, Severity,
    TrialOutcome, TrialState, Verdict,
};
use rust_decimal::Decimal;
use rust_decimal::prelude::{FromPrimitive as _, ToPrimitive as _};

use crate::diagnosis::cause::{Cause, SHOWN};
use crate::difference::{self, THROUGHPUT, TTFT_P99};
use crate::gate::show;
use crate::stats::mean;
use crate::{earlier, environment};

/// Earlier runs that status keeps.
const RUNS: usize = 10;
/// Advice about a GPU that was slow in two runs.
const REPLACE: &str = ": replace or drain it";
/// Slow GPUs that are remembered of a run.
const SLOW_GPUS: usize = 4;

/// The history that the next run begins with: the run that is over, then those before it.
pub fn with_last(last: &PerfValidationStatus, now: DateTime<Utc>) -> Vec<EarlierRun> {
    let numbers = Numbers::new(last);
    // A measurement that is judged again counts once.
    let is_reference = is_sound(last) && last.state.judged_run.is_none();
    let entry = last.run.as_ref().map(|run| EarlierRun {
        run: run.number,
        verdict: last.verdict,
        reason: last.reason.clone().unwrap_or_else(|| Reason::Running.as_str().into()),
        node: last.placement.as_ref().map(|placement| placement.node.clone()),
        throughput: numbers.shown(|trial| trial.throughput.as_ref()),
        ttft_p99_ms: numbers.shown(|trial| trial.ttft_p99_ms.as_ref()),
        throughput_spread: numbers
            .throughput_spread()
            .filter(|_| is_reference)
            .map(|spread| format!("{:.2}", 100.0 * spread)),
        trials: numbers.trials(),
        environment: last.state.environment.as_ref().map(environment::digest),
        causes: causes(last),
        speeds: if is_reference {
            earlier::speeds(last)
        } else {
            Vec::new()
        },
        slow_gpus: slow_gpus(last),
        phases: phase_seconds(last),
        completed_at: run_end(last).unwrap_or(now),
    });
    // Of several judgements of the same trials the last one is kept: edits of a gate must not push out the runs that measured.
    let judged = last.state.judged_run;
    let earlier = last.state.history.iter();
    let earlier = earlier.filter(|entry| judged.is_none_or(|judged| entry.run <= judged));
    entry.into_iter().chain(earlier.cloned()).take(RUNS).collect()
}

/// End of the last run. A suspended run ended with its last phase.
pub fn run_end(status: &PerfValidationStatus) -> Option<DateTime<Utc>> {
    let completed_at = status.run.as_ref()?.completed_at;
    completed_at.or_else(|| status.state.timeline.last()?.completed_at)
}

/// Causes that the run reported. A run with a cause is no reference for another.
pub(crate) fn causes(status: &PerfValidationStatus) -> Vec<String> {
    let warnings = status
        .diagnosis
        .iter()
        .filter(|finding| finding.severity != Severity::Info);
    warnings.map(|finding| finding.cause.clone()).take(SHOWN).collect()
}

/// Time of each ended phase of a run; a phase that it came back to counts every time.
pub fn phase_seconds(status: &PerfValidationStatus) -> Vec<PhaseSeconds> {
    let mut phases: Vec<PhaseSeconds> = Vec::new();
    for entry in &status.state.timeline {
        let Some(ended) = entry.completed_at else { continue };
        let seconds = (ended - entry.started_at).num_seconds().max(0);
        match phases.iter_mut().find(|known| known.phase == entry.phase) {
            Some(known) => known.seconds += seconds,
            None => phases.push(PhaseSeconds {
                phase: entry.phase,
                seconds,
            }),
        }
    }
    phases
}

/// Every GPU that the trials of this run found slow.
fn slow_gpus(status: &PerfValidationStatus) -> Vec<String> {
    let all: BTreeSet<&String> = status.state.trials.iter().flat_map(|trial| &trial.slow_gpus).collect();
    all.into_iter().take(SLOW_GPUS).cloned().collect()
}

/// Returns true if the run may be a reference for another.
fn is_sound(status: &PerfValidationStatus) -> bool {
    causes(status).is_empty() && slow_gpus(status).is_empty()
}

/// Advice by earlier runs on the same node about GPUs that are slow now: the same one twice is a GPU's own fault, unless
/// something else works on it (`shared`); another one each time is not.
pub(crate) fn compare_slow_gpus(status: &PerfValidationStatus, now: &[String], shared: bool) -> Option<String> {
    // Trials that are judged again are not their own past.
    let judged = status.state.judged_run;
    let measured_before = |entry: &&EarlierRun| judged.is_none_or(|judged| entry.run < judged);
    // Where something else worked on the GPUs, nothing is known of their own speed.
    let alone = |entry: &&EarlierRun| entry.causes.iter().all(|cause| cause != Cause::GPUShared.as_str());
    let earlier = || status.state.history.iter().filter(measured_before).filter(alone);
    let mut slow = earlier().filter(|entry| !entry.slow_gpus.is_empty());
    let again = slow.find_map(|entry| {
        let both = now.iter().filter(|gpu| entry.slow_gpus.contains(gpu));
        let both: Vec<&str> = both.map(String::as_str).collect();
        (!both.is_empty()).then_some((entry.run, both))
    });
    if let Some((run, gpus)) = again {
        let advice = if shared { "" } else { REPLACE };
        return Some(match gpus.as_slice() {
            [gpu] => format!("{gpu} was slow in run {run} too{advice}"),
            several => format!("{} were slow in run {run} too", several.join(", ")),
        });
    }
    let node = status.placement.as_ref().map(|placement| placement.node.as_str());
    let here = |entry: &&EarlierRun| node.is_some() && entry.node.as_deref() == node;
    // The run before on this node: clean ones between show that nothing persists.
    let last = earlier().find(here)?;
    if last.slow_gpus.is_empty() || now.is_empty() {
        return None;
    }
    let (run, other) = (last.run, last.slow_gpus.join(", "));
    Some(format!(
        "in run {run} on this node it was {other}: another GPU each time points to software, CPUs or cooling"
    ))
}

/// Withdraws the advice to replace a GPU, once a trial shows that something else works on the GPUs.
pub(crate) fn withdraw_replacement(findings: &mut [Finding]) {
    for finding in findings {
        finding.evidence = finding.evidence.replace(REPLACE, "");
    }
}

/// The last run that passed without a cause, which the next run begins with.
pub fn last_passed(last: &PerfValidationStatus) -> Option<PassedRun> {
    let numbers = Numbers::new(last);
    match (&last.run, &last.state.environment, last.verdict) {
        (Some(run), Some(environment), Some(Verdict::Passed)) if is_sound(last) => Some(PassedRun {
            run: run.number,
            throughput: numbers.shown(|trial| trial.throughput.as_ref()),
            ttft_p99_ms: numbers.shown(|trial| trial.ttft_p99_ms.as_ref()),
            trials: numbers.trials(),
            environment: environment.clone(),
        }),
        _ => last.state.last_passed.clone(),
    }
}

/// The trials whose numbers are compared: all that measured a throughput, without the soak. A trial whose requests all
/// failed has none.
pub(crate) struct Numbers<'a>(Vec<&'a TrialState>);

impl<'a> Numbers<'a> {
    pub(crate) fn new(status: &'a PerfValidationStatus) -> Self {
        let measured = |trial: &&TrialState| {
            let is_judged = matches!(trial.outcome, Some(TrialOutcome::Pass | TrialOutcome::Miss));
            is_judged && !trial.soak && trial.throughput.is_some()
        };
        Self(status.state.trials.iter().filter(measured).collect())
    }

    /// Number of these trials; `None` without any.
    fn trials(&self) -> Option<i64> {
        i64::try_from(self.0.len()).ok().filter(|trials| *trials > 0)
    }

    fn values(&self, number: fn(&TrialState) -> Option<&String>) -> Vec<f64> {
        let value = |trial: &&TrialState| Decimal::from_str(number(trial)?).ok()?.to_f64();
        self.0.iter().filter_map(value).collect()
    }

    /// Output tokens per second of each trial.
    pub(crate) fn throughputs(&self) -> Vec<f64> {
        self.values(|trial| trial.throughput.as_ref())
    }

    /// Standard deviation of the throughput between the trials (part of the mean); `None` after one trial.
    pub(crate) fn throughput_spread(&self) -> Option<f64> {
        difference::deviation(&self.throughputs())
    }

    /// The mean, as status shows it.
    fn shown(&self, number: fn(&TrialState) -> Option<&String>) -> Option<String> {
        let mean = mean(&self.values(number));
        Some(show(Decimal::from_f64(mean)?))
    }
}

/// The change against the last run of the same environment that passed without a cause; without one, what differs from the
/// last such run.
pub fn compare(status: &PerfValidationStatus) -> Option<Comparison> {
    status.state.metrics.as_ref()?;
    let environment = status.state.environment.as_ref()?;
    let last_passed = status.state.last_passed.as_ref()?;
    let other_commit = environment::other_commit(&last_passed.environment, environment).is_some();
    let before = same_environment(status, environment, last_passed);
    let Some(before) = before.filter(|before| !(other_commit && before.run == last_passed.run)) else {
        return Some(Comparison {
            run: last_passed.run,
            differs: environment::differences(&last_passed.environment, environment),
            ..Comparison::default()
        });
    };
    let trials = before.trials.and_then(|trials| usize::try_from(trials).ok());
    let change = |mean: Option<&String>, now: &[f64], noise| {
        let mean = Decimal::from_str(mean?).ok()?.to_f64()?;
        difference::compare_runs(mean, trials.unwrap_or(1), now, noise)
    };
    let now = Numbers::new(status);
    let throughput = change(before.throughput.as_ref(), &now.throughputs(), THROUGHPUT);
    let ttfts = now.values(|trial| trial.ttft_p99_ms.as_ref());
    let ttft = change(before.ttft_p99_ms.as_ref(), &ttfts, TTFT_P99);
    Some(Comparison {
        run: before.run,
        throughput_percent: throughput.map(|change| signed(change.percent)),
        throughput_within: throughput.map(|change| format!("{:.0}", change.within.ceil())),
        ttft_p99_percent: ttft.map(|change| signed(change.percent)),
        ttft_p99_within: ttft.map(|change| format!("{:.0}", change.within.ceil())),
        differs: Vec::new(),
    })
}

/// The last run of the same environment that passed without a cause, from the history or from the reference that
/// outlives it.
fn same_environment(
    status: &PerfValidationStatus,
    environment: &Environment,
    last_passed: &PassedRun,
) -> Option<PassedRun> {
    if !environment::is_known(environment) {
        return None;
    }
    let digest = environment::digest(environment);
    let earlier = status.state.history.iter().find(|entry| {
        let sound = entry.causes.is_empty() && entry.slow_gpus.is_empty();
        entry.verdict == Some(Verdict::Passed) && sound && entry.environment.as_ref() == Some(&digest)
    });
    if let Some(entry) = earlier {
        return Some(PassedRun {
            run: entry.run,
            throughput: entry.throughput.clone(),
            ttft_p99_ms: entry.ttft_p99_ms.clone(),
            trials: entry.trials,
            environment: environment.clone(),
        });
    }
    (environment::digest(&last_passed.environment) == digest).then(|| last_passed.clone())
}

/// `+4.2`.
fn signed(percent: f64) -> String {
    let rounded = (percent * 10.0).round() / 10.0;
    if rounded > 0.0 {
        format!("+{rounded}")
    } else {
        format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
    }
}

/// The comparison, as messages print it. A change within its interval is what two equal runs differ by, so that one of TTFT
/// p99 is left out.
pub fn in_words(comparison: &Comparison) -> String {
    let run = comparison.run;
    if let [first, more @ ..] = comparison.differs.as_slice() {
        let more = match more.len() {
            0 => String::new(),
            n => format!(" (and {n} more differences)"),
        };
        return format!("not compared with run {run}: {first}{more}");
    }
    let change = |what: &str, percent: &Option<String>, within: &Option<String>| {
        let within = within.as_ref().map_or(String::new(), |within| format!(" ± {within} %"));
        Some(format!("{what} {} %{within}", percent.as_deref()?))
    };
    let (throughput, ttft) = (&comparison.throughput_percent, &comparison.ttft_p99_percent);
    let is_chance = is_within(ttft.as_deref(), comparison.ttft_p99_within.as_deref());
    let changes = [
        change("tok/s", throughput, &comparison.throughput_within),
        change("TTFT p99", ttft, &comparison.ttft_p99_within).filter(|_| !is_chance),
    ];
    let changes: Vec<String> = changes.into_iter().flatten().collect();
    if changes.is_empty() {
        return format!("not compared with run {run}: a trial measured no throughput");
    }
    format!("against run {run}: {}", changes.join(", "))
}

fn is_within(percent: Option<&str>, within: Option<&str>) -> bool {
    let number = |text: Option<&str>| Decimal::from_str(text?.trim_start_matches('+')).ok();
    number(percent)
        .zip(number(within))
        .is_some_and(|(percent, within)| percent.abs() <= within)
}

#[cfg(test)]
mod tests;
