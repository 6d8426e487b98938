//! A worker whose engine decodes slower than its peers'.

use perfval_api::{GateResult, PerfValidationSpec, TrialOutcome};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::diagnosis::speed::{Compared, slower};
use perfval_verdict::frame::Part;
use perfval_verdict::trial::{Evidence, JudgedTrial, judge};
use perfval_verdict::workers::{EngineWork, WorkerSummary};
use rust_decimal::Decimal;

use crate::{balanced, causes, device, evidence, peers, pods, sample, spec, speed, with_gate};

/// Four balanced workers, and the speed in the metrics of `c`'s engine (percent of its peers', and the interval).
fn workers(percent: i64, within: i64) -> Vec<WorkerSummary> {
    let mut workers = balanced();
    for worker in &mut workers {
        let (token_ms, percent) = if worker.address == "c" {
            (12, percent)
        } else {
            (10, 101)
        };
        worker.speed = Some(speed(token_ms, Some(peers(percent, within))));
        worker.engine = Some(EngineWork {
            gb_per_second: Some(Decimal::from(1900)),
            ..EngineWork::default()
        });
    }
    workers
}

fn judged(workers: Vec<WorkerSummary>, spec: &PerfValidationSpec, product: Option<&str>) -> JudgedTrial {
    let record = sample("success", workers);
    let (pods, devices) = (pods(), ["a", "b", "c", "d"].map(device));
    let evidence = Evidence {
        devices: &devices,
        product,
        ..evidence(&record, &pods)
    };
    judge(evidence, spec)
}

#[test]
fn it_is_a_warning_of_a_trial_that_passes() {
    let trial = judged(workers(85, 3), &spec(), None);
    assert_eq!(
        (trial.outcome, causes(&trial)),
        (TrialOutcome::Pass, vec![Cause::SlowWorker])
    );
    assert_eq!(
        trial.findings[0].1.evidence,
        "worker c (n1/c, GPU-c) decodes at 85 % ± 3 % of its peers' speed: 12 ms from token to token with 200 requests at a time"
    );
    assert_eq!(trial.slow_gpus, ["GPU-c"]);
    assert_eq!(trial.metrics.slowest_worker_percent.as_deref(), Some("85"));
    assert_eq!(
        trial.metrics.detectable_slowdown_percent, None,
        "the workers differ by more than that"
    );

    for (percent, within) in [(93, 3), (85, 12), (94, 0)] {
        let trial = judged(workers(percent, within), &spec(), None);
        assert_eq!(
            (causes(&trial), trial.slow_gpus.len()),
            (vec![], 0),
            "{percent} ± {within}"
        );
    }
}

#[test]
fn a_gate_makes_it_a_miss_that_names_the_gpu_first() {
    let trial = judged(workers(85, 3), &with_gate("SlowestWorkerPercent", "90"), None);
    assert_eq!(
        (trial.outcome, causes(&trial)),
        (TrialOutcome::Miss, vec![Cause::SlowWorker])
    );
    assert_eq!(trial.gates[2].observed.as_deref(), Some("85"));
    // The gate judges the figure, and names whose it is; the history of a GPU wants the whole interval.
    let trial = judged(workers(89, 12), &with_gate("SlowestWorkerPercent", "90"), None);
    assert_eq!(
        (trial.outcome, causes(&trial), trial.slow_gpus.len()),
        (TrialOutcome::Miss, vec![Cause::SlowWorker], 0)
    );
    assert!(
        trial.findings[0]
            .1
            .evidence
            .starts_with("worker c (n1/c, GPU-c) decodes at 89 % ± 12 %")
    );
    assert!(trial.findings[0].1.evidence.ends_with("differs from its peers"));
    let trial = judged(workers(91, 3), &with_gate("SlowestWorkerPercent", "90"), None);
    assert_eq!(trial.outcome, TrialOutcome::Pass);
}

/// On the lab with all engines three times slower, a trial in which one was slower still blamed that one alone.
#[test]
fn a_worker_explains_no_more_than_it_can_hold_up() {
    let asked = |percent: i64| {
        let observed = judged(workers(101, 1), &spec(), None).gates[0].observed.clone();
        let observed: Decimal = observed.and_then(|text| text.parse().ok()).expect("throughput");
        let threshold = observed * Decimal::ONE_HUNDRED / Decimal::from(percent);
        with_gate("OutputTokenThroughput", &threshold.round_dp(1).to_string())
    };
    // At 85 % ± 3 % of its peers' speed it explains 18 %, even if all others wait for it.
    let explained = judged(workers(85, 3), &asked(83), None);
    assert_eq!(causes(&explained), [Cause::SlowWorker]);
    let more = judged(workers(85, 3), &asked(80), None);
    assert_eq!(causes(&more), [Cause::SlowWorker, Cause::BalancedDegradation]);
    assert_eq!(
        more.findings[1].1.evidence,
        "a gate is missed by 20 %, of which a worker at 85 % ± 3 % of its peers' speed explains 18 % at most: what all \
         workers share is slow too"
    );
    // A gate that this worker misses too explains no more.
    let mut both = asked(80);
    both.gates.extend(with_gate("SlowestWorkerPercent", "90").gates.pop());
    both.gates[3].name = "slowest".to_owned();
    let missed = judged(workers(85, 3), &both, None);
    assert_eq!(causes(&missed), [Cause::SlowWorker, Cause::BalancedDegradation]);
    assert_eq!(missed.findings[1].1.evidence, more.findings[1].1.evidence);
    let far = judged(workers(85, 3), &asked(40), None);
    assert!(!far.far, "a repetition may show that worker at its own speed");
}

#[test]
fn a_gate_on_bandwidth_judges_by_the_makers_figures() {
    let gate = |threshold| with_gate("MemoryBandwidthPercent", threshold);
    let trial = judged(workers(100, 3), &gate("35"), Some("NVIDIA H200"));
    assert_eq!(
        (trial.outcome, trial.gates[2].observed.as_deref()),
        (TrialOutcome::Pass, Some("39.6"))
    );
    let trial = judged(workers(100, 3), &gate("50"), Some("NVIDIA H200"));
    assert_eq!(
        (trial.outcome, causes(&trial)),
        (TrialOutcome::Miss, vec![Cause::BalancedDegradation])
    );
    let evidence = &trial.findings[0].1.evidence;
    assert!(
        evidence.starts_with("all 4 workers decode within 1 % of their peers' speed; a GPU 10.6 % slower would have been named; the engines moved 39.6 %"),
        "{evidence}"
    );
}

#[test]
fn numbers_that_no_engine_reports_are_unmeasured() {
    for (metric, workers, product, said) in [
        (
            "SlowestWorkerPercent",
            balanced(),
            None,
            "their engines do not report it",
        ),
        (
            "SlowestWorkerPercent",
            vec![balanced().remove(0)],
            None,
            "and there is 1",
        ),
        (
            "MemoryBandwidthPercent",
            workers(100, 1),
            Some("NVIDIA H300"),
            "NVIDIA H300",
        ),
        (
            "MemoryBandwidthPercent",
            balanced(),
            Some("NVIDIA H200"),
            "--enable-mfu-metrics",
        ),
    ] {
        let trial = judged(workers, &with_gate(metric, "10"), product);
        assert_eq!(
            (trial.outcome, causes(&trial)),
            (TrialOutcome::Invalid, vec![Cause::MetricMissing]),
            "{metric}"
        );
        assert_eq!(trial.gates[2].result, GateResult::Unmeasured);
        assert!(trial.findings[0].1.evidence.contains(said), "{:?}", trial.findings);
    }
}

/// A worker that never answered on its metrics port.
fn unread(worker: WorkerSummary) -> WorkerSummary {
    WorkerSummary {
        address: worker.address,
        failures: 30,
        ..WorkerSummary::default()
    }
}

#[test]
fn a_blocked_metrics_port_is_reported_with_the_gate_that_needs_it() {
    let none = || balanced().into_iter().map(unread).collect::<Vec<_>>();
    let trial = judged(none(), &with_gate("SlowestWorkerPercent", "90"), None);
    assert_eq!(
        (trial.outcome, causes(&trial)),
        (
            TrialOutcome::Invalid,
            vec![Cause::MetricMissing, Cause::WorkersNotSampled]
        )
    );
    let evidence = &trial.findings[0].1.evidence;
    assert!(evidence.ends_with("answered on its metrics port"), "{evidence}");
    assert_eq!(trial.unseen, [], "their engines are unknown");
    let trial = judged(none(), &spec(), None);
    assert_eq!((causes(&trial), trial.unseen), (vec![Cause::WorkersNotSampled], vec![]));

    let mut some = workers(100, 1);
    some[3] = unread(balanced().remove(3));
    let trial = judged(some, &spec(), None);
    assert_eq!((trial.outcome, causes(&trial)), (TrialOutcome::Pass, vec![]));
    let [(Cause::WorkersNotSampled, why)] = &trial.unseen[..] else {
        panic!("not one gap: {:?}", trial.unseen);
    };
    assert!(why.contains("not every worker answered on its metrics port"), "{why}");
}

#[test]
fn an_export_alone_lacks_the_metrics_of_the_workers() {
    for metric in ["SlowestWorkerPercent", "MemoryBandwidthPercent"] {
        let mut record = sample("success", Vec::new());
        record.abridged = [Part::Workers].into();
        let trial = judge(evidence(&record, &[]), &with_gate(metric, "10"));
        assert_eq!(causes(&trial), [Cause::MetricMissing], "{metric}");
        assert_eq!(
            trial.findings[0].1.evidence,
            "gate g needs the workers' metrics, which this record lacks (AIPerf's export alone has none)"
        );
    }
}

#[test]
fn workers_that_could_not_be_compared_are_reported_and_blamed_for_nothing() {
    let unseen = |workers: Vec<WorkerSummary>| {
        let trial = judged(workers, &spec(), None);
        assert_eq!((trial.outcome, causes(&trial)), (TrialOutcome::Pass, Vec::new()));
        trial.unseen
    };
    assert_eq!(unseen(workers(99, 1)), []);

    let mut short = workers(70, 1);
    for worker in &mut short {
        worker.speed.as_mut().expect("a speed").peers = None;
    }
    let [(cause, why)] = &unseen(short)[..] else {
        panic!("nothing is said of a trial that was too short");
    };
    assert_eq!(*cause, Cause::WorkersNotCompared);
    assert!(
        why.contains("4 workers were not compared: they were seen at work together in fewer than 4 windows"),
        "{why}"
    );

    let [(_, why)] = &unseen(balanced())[..] else {
        panic!("nothing is said of engines that do not report their speed");
    };
    assert!(why.contains("do not report the time between tokens"), "{why}");

    let mut one = balanced();
    one.truncate(1);
    assert_eq!(judged(one, &spec(), None).unseen, []);
}

/// As many as the GPUs of one power shelf: the median of all is slow itself.
#[test]
fn three_of_four_that_are_slow_are_named_together() {
    let mut workers = workers(100, 1);
    for worker in &mut workers {
        let percent = if worker.address == "a" { 125 } else { 100 };
        worker.speed.as_mut().expect("a speed").peers = Some(peers(percent, 1));
    }
    let trial = judged(workers.clone(), &with_gate("SlowestWorkerPercent", "90"), None);
    assert_eq!(
        (trial.outcome, causes(&trial)),
        (TrialOutcome::Miss, vec![Cause::SlowWorker])
    );
    assert_eq!(trial.gates[2].observed.as_deref(), Some("80"));
    assert_eq!(
        trial.findings[0].1.evidence,
        "3 of 4 workers decode at 80 % of the fastest worker's speed: GPU-b, GPU-c, GPU-d"
    );
    let trial = judged(workers, &with_gate("OutputTokenThroughput", "8000"), None);
    assert_eq!(causes(&trial), [Cause::SlowWorker, Cause::BalancedDegradation]);
    let evidence = &trial.findings[1].1.evidence;
    let explains = "a worker at 80 % ± 1 % of the fastest worker's speed explains 21 % at most";
    assert!(evidence.contains(explains), "{evidence}");
}

#[test]
fn each_of_five_slow_gpus_is_listed() {
    let described = |slow: usize, known: bool| {
        let workers: Vec<Compared> = (0..8)
            .map(|at| Compared {
                name: format!("pv-2a65add2-worker-77954d744c-mpt6{at}"),
                gpu: format!(" (GPU gpu-node-1/gpu-{at})"),
                uuids: known.then(|| uuid(at)).into_iter().collect(),
                token_ms: Decimal::TEN,
                batch: Decimal::from(200),
                peers: peers(if at < slow { 100 } else { 125 }, 1),
                trials: 1,
            })
            .collect();
        let text = slower(&workers).expect("slow workers");
        assert!(text.len() <= 400, "{text}");
        text
    };
    for slow in 5..=7 {
        let text = described(slow, true);
        assert!((0..slow).all(|at| text.contains(&uuid(at))), "{text}");
    }
    let names = described(5, false);
    assert!(
        names.ends_with("mpt63 (GPU gpu-node-1/gpu-3), pv-2a65add2-worker-77954d744c-mpt64 (GPU gpu-node-1/gpu-4)"),
        "{names}"
    );
    let names = described(7, false);
    assert!(names.ends_with("mpt62 (GPU gpu-node-1/gpu-2) and 4 more"), "{names}");
}

fn uuid(at: usize) -> String {
    format!("GPU-5165af39-0648-336e-8215-55181701b5b{at}")
}
