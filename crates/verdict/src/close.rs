//! End of a trial: its results are written into the status, and the rule decides if another trial is needed.

use chrono::{DateTime, Utc};
use perfval_api::{Finding, Metric, PerfValidationSpec, PerfValidationStatus, TrialOutcome, WorkerLoad};
use rust_decimal::{Decimal, RoundingStrategy};

use crate::diagnosis::cause::{Cause, SHOWN};
use crate::gate::show;
use crate::trial::JudgedTrial;
use crate::trials::{self, Ruling};
use crate::{earlier, environment, history, in_run};

/// Findings that status keeps.
const FINDINGS: usize = 16;

/// Writes a judged trial into the status. A trial that proves nothing leaves the numbers of the one before it.
pub fn close(
    spec: &PerfValidationSpec,
    status: &mut PerfValidationStatus,
    number: i64,
    judged: &JudgedTrial,
    now: DateTime<Utc>,
) -> Ruling {
    if let Some(environment) = &mut status.state.environment {
        environment::complete(environment, judged.aiperf_version.as_ref(), judged.commit.as_ref());
    }
    let mut judged = judged.clone();
    if judged.outcome != TrialOutcome::Invalid {
        in_run::name_slow_workers(status, &mut judged);
        in_run::explain_without_jitter(status, &mut judged);
        if is_soak(status, number) {
            keep_speeds(&status.state.workers, &mut judged.workers);
        } else {
            add_token_times(&status.state.workers, &mut judged.workers);
        }
        // A trial whose requests all failed measured no speed, and the next one adds to those before it.
        if !judged.workers.is_empty() {
            status.state.workers.clone_from(&judged.workers);
            against_earlier_runs(spec, status, &mut judged);
        }
        in_run::explain_by_baseline(&mut judged);
        in_run::forget_other_explanations(status, &judged);
        status.state.metrics = Some(judged.metrics.clone());
        status.gates.clone_from(&judged.gates);
        let thresholds = spec
            .gates
            .iter()
            .map(|gate| (gate.name.clone(), gate.threshold.clone()));
        status.state.thresholds = thresholds.collect();
    }
    judged.put_in_order();
    let JudgedTrial {
        findings, slow_gpus, ..
    } = &judged;
    // Only the last trial explains a worker that ends before the next one; the results have all numbers.
    for trial in &mut status.state.trials {
        trial.cpu_shortage = None;
    }
    if let Some(open) = status.state.trials.iter_mut().find(|trial| trial.number == number) {
        open.outcome = Some(judged.outcome);
        open.throughput.clone_from(&judged.metrics.output_token_throughput);
        open.ttft_p99_ms.clone_from(&judged.metrics.ttft_p99_ms);
        open.errors = judged.requests.map(|(errors, _)| errors);
        open.requests = judged.requests.map(|(_, all)| all);
        open.completed_at = Some(now);
        open.causes = words(findings);
        open.far = judged.far;
        open.slow_gpus.clone_from(slow_gpus);
        open.cpu_shortage.clone_from(&judged.cpu_shortage);
        open.margin_percent = judged.margins.iter().min().copied().map(show);
        open.margins = several(&judged.margins);
        // A worker may have been lost since the trial before.
        open.worker_loss = open.worker_loss.max(judged.worker_loss);
    }
    status.state.progress = None;
    let found = findings.iter().map(|(_, finding)| finding);
    let shared = found
        .chain(&status.diagnosis)
        .any(|finding| finding.cause == Cause::GPUShared.as_str());
    if shared {
        history::withdraw_replacement(&mut status.diagnosis);
    }
    for (cause, finding) in findings {
        let mut finding = finding.clone();
        if *cause == Cause::SlowWorker
            && let Some(before) = history::compare_slow_gpus(status, slow_gpus, shared)
        {
            finding = cause.finding(format!("{}; {before}", finding.evidence));
        }
        if !explains_an_earlier_miss(status, &judged, *cause, &finding) {
            keep(&mut status.diagnosis, finding);
        }
    }
    // An approval may come between two trials.
    if measures_baseline(spec, &judged) {
        let remedy = Cause::BaselineMissing.remedy();
        status.diagnosis.retain(|finding| finding.remedy != remedy);
    }
    for (cause, why) in &judged.unseen {
        keep(&mut status.diagnosis, cause.finding(why.as_str()));
    }
    let ruling = trials::ruling(spec, &status.state.trials);
    in_run::forget_absorbed(status, ruling);
    if ruling == Ruling::Fail
        && let Some(finding) = in_run::explain_many_misses(status, &judged)
    {
        keep(&mut status.diagnosis, finding);
    }
    keep_the_most_telling(&mut status.diagnosis);
    let claim = (ruling == Ruling::Pass).then(|| trials::claim(spec, status)).flatten();
    // Rounded up like the whole number in the claim's words.
    status.state.detectable_loss_percent = claim.map(|claim| format!("{:.1}", (claim.percent * 10.0).ceil() / 10.0));
    ruling
}

/// Returns true if a trial did not miss, and its finding would replace evidence that explains an earlier miss. The counters of
/// errors and links grow, so of other causes the newest evidence counts.
fn explains_an_earlier_miss(
    status: &PerfValidationStatus,
    judged: &JudgedTrial,
    cause: Cause,
    finding: &Finding,
) -> bool {
    let mut trials = status.state.trials.iter();
    matches!(cause, Cause::GPUShared | Cause::TransientStall)
        && judged.outcome != TrialOutcome::Miss
        && status.diagnosis.iter().any(|known| is_same(known, finding))
        && trials.any(|trial| trial.outcome == Some(TrialOutcome::Miss) && trial.causes.contains(&finding.cause))
}

/// Returns true if a gate on a baseline was judged.
fn measures_baseline(spec: &PerfValidationSpec, judged: &JudgedTrial) -> bool {
    let mut gates = spec.gates.iter().filter(|gate| gate.metric == Metric::BaselinePercent);
    gates.any(|gate| {
        let judged = judged.gates.iter().find(|judged| judged.name == gate.name);
        judged.is_some_and(|judged| judged.observed.is_some())
    })
}

/// Adds the token time of this trial to those of the trials before it.
fn add_token_times(before: &[WorkerLoad], now: &mut [WorkerLoad]) {
    for worker in now {
        let known = before.iter().find(|known| known.name == worker.name);
        let known = known.into_iter().flat_map(|known| &known.token_ms_of_trials);
        worker.token_ms_of_trials = known.chain(&worker.token_ms).cloned().collect();
    }
}

fn is_soak(status: &PerfValidationStatus, number: i64) -> bool {
    let mut trials = status.state.trials.iter();
    trials.any(|trial| trial.number == number && trial.soak)
}

/// Keeps the decode speeds of the trials before: ten hot minutes are no reference for trials of one.
fn keep_speeds(before: &[WorkerLoad], now: &mut [WorkerLoad]) {
    for worker in now {
        if let Some(known) = before.iter().find(|known| known.name == worker.name) {
            worker.token_ms.clone_from(&known.token_ms);
            worker.token_ms_of_trials.clone_from(&known.token_ms_of_trials);
            worker.batch.clone_from(&known.batch);
        }
    }
}

/// Words of the findings, each once.
fn words(findings: &[(Cause, Finding)]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for (_, finding) in findings {
        if !words.contains(&finding.cause) {
            words.push(finding.cause.clone());
        }
    }
    words
}

/// Distances for the status; that of the only gate stands alone. A narrow miss stays one: it is not rounded to 0.
fn several(margins: &[Decimal]) -> Vec<String> {
    let shown = margins
        .iter()
        .map(|margin| show(margin.round_dp_with_strategy(1, RoundingStrategy::AwayFromZero)));
    shown.filter(|_| margins.len() > 1).collect()
}

/// Compares each worker with earlier runs on its GPU. The slowest one decides a gate on that, and where the gates are missed
/// without a cause the comparison of the only worker is part of the evidence.
fn against_earlier_runs(spec: &PerfValidationSpec, status: &mut PerfValidationStatus, judged: &mut JudgedTrial) {
    let earlier = earlier::against(status);
    for worker in &earlier {
        if let Some(load) = status.state.workers.iter_mut().find(|load| load.name == worker.name()) {
            load.percent_of_earlier_runs = Some(worker.shown());
        }
    }
    judged.workers.clone_from(&status.state.workers);
    let Some(slowest) = earlier.iter().min_by_key(|worker| worker.at_most()) else {
        return;
    };
    let missed = judged.judge_own_past(spec, slowest.at_most());
    if missed || slowest.is_slow(earlier.len()) {
        // Its own past is what it is compared with: nothing is "shared by all" any more (one H100 under foreign load).
        judged.drop_cause(Cause::BalancedDegradation);
        if !judged.has(Cause::SlowWorker) {
            judged.add(Cause::SlowWorker, slowest.in_words());
        }
        for gpu in slowest.gpus() {
            if !judged.slow_gpus.iter().any(|known| known == gpu) {
                judged.slow_gpus.push(gpu.to_owned());
            }
        }
    } else if let [only] = earlier.as_slice() {
        judged.append(Cause::BalancedDegradation, &only.in_words());
    }
}

/// Returns true if both are of one cause. Causes with the same word differ in their remedy.
fn is_same(one: &Finding, other: &Finding) -> bool {
    (&one.cause, &one.remedy) == (&other.cause, &other.remedy)
}

/// Keeps one finding per cause: the newest evidence of it.
pub fn keep(known: &mut Vec<Finding>, finding: Finding) {
    match known.iter().position(|known| is_same(known, &finding)) {
        Some(at) => known[at] = finding,
        None if known.len() < FINDINGS => known.push(finding),
        None => {}
    }
}

fn keep_the_most_telling(diagnosis: &mut Vec<Finding>) {
    diagnosis.sort_by_key(Cause::rank);
    diagnosis.truncate(SHOWN);
}
