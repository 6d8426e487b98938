//! Workers that were ended on a node without free CPUs: their end is no evidence about their GPU, unless they
//! crashed.

use perfval_api::{EndedBy, TrialOutcome, WorkerLoss, WorkerPod};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::{Failure, Outcome, TrialRecord};
use perfval_verdict::node_cpu::NodeCpu;
use perfval_verdict::trial::JudgedTrial;
use perfval_verdict::workers::WorkerSummary;
use rust_decimal::Decimal;

use super::{balanced, first_cause, judged, odd_one, pods, record, sample, worker};

const WORDS: &str = "the 2 CPUs of node n1 were 99 % busy, and threads waited for one in 97 % of the time";

fn on_node(record: TrialRecord, busy: i64, waiting: Option<i64>) -> TrialRecord {
    let node_cpu = Some(NodeCpu {
        node: "n1".into(),
        seconds: 60,
        cpus: Some(2),
        busy_percent: Some(busy.into()),
        waiting_percent: waiting.map(Decimal::from),
    });
    TrialRecord { node_cpu, ..record }
}

fn full(record: TrialRecord) -> TrialRecord {
    on_node(record, 99, Some(97))
}

/// Worker `c` restarted.
fn ended(by: Option<EndedBy>, exit: &str) -> Vec<WorkerPod> {
    let mut after = pods();
    after[2].restarts = 1;
    after[2].ended_by = by;
    after[2].last_exit = Some(exit.into());
    after
}

fn seen_with_loss(verdict: &JudgedTrial) -> (TrialOutcome, Option<Cause>, Option<WorkerLoss>) {
    (verdict.outcome, first_cause(verdict), verdict.worker_loss)
}

const STARVED: (TrialOutcome, Option<Cause>, Option<WorkerLoss>) = (
    TrialOutcome::Invalid,
    Some(Cause::NodeCPUPressure),
    Some(WorkerLoss::Starved),
);

/// Seen beside a busy loop on two cores: `exit code 0 (Completed)`, and answers 500 and 503 meanwhile.
#[test]
fn a_worker_that_its_probe_ended_on_a_full_node_did_not_crash() {
    let by_probe = ended(Some(EndedBy::Probe), "exit code 0 (Completed)");
    // With its gates met, with gates missed, and with a tenth of the requests failed.
    for name in ["success", "slow-worker-kv", "partial-10pct-503"] {
        let verdict = judged(&full(sample(name, balanced())), &by_probe);
        assert_eq!(seen_with_loss(&verdict), STARVED, "{name}");
        let evidence = &verdict.findings[0].1.evidence;
        assert_eq!(
            *evidence,
            format!(
                "worker c restarted: its liveness or startup probe ended it, and its container ended with exit code 0 (Completed); {WORDS}"
            )
        );
        assert_eq!(verdict.cpu_shortage.as_deref(), Some(WORDS), "{name}");
    }
    for (by, exit) in [
        (EndedBy::Request, "exit code 143 (Error)"),
        (EndedBy::Signal, "exit code 137 (Error)"),
    ] {
        let verdict = judged(&full(sample("success", balanced())), &ended(Some(by), exit));
        assert_eq!(seen_with_loss(&verdict), STARVED, "{exit}");
    }
}

#[test]
fn a_worker_that_crashed_is_not_excused_by_a_full_node() {
    let crashed = (
        TrialOutcome::Invalid,
        Some(Cause::WorkerCrashed),
        Some(WorkerLoss::Crashed),
    );
    for exit in ["exit code 139 (Error)", "exit code 137 (OOMKilled)"] {
        let verdict = judged(&full(sample("success", balanced())), &ended(None, exit));
        assert_eq!(seen_with_loss(&verdict), crashed, "{exit}");
    }
    // A crashed worker beside a worker that was ended: the crash counts, and its errors with it.
    let mut both = ended(Some(EndedBy::Probe), "exit code 0 (Completed)");
    both[0].restarts = 1;
    assert_eq!(
        seen_with_loss(&judged(&full(sample("success", balanced())), &both)),
        crashed
    );
    let verdict = judged(&full(sample("partial-10pct-503", balanced())), &both);
    assert_eq!(verdict.outcome, TrialOutcome::Miss);
}

#[test]
fn a_worker_that_its_probe_ended_beside_free_cpus_counts_as_crashed() {
    let by_probe = ended(Some(EndedBy::Probe), "exit code 0 (Completed)");
    let healthy = || sample("success", balanced());
    for (why, record) in [
        ("no counters: unknown is not full", healthy()),
        (
            "idle CPUs, and containers that their own limits stop",
            on_node(healthy(), 60, Some(97)),
        ),
        ("nobody waits", on_node(healthy(), 99, Some(5))),
    ] {
        let verdict = judged(&record, &by_probe);
        assert_eq!(first_cause(&verdict), Some(Cause::WorkerCrashed), "{why}");
        assert_eq!(verdict.cpu_shortage, None, "{why}");
    }
    // Without pressure the busy part decides.
    let old_kernel = on_node(healthy(), 99, None);
    assert_eq!(seen_with_loss(&judged(&old_kernel, &by_probe)), STARVED);
}

#[test]
fn a_full_node_alone_explains_nothing() {
    let verdict = judged(&full(sample("success", balanced())), &pods());
    assert_eq!(seen_with_loss(&verdict), (TrialOutcome::Pass, None, None));
    let verdict = judged(&full(sample("partial-10pct-503", balanced())), &pods());
    assert_eq!(
        seen_with_loss(&verdict),
        (TrialOutcome::Miss, Some(Cause::RequestErrors), None)
    );
}

#[test]
fn trials_without_a_report_are_excused_by_a_full_node_as_well() {
    let by_probe = ended(Some(EndedBy::Probe), "exit code 0 (Completed)");
    for failure in [
        Failure::TimedOut { seconds: 900 },
        Failure::AllFailed {
            failed: 44,
            errors: Vec::new(),
        },
    ] {
        let record = full(record(Outcome::Failure(failure.clone()), balanced()));
        assert_eq!(seen_with_loss(&judged(&record, &by_probe)), STARVED, "{failure:?}");
    }
}

/// The user of the CPUs is unknown, so the gates count; but a reader of the miss must see their use.
#[test]
fn a_gate_missed_on_a_full_node_shows_the_use_of_the_cpus() {
    let evidence = |record: &TrialRecord| {
        let verdict = judged(record, &pods());
        assert_eq!(verdict.outcome, TrialOutcome::Miss);
        let (cause, finding) = verdict.findings.last().expect("a cause").clone();
        assert_eq!(cause, Cause::BalancedDegradation, "{:?}", verdict.findings);
        finding.evidence
    };
    let missed = sample("slow-worker-round-robin", balanced());
    assert!(!evidence(&missed).contains("CPUs"));
    let evidence = evidence(&full(missed));
    assert!(evidence.ends_with(&format!("; {WORDS}")), "{evidence}");
}

/// It refuses connections, and its pod does not show the restart yet.
#[test]
fn a_worker_that_is_gone_on_a_full_node_is_not_yet_a_crash() {
    let refuses = WorkerSummary {
        frozen_seconds: 20,
        failures: 20,
        ..worker("c", 10, 32)
    };
    let workers = odd_one(refuses, |name| worker(name, 17, 32));
    let verdict = judged(&sample("success", workers.clone()), &pods());
    assert_eq!(first_cause(&verdict), Some(Cause::WorkerCrashed));
    let all_failed = Outcome::Failure(Failure::AllFailed {
        failed: 44,
        errors: Vec::new(),
    });
    for trial in [sample("success", workers.clone()), record(all_failed, workers)] {
        let verdict = judged(&full(trial), &pods());
        assert_eq!(seen_with_loss(&verdict), STARVED);
        let evidence = &verdict.findings[0].1.evidence;
        assert!(evidence.starts_with("worker c refused every connection"), "{evidence}");
        assert!(evidence.ends_with(WORDS), "{evidence}");
    }
}
