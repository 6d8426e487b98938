//! Earlier runs, and how the current one compares with them.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use chrono::{DateTime, Utc};
use perfval_api::{
    Comparison, Environment, HistoryEntry, PassedRun, PerfValidationStatus, PhaseSeconds, Reason, Verdict, quantity,
};
use rust_decimal::Decimal;

use crate::{earlier, environment};

/// Earlier runs that status keeps.
const RUNS: usize = 10;
/// Slow GPUs that are remembered of a run.
const SLOW_GPUS: usize = 4;

/// The history that the next run begins with: the run that is over, then those before it.
pub fn with_last(last: &PerfValidationStatus, now: DateTime<Utc>) -> Vec<HistoryEntry> {
    let entry = last.run.as_ref().map(|run| HistoryEntry {
        run: run.number,
        verdict: last.verdict,
        reason: last
            .reason
            .clone()
            .unwrap_or_else(|| Reason::NotReached.as_str().into()),
        node: last.placement.as_ref().map(|plan| plan.node.clone()),
        throughput: numbers(last).throughput,
        ttft_p99_ms: numbers(last).ttft_p99,
        environment: last.environment.as_ref().map(environment::digest),
        decode: earlier::kept(last),
        slow_gpus: slow_gpus(last),
        phases: phase_seconds(last),
        completed_at: run.completed_at.unwrap_or(now),
    });
    entry
        .into_iter()
        .chain(last.history.iter().cloned())
        .take(RUNS)
        .collect()
}

/// How long each phase of a run took so far; one that it came back to counts every time.
pub fn phase_seconds(status: &PerfValidationStatus) -> Vec<PhaseSeconds> {
    let mut phases: Vec<PhaseSeconds> = Vec::new();
    for entry in &status.timeline {
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

/// Every GPU that a trial of this run found slow.
fn slow_gpus(status: &PerfValidationStatus) -> Vec<String> {
    let all: BTreeSet<&String> = status.trials.iter().flat_map(|trial| &trial.slow_gpus).collect();
    all.into_iter().take(SLOW_GPUS).cloned().collect()
}

/// What earlier runs say of the GPUs that are slow now: the same one twice is a GPU's own fault, another one each time is not.
pub(crate) fn of_slow_gpus(history: &[HistoryEntry], now: &[String]) -> Option<String> {
    let earlier: Vec<&HistoryEntry> = history.iter().filter(|entry| !entry.slow_gpus.is_empty()).collect();
    let again = earlier
        .iter()
        .find_map(|entry| Some((entry.run, now.iter().find(|gpu| entry.slow_gpus.contains(gpu))?)));
    if let Some((run, gpu)) = again {
        return Some(format!("{gpu} was slow in run {run} too: replace or drain it"));
    }
    let last = earlier.first().filter(|_| !now.is_empty())?;
    let (run, other) = (last.run, last.slow_gpus.join(", "));
    Some(format!(
        "in run {run} it was {other}: another GPU each time points to software, CPUs or cooling"
    ))
}

/// The last run that passed, which the next run begins with.
pub fn last_passed(last: &PerfValidationStatus) -> Option<PassedRun> {
    match (&last.run, &last.environment, last.verdict) {
        (Some(run), Some(environment), Some(Verdict::Passed)) => Some(PassedRun {
            run: run.number,
            throughput: numbers(last).throughput,
            ttft_p99_ms: numbers(last).ttft_p99,
            environment: environment.clone(),
        }),
        _ => last.last_passed.clone(),
    }
}

/// The two numbers that are compared.
#[derive(Clone, Default)]
struct Numbers {
    throughput: Option<String>,
    ttft_p99: Option<String>,
}

fn numbers(status: &PerfValidationStatus) -> Numbers {
    status
        .metrics
        .as_ref()
        .map_or_else(Numbers::default, |metrics| Numbers {
            throughput: metrics.output_token_throughput.clone(),
            ttft_p99: metrics.ttft_p99_ms.clone(),
        })
}

/// The change against the last passed run of the same environment; without one, what differs from the last passed run.
pub fn compare(status: &PerfValidationStatus) -> Option<Comparison> {
    status.metrics.as_ref()?;
    let environment = status.environment.as_ref()?;
    let last_passed = status.last_passed.as_ref()?;
    if let Some((run, before)) = same_environment(status, environment, last_passed) {
        let now = numbers(status);
        return Some(Comparison {
            run,
            throughput_percent: change(before.throughput.as_deref(), now.throughput.as_deref()),
            ttft_p99_percent: change(before.ttft_p99.as_deref(), now.ttft_p99.as_deref()),
            differs: Vec::new(),
        });
    }
    Some(Comparison {
        run: last_passed.run,
        throughput_percent: None,
        ttft_p99_percent: None,
        differs: environment::differences(&last_passed.environment, environment),
    })
}

/// Number and figures of the last passed run of the same environment: of the history, or the one that outlives it.
fn same_environment(
    status: &PerfValidationStatus,
    environment: &Environment,
    last_passed: &PassedRun,
) -> Option<(i64, Numbers)> {
    if !environment::is_known(environment) {
        return None;
    }
    let digest = environment::digest(environment);
    let earlier = status
        .history
        .iter()
        .find(|entry| entry.verdict == Some(Verdict::Passed) && entry.environment.as_ref() == Some(&digest));
    if let Some(entry) = earlier {
        let numbers = Numbers {
            throughput: entry.throughput.clone(),
            ttft_p99: entry.ttft_p99_ms.clone(),
        };
        return Some((entry.run, numbers));
    }
    let numbers = Numbers {
        throughput: last_passed.throughput.clone(),
        ttft_p99: last_passed.ttft_p99_ms.clone(),
    };
    (environment::digest(&last_passed.environment) == digest).then_some((last_passed.run, numbers))
}

/// `+4.2`, in percent of what it was.
fn change(before: Option<&str>, now: Option<&str>) -> Option<String> {
    let (before, now) = (Decimal::from_str(before?).ok()?, Decimal::from_str(now?).ok()?);
    let percent = quantity::change_percent(before, now)?.round_dp(1).normalize();
    let sign = if percent.is_sign_positive() && !percent.is_zero() {
        "+"
    } else {
        ""
    };
    Some(format!("{sign}{percent}"))
}

/// The comparison, as messages say it.
pub fn in_words(comparison: &Comparison) -> String {
    let run = comparison.run;
    if let [first, more @ ..] = comparison.differs.as_slice() {
        let more = match more.len() {
            0 => String::new(),
            n => format!(" (and {n} more differences)"),
        };
        return format!("not compared with run {run}: {first}{more}");
    }
    let changes: Vec<String> = [
        ("tok/s", &comparison.throughput_percent),
        ("TTFT p99", &comparison.ttft_p99_percent),
    ]
    .iter()
    .filter_map(|(what, percent)| Some(format!("{what} {} %", percent.as_deref()?)))
    .collect();
    format!("against run {run}: {}", changes.join(", "))
}

#[cfg(test)]
mod tests {
    use perfval_api::{Metrics, RunStatus};

    use super::*;

    fn environment(driver: &str) -> Environment {
        Environment {
            model: "m".into(),
            image: "i".into(),
            image_digest: Some("sha256:aa".into()),
            settings: Some("01234567".into()),
            gpu_product: Some("H100".into()),
            gpus: Some(8),
            gpu_driver: Some(driver.into()),
            aiperf: Some("0.13.0".into()),
            ..Environment::default()
        }
    }

    /// The next run after `last`, with these numbers.
    fn next(last: &PerfValidationStatus, verdict: Verdict, driver: &str, throughput: &str) -> PerfValidationStatus {
        let number = last.run.as_ref().map_or(1, |run| run.number + 1);
        PerfValidationStatus {
            run: Some(RunStatus {
                number,
                ..RunStatus::default()
            }),
            verdict: Some(verdict),
            environment: Some(environment(driver)),
            metrics: Some(Metrics {
                output_token_throughput: Some(throughput.into()),
                ttft_p99_ms: Some("100".into()),
                ..Metrics::default()
            }),
            history: with_last(last, DateTime::UNIX_EPOCH),
            last_passed: last_passed(last),
            ..PerfValidationStatus::default()
        }
    }

    #[test]
    fn a_run_is_compared_with_the_last_passed_one_of_its_environment() {
        use Verdict::{Failed, Passed};
        let first = next(&PerfValidationStatus::default(), Passed, "580", "1000");
        assert_eq!(compare(&first), None, "nothing to compare with");
        let failed = next(&first, Failed, "580", "500");
        let other = next(&failed, Passed, "590", "2000");
        let not_compared = compare(&other).expect("a comparison");
        assert_eq!((not_compared.run, not_compared.throughput_percent.clone()), (1, None));
        assert_eq!(not_compared.differs, ["gpuDriver 580, now 590"]);
        assert_eq!(
            in_words(&not_compared),
            "not compared with run 1: gpuDriver 580, now 590"
        );

        // Back on the first driver: run 3 passed later, but run 1 is the one to compare with.
        let back = next(&other, Passed, "580", "1042");
        let compared = compare(&back).expect("a comparison");
        assert_eq!((compared.run, compared.differs.len()), (1, 0));
        assert_eq!(compared.throughput_percent.as_deref(), Some("+4.2"));
        assert_eq!(compared.ttft_p99_percent.as_deref(), Some("0"));
        assert_eq!(in_words(&compared), "against run 1: tok/s +4.2 %, TTFT p99 0 %");
    }

    #[test]
    fn the_same_gpu_twice_is_to_be_replaced_and_another_each_time_is_not() {
        let slow = |last: &PerfValidationStatus, gpu: &str| {
            let mut status = next(last, Verdict::Passed, "580", "1000");
            status.trials = vec![perfval_api::TrialStatus {
                slow_gpus: vec![gpu.to_owned()],
                ..perfval_api::TrialStatus::default()
            }];
            status
        };
        let now = |gpu: &str| vec![gpu.to_owned()];
        let first = slow(&PerfValidationStatus::default(), "GPU-a");
        assert_eq!(of_slow_gpus(&first.history, &now("GPU-a")), None, "seen once");
        let second = slow(&next(&first, Verdict::Passed, "580", "1000"), "GPU-a");
        assert_eq!(
            of_slow_gpus(&second.history, &now("GPU-a")).as_deref(),
            Some("GPU-a was slow in run 1 too: replace or drain it")
        );
        let other = of_slow_gpus(&second.history, &now("GPU-b")).expect("another one");
        assert!(
            other.starts_with("in run 1 it was GPU-a: another GPU each time"),
            "{other}"
        );
        assert_eq!(of_slow_gpus(&second.history, &[]), None, "none is slow now");
    }

    #[test]
    fn what_is_not_known_is_not_compared() {
        let mut first = next(&PerfValidationStatus::default(), Verdict::Passed, "580", "1000");
        first.environment.as_mut().unwrap().gpu_product = None;
        let mut second = next(&first, Verdict::Passed, "580", "1000");
        second.environment.as_mut().unwrap().gpu_product = None;
        let comparison = compare(&second).expect("a comparison");
        assert_eq!(comparison.throughput_percent, None);
        assert_eq!(comparison.differs, ["gpuProduct is not known"]);
    }

    #[test]
    fn ten_runs_are_kept_and_the_last_passed_one_for_ever() {
        let mut status = next(&PerfValidationStatus::default(), Verdict::Passed, "580", "1000");
        for _ in 0..12 {
            status = next(&status, Verdict::Failed, "580", "1000");
        }
        let runs: Vec<i64> = status.history.iter().map(|entry| entry.run).collect();
        assert_eq!(runs, (3..=12).rev().collect::<Vec<_>>());
        assert_eq!(status.last_passed.as_ref().map(|passed| passed.run), Some(1));
        let comparison = compare(&status).expect("a comparison");
        assert_eq!(
            (comparison.run, comparison.throughput_percent.as_deref()),
            (1, Some("0"))
        );
    }
}
