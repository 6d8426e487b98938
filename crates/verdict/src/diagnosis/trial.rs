//! Causes of a single trial's outcome.

use perfval_api::{EndedBy, Gate, GateOperator, Metric, PerfValidationSpec, RouterMode, Statistic, WorkerPod};
use rust_decimal::Decimal;

use super::cause::{Cause, Explained};
use super::peers::{Worker, gone, longest_still};
use super::roofline::Reached;
use super::speed::{alike, any_slow, compared, unexplained};
use crate::aiperf::{ErrorKind, Report};
use crate::gate::{JudgedGate, show};

/// A latency that is over its threshold by at most this much (percent), with the throughput met, is the jitter of an
/// operating point near the knee: 1,183 and 1,358 ms against 1,100 in the published runs of a healthy node.
pub(super) const KNEE_JITTER: Decimal = Decimal::from_parts(25, 0, 0, true, 0);
/// Part of its time in the frontend that a request spends outside of the workers, above which the frontend is the
/// slow part: up to 0.041 in 69 healthy trials (lab, rig, H200) with any router, 0.26 to 0.33 behind one whose CPU
/// was taken away during the trial or before (tests/fidelity/recorded.jsonl.gz).
pub(super) const ON_THE_WAY: Decimal = Decimal::from_parts(2, 0, 0, false, 1);
/// Time outside of the workers (s) up to which it is the frontend's ordinary work: 0.06 in those healthy trials.
pub(super) const LEAST_REPORTED: Decimal = Decimal::from_parts(2, 0, 0, false, 1);
/// Mean delay of the frontend's event loop (ms) from which it lacks CPU: a delay that Dynamo itself counts as a stall. 1.0 to
/// 1.1 on two H200 under any load and fault, 1.3 on the lab; 6.5 with a ninth of a CPU there, which cost 5 % of the
/// throughput, and 72 to 155 with 3 % of one on the lab.
pub(super) const LATE_LOOP_MS: Decimal = Decimal::from_parts(5, 0, 0, false, 0);
/// Part of its time that a request waits for its first token, above which more requests are in flight than the engines
/// run at once; healthy runs: 0.08 to 0.28.
const WAITING: Decimal = Decimal::from_parts(5, 0, 0, false, 1);
/// Kinds of errors that are shown.
const ERROR_KINDS: usize = 3;
/// Errors of the frontend about a worker that it cannot reach (Dynamo 1.2 to 1.6).
const UNREACHABLE: [&str; 6] = [
    "Connection refused",
    "Connection reset",
    "No healthy TCP connection",
    "CannotConnect",
    "worker_disconnected",
    "Instance disappeared",
];
/// AIPerf's names for a connection that failed. It connects only to the frontend; in the recorded runs they came only
/// together with a frontend that was not ready (503).
const CONNECTION: [&str; 4] = [
    "ClientConnectorError",
    "ClientConnectorDNSError",
    "ClientOSError",
    "ServerDisconnectedError",
];

/// Most telling change of the workers between two looks, such as the start of a trial and its end.
/// `shortage`: use of the node's CPUs meanwhile, where they were full.
pub fn changed(before: &[WorkerPod], after: &[WorkerPod], shortage: Option<&str>) -> Option<Explained> {
    let changes = before.iter().filter_map(|worker| change(worker, after, shortage));
    changes.min_by_key(|(cause, _)| *cause)
}

/// Cause of a change of a worker. The same pod with more restarts crashed, if the crash was visible and the node had free
/// CPUs. Another client removed a pod that is gone.
fn change(worker: &WorkerPod, after: &[WorkerPod], shortage: Option<&str>) -> Option<Explained> {
    let name = &worker.pod;
    let Some(later) = after.iter().find(|later| later.uid == worker.uid) else {
        return Some((Cause::WorkerRestarted, format!("worker {name} is gone")));
    };
    if later.restarts != worker.restarts {
        if later.ended_unseen {
            let unseen = format!("worker {name} restarted, and its exit was not observed, as after a reboot");
            return Some((Cause::WorkerRestarted, unseen));
        }
        let by_probe =
            Some("its liveness or startup probe ended it").filter(|_| later.ended_by == Some(EndedBy::Probe));
        let exit = later.last_exit.as_ref();
        let exit = exit.map(|how| format!("its container ended with {how}"));
        let how: Vec<String> = by_probe.map(str::to_owned).into_iter().chain(exit).collect();
        let how = if how.is_empty() {
            String::new()
        } else {
            format!(": {}", how.join(", and "))
        };
        let restarted = format!("worker {name} restarted{how}");
        // A signal of the process itself (139, 134) or the memory limit is a crash on any node.
        return Some(match shortage.filter(|_| later.ended_by.is_some()) {
            Some(shortage) => (Cause::NodeCPUPressure, format!("{restarted}; {shortage}")),
            None => (Cause::WorkerCrashed, restarted),
        });
    }
    (later.devices != worker.devices).then(|| {
        let names = |devices: &[String]| {
            if devices.is_empty() {
                "none".to_owned()
            } else {
                devices.join(", ")
            }
        };
        let (old, new) = (names(&worker.devices), names(&later.devices));
        (Cause::GPUChanged, format!("worker {name} held {old} and now {new}"))
    })
}

/// Explains failed requests. `changed` is the change of the pods, `text` the number of failed requests.
pub fn errors(
    report: &Report,
    workers: &[Worker<'_>],
    changed: Option<Explained>,
    router: RouterMode,
    text: &str,
) -> Vec<Explained> {
    let lost = match &changed {
        Some((Cause::WorkerCrashed | Cause::WorkerRestarted, _)) => changed.clone(),
        _ => gone(workers),
    };
    let feeds_the_idle = !matches!(router, RouterMode::RoundRobin | RouterMode::Random);
    let unreachable = |error: &ErrorKind| {
        // A short record has no texts.
        error.message.is_empty() || UNREACHABLE.iter().any(|sign| error.message.contains(sign))
    };
    let mut explained = vec![(Cause::RequestErrors, text.to_owned())];
    // The dead worker refuses at once, so it always has the fewest requests.
    let black_hole = feeds_the_idle && (report.errors.is_empty() || report.errors.iter().any(unreachable));
    if let Some((_, what)) = lost.as_ref().filter(|_| black_hole) {
        explained.push((Cause::DeadWorkerBlackHole, format!("{what}; {text}")));
    }
    explained.extend(lost.or(changed));
    explained.extend(frontend_lost(&report.errors));
    explained
}

/// The frontend itself was not there, regardless of its workers: a restart under load fails requests until it is
/// over.
pub fn frontend_lost(errors: &[ErrorKind]) -> Option<Explained> {
    let lost: Vec<ErrorKind> = errors.iter().filter(|error| is_connection(error)).cloned().collect();
    (!lost.is_empty()).then(|| {
        let text = format!("the load generator lost the frontend: {}", most_frequent(&lost));
        (Cause::FrontendLost, text)
    })
}

/// Returns true if the load generator could not connect.
pub fn is_connection(error: &ErrorKind) -> bool {
    CONNECTION.contains(&error.kind.as_str())
}

/// Statistics of a latency beyond the 90th percentile: a few late requests move them.
pub const BEYOND_P90: [Statistic; 3] = [Statistic::P95, Statistic::P99, Statistic::Max];

/// Explains missed gates of a deployment whose workers are all alive and not stalled.
pub fn miss(
    report: &Report,
    workers: &[Worker<'_>],
    spec: &PerfValidationSpec,
    judged: &[JudgedGate],
    reached: Option<&Reached>,
) -> Vec<Explained> {
    let missed = || judged.iter().filter(|gate| gate.is_missed());
    let text = missed().map(JudgedGate::in_words).collect::<Vec<_>>().join("; ");
    // Answers that are too short show no slow hardware.
    let mut gates = spec.gates.iter().zip(judged);
    let is_slow = gates.any(|(gate, judged)| judged.is_missed() && gate.metric != Metric::OutputSequenceLength);
    let shared = shared(workers, judged, reached).filter(|_| is_slow);
    // Half of the throughput, with workers that work alike, is not bad luck, even without a known cause.
    let far = shared.is_some() && !any_slow(&compared(workers, &[])) && missed().any(|gate| gate.far);
    let far = far.then(|| (Cause::FarBelowGate, text.clone()));
    let only_latency = missed().all(|gate| gate.operator == GateOperator::AtMost);
    let of_tail = |gate: &Gate| gate.statistic == Statistic::P90 || BEYOND_P90.contains(&gate.statistic);
    let jitter = spec.gates.iter().zip(judged).all(|(gate, judged)| {
        let just_missed = judged.margin.is_some_and(|margin| margin >= KNEE_JITTER);
        !judged.is_missed() || (just_missed && of_tail(gate) && judged.operator == GateOperator::AtMost)
    });
    let why = frontend_bound(report, workers)
        .or_else(|| jitter.then(|| (Cause::KneeJitter, text.clone())))
        .or_else(|| past_knee(report, workers).filter(|_| only_latency))
        .or(shared);
    why.into_iter().chain(far).collect()
}

/// Evidence that the workers share the slow part: either none of them stands out, or the slowest explains too little.
pub fn shared(workers: &[Worker<'_>], judged: &[JudgedGate], reached: Option<&Reached>) -> Option<Explained> {
    let missed = || judged.iter().filter(|gate| gate.is_missed());
    let rates = missed().filter(|gate| gate.operator == GateOperator::AtLeast);
    let below = rates.filter_map(|gate| gate.margin).min().map(|margin| margin.abs());
    if held_up_enough(workers, below) {
        return None;
    }
    let alike = alike(workers).or_else(|| unexplained(&compared(workers, &[]), below?))?;
    let reached = reached.map_or(String::new(), |reached| format!("; {}", reached.in_words()));
    Some((Cause::BalancedDegradation, alike + &reached))
}

/// Returns true if a worker that stood still for a while explains the miss: `below` is the distance of the worst rate
/// from its gate (percent). All others may wait for it, and catch up later at no better rate.
fn held_up_enough(workers: &[Worker<'_>], below: Option<Decimal>) -> bool {
    longest_still(workers).is_some_and(|worker| {
        let still = Decimal::from(worker.load.still_seconds) * Decimal::ONE_HUNDRED;
        let percent = still.checked_div(worker.load.seconds.into());
        below.is_none_or(|below| below <= percent.unwrap_or(Decimal::ONE_HUNDRED) * Decimal::TWO)
    })
}

/// Evidence that the frontend is the slow part: requests spend their time in it, or it comes late to all its work.
pub fn frontend_bound(report: &Report, workers: &[Worker<'_>]) -> Option<Explained> {
    let found = [time_on_the_way(report, workers), late_loop(report)];
    let texts: Vec<String> = found.into_iter().flatten().collect();
    (!texts.is_empty()).then(|| (Cause::FrontendBound, texts.join("; ")))
}

/// Requests that spend their time in the frontend, by its own histograms. What the load generator measures would not do:
/// on a busy machine it takes 1.5 s for a request that was answered in 0.5 s.
fn time_on_the_way(report: &Report, workers: &[Worker<'_>]) -> Option<String> {
    let seconds = |ms: Option<Decimal>| ms.map(|ms| ms / Decimal::ONE_THOUSAND);
    let queued = seconds(report.frontend.dispatch_wait_ms).unwrap_or_default();
    let inside = seconds_in_workers(workers)?;
    let whole = seconds(report.frontend.request_ms).unwrap_or(inside.saturating_add(queued));
    let outside = whole.saturating_sub(inside).max(queued);
    (outside > whole * ON_THE_WAY && outside > LEAST_REPORTED).then(|| {
        let (whole, inside, queued) = (show(whole), show(inside), show(queued));
        format!("a request took {whole} s in the frontend, {inside} s of them in a worker and {queued} s in its queue for one")
    })
}

/// A frontend without CPU, throttled by its limit or crowded out by its neighbours, by its own measure. Its workers wait for
/// it to take their tokens, so that the time seems to be theirs: 5 of 8 throttled frontends on the lab looked so.
fn late_loop(report: &Report) -> Option<String> {
    let late = report.frontend.loop_delay_ms.filter(|late| *late >= LATE_LOOP_MS)?;
    let late = show(late);
    Some(format!(
        "the frontend lacks CPU: its event loop woke {late} ms late on average, 1 ms is normal"
    ))
}

/// Mean time of a request in a worker (s).
fn seconds_in_workers(workers: &[Worker<'_>]) -> Option<Decimal> {
    let served: Decimal = workers.iter().map(|worker| Decimal::from(worker.load.served)).sum();
    let each = |worker: &Worker<'_>| match worker.load.seconds_per_request {
        Some(seconds) => seconds.checked_mul(worker.load.served.into()),
        None => (worker.load.served == 0).then_some(Decimal::ZERO),
    };
    let mut all = workers.iter().map(each);
    let all = all.try_fold(Decimal::ZERO, |sum, seconds| sum.checked_add(seconds?))?;
    all.checked_div(served)
}

/// More requests in flight than the engines run at once.
fn past_knee(report: &Report, workers: &[Worker<'_>]) -> Option<Explained> {
    let first_token = report.value(Metric::TimeToFirstToken, Statistic::P50)?;
    let latency = report.value(Metric::RequestLatency, Statistic::P50)?;
    if first_token < latency * WAITING {
        return None;
    }
    let waiting: Option<i64> = workers.iter().filter_map(|worker| worker.load.peak_waiting).max();
    // Engines that count who waits, and counted none, run all requests at once.
    if waiting == Some(0) {
        return None;
    }
    let queue = waiting.map_or(String::new(), |n| format!("; up to {n} waited in one engine"));
    let (first_token, latency) = (show(first_token), show(latency));
    Some((
        Cause::PastKnee,
        format!("half of the requests waited {first_token} ms or more of {latency} ms for their first token{queue}"),
    ))
}

/// The most frequent errors with their counts.
pub fn most_frequent(errors: &[ErrorKind]) -> String {
    if errors.is_empty() {
        return "no error text".into();
    }
    let mut errors: Vec<&ErrorKind> = errors.iter().collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    let text = |error: &&ErrorKind| {
        let code = error.code.map_or(String::new(), |code| format!("HTTP {code} "));
        format!("{} × {code}{} {}", error.count, error.kind, error.message)
            .trim_end()
            .to_owned()
    };
    errors.iter().take(ERROR_KINDS).map(text).collect::<Vec<_>>().join(", ")
}
