//! A status stays small with every list at its longest and every text at its largest.

use chrono::TimeDelta;
use perfval_api::{
    Comparison, DecodeSpeed, DeviceStatus, EarlierRun, EndedBy, Finding, GateResult, GateStatus, PassedRun,
    PerfValidationStatus, Phase, PhaseSeconds, RelativeSpeed, Severity, TimelineEntry, TrialOutcome, TrialState,
    Verdict, WorkerLoad, WorkerLoss, WorkerPod,
};
use perfval_run::status::{fit, publish};
use perfval_sizing::hold;
use perfval_testkit::random::random_numbers;
use perfval_verdict::diagnosis::cause::Cause;

use serde_json::json;

use super::story::Story;

/// Size of a stored status (bytes).
fn size(status: &PerfValidationStatus) -> usize {
    serde_json::to_string(status).expect("JSON").len()
}

/// Digits as a measurement has them: no two values are equal.
struct Digits(Box<dyn FnMut() -> u64>);

impl Digits {
    fn next(&mut self) -> u64 {
        (self.0)() >> 33
    }

    /// A number near a value, with three digits after the point.
    fn near(&mut self, value: u64) -> String {
        format!(
            "{}.{:03}",
            value + self.next() % (value / 10 + 1),
            self.next() % 999 + 1
        )
    }

    fn uuid(&mut self) -> String {
        let (a, b, c) = (self.next(), self.next(), self.next());
        format!(
            "{a:08x}-{:04x}-4{:03x}-{:04x}-{b:08x}{:04x}",
            c & 0xffff,
            a & 0xfff,
            b & 0xffff,
            c >> 15
        )
    }
}

/// A status after ten earlier runs, whose trials measured eight GPUs eight times.
fn usual_of_eight() -> PerfValidationStatus {
    let mut story = Story::with(json!({"trials": {"rule": "Sequential", "max": 8}}));
    story.until(Phase::Completed);
    let (now, mut status) = (story.now, story.status());
    let mut digits = Digits(Box::new(random_numbers(7)));
    let node = "gpu-node-17.eu-central-1.compute.internal";
    let devices: Vec<DeviceStatus> = (0..8)
        .map(|n| DeviceStatus {
            pool: node.into(),
            name: format!("gpu-{n}"),
            uuid: Some(format!("GPU-{}", digits.uuid())),
        })
        .collect();
    let uuid = |n: usize| devices[n].uuid.clone().expect("a UUID");
    let pod = |n: usize| format!("pv-3f9a1c07-0-worker-859d48dcbf-hfh7{n}");
    let speed = |digits: &mut Digits, of| RelativeSpeed {
        percent: format!("{:.5}", digits.near(99)),
        within: "3.4".into(),
        of,
    };
    status.state.workers = (0..8)
        .map(|n| WorkerLoad {
            name: pod(n),
            served: i64::try_from(900 + digits.next() % 100).ok(),
            requests_per_second: Some(digits.near(15)),
            mean_in_flight: Some(digits.near(240)),
            seconds_per_request: Some(digits.near(16)),
            tokens_per_second: Some(digits.near(13_800)),
            token_ms: Some(digits.near(18)),
            token_ms_of_trials: (0..8).map(|_| digits.near(18)).collect(),
            batch: Some(digits.near(240)),
            percent_of_peers: Some(speed(&mut digits, 1)),
            in_run: Some(speed(&mut digits, 8)),
            percent_of_earlier_runs: Some(speed(&mut digits, 10)),
            still_seconds: None,
            timeouts: None,
        })
        .collect();
    status.state.worker_pods = (0..8)
        .map(|n| WorkerPod {
            pod: pod(n),
            uid: digits.uuid(),
            address: Some(format!("10.244.13.{}", 100 + n)),
            devices: vec![format!("{node}/gpu-{n}")],
            ..WorkerPod::default()
        })
        .collect();
    status.state.trials = (1..=8)
        .map(|number| TrialState {
            number,
            outcome: Some(TrialOutcome::Pass),
            throughput: Some(digits.near(110_000)),
            ttft_p99_ms: Some(digits.near(1_400)),
            errors: Some(0),
            requests: Some(7_680),
            job_uid: Some(digits.uuid()),
            seed: i64::try_from(digits.next()).ok(),
            margin_percent: Some("2.6".into()),
            margins: vec!["2.6".into(), "28.4".into()],
            started_at: now,
            completed_at: Some(now),
            ..TrialState::default()
        })
        .collect();
    let run = |run: i64, digits: &mut Digits| EarlierRun {
        run,
        verdict: Some(Verdict::Passed),
        reason: "GatesMet".into(),
        node: Some(node.into()),
        throughput: Some(digits.near(110_000)),
        ttft_p99_ms: Some(digits.near(1_400)),
        throughput_spread: Some(digits.near(4)),
        trials: Some(8),
        environment: Some("508aa5da404d".into()),
        causes: Vec::new(),
        speeds: (0..8)
            .map(|n| DecodeSpeed {
                token_ms: digits.near(18),
                batch: digits.near(240),
                gpu: Some(uuid(n)),
            })
            .collect(),
        slow_gpus: Vec::new(),
        phases: (Phase::ALL.iter().take(7))
            .map(|&phase| PhaseSeconds {
                phase,
                seconds: i64::try_from(digits.next() % 600).expect("small"),
            })
            .collect(),
        completed_at: now,
    };
    status.state.history = (1..=10).rev().map(|number| run(number, &mut digits)).collect();
    let environment = status.state.environment.as_mut().expect("an environment");
    environment.model = "Qwen/Qwen3-8B".into();
    environment.image = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1".into();
    environment.image_digest = Some(format!("{}@sha256:{}", environment.image, "442149e7".repeat(8)));
    status.state.last_passed = Some(PassedRun {
        run: 10,
        throughput: Some(digits.near(110_000)),
        ttft_p99_ms: Some(digits.near(1_400)),
        trials: Some(8),
        environment: environment.clone(),
    });
    status.state.comparison = Some(Comparison {
        run: 10,
        throughput_percent: Some("-1.2".into()),
        throughput_within: Some("3".into()),
        ttft_p99_percent: Some("+4.2".into()),
        ttft_p99_within: Some("12".into()),
        differs: Vec::new(),
    });
    let placement = status.placement.as_mut().expect("a placement");
    (placement.node, placement.gpus, placement.node_gpus) = (node.into(), 8, 8);
    hold(placement, &mut status.state.plan, devices);
    let message = "8/8 GPUs on gpu-node-17.eu-central-1.compute.internal: throughput 112847 tok/s (≥ 108000), \
                   ttft-p99 1433 ms (≤ 2000); trials: 8 passed; against run 10: tok/s -1.2 % ± 3 %";
    status.message = Some(message.into());
    for condition in &mut status.conditions {
        condition.message = message.into();
    }
    let finding = |cause: Cause| Finding {
        cause: cause.as_str().into(),
        severity: Severity::Warning,
        evidence: message.into(),
        remedy: cause.remedy().into(),
    };
    status.diagnosis = [Cause::SlowWorker, Cause::GPUsMissing, Cause::BalancedDegradation]
        .map(finding)
        .into();
    publish(&mut status);
    status
}

/// etcd stores every version of a status, and every watcher receives it.
#[test]
fn a_status_of_eight_gpus_eight_trials_and_ten_earlier_runs_has_at_most_16_kib() {
    let mut status = usual_of_eight();
    let before = status.clone();
    assert!(size(&status) <= 16 * 1024, "{} bytes", size(&status));
    fit(&mut status);
    assert_eq!(status, before, "nothing is left out");
    let json = serde_json::to_string(&status).expect("JSON");
    assert_eq!(
        serde_json::from_str::<PerfValidationStatus>(&json).expect("a status"),
        before
    );
}

#[test]
fn every_cut_keeps_failed_requests_and_the_start_of_the_gpu_time() {
    let mut status = usual_of_eight();
    // It lost the GPUs of its first deployment, and waited for others.
    let lost = TimelineEntry {
        phase: Phase::Deploying,
        started_at: status.state.timeline[0].started_at - TimeDelta::hours(2),
        completed_at: None,
    };
    status.state.timeline.insert(0, lost);
    let held = status.held_gpus();
    status.state.trials[0].errors = Some(31);
    status.message = Some("long ".repeat(8 * 1024));
    fit(&mut status);
    assert_eq!(status.held_gpus(), held);
    assert_eq!(status.state.timeline.len(), 5, "{:?}", status.state.timeline);
    let counts: Vec<_> = (status.state.trials.iter())
        .map(|trial| (trial.errors, trial.requests))
        .collect();
    assert_eq!(counts[..2], [(Some(31), Some(7_680)), (None, None)]);
}

#[test]
fn the_largest_status_fits() {
    let mut story = Story::new();
    story.until(Phase::Benchmarking);
    let text = "ö".repeat(512);
    let now = story.now;
    let mut largest = story.status();
    largest.message = Some(text.clone());
    let finding = |cause: Cause| Finding {
        cause: cause.as_str().into(),
        severity: Severity::Warning,
        evidence: text[..400].to_owned(),
        remedy: cause.remedy().into(),
    };
    largest.diagnosis = Cause::ALL.map(finding).into();
    for condition in &mut largest.conditions {
        condition.message.clone_from(&text);
    }
    let gate = |n: usize| GateStatus {
        name: format!("a-gate-with-a-long-name-{n}"),
        observed: Some("110847.123".into()),
        effective: "999999999.999".into(),
        result: GateResult::Missed,
        margin_percent: Some("-1000000.25".into()),
    };
    largest.gates = (0..32).map(gate).collect();
    let speed = || RelativeSpeed {
        percent: "100.12".into(),
        within: "12.34".into(),
        of: 20,
    };
    let load = |n: usize| WorkerLoad {
        name: format!("pv-3f9a1c07-worker-859d48dcbf-{n:05}"),
        served: Some(100_000),
        requests_per_second: Some("1234.567".into()),
        mean_in_flight: Some("1234.56".into()),
        seconds_per_request: Some("123.456".into()),
        tokens_per_second: Some("110847.1".into()),
        token_ms: Some("123.456".into()),
        token_ms_of_trials: vec!["123.456".into(); 20],
        batch: Some("1024.5".into()),
        percent_of_peers: Some(speed()),
        in_run: Some(speed()),
        percent_of_earlier_runs: Some(speed()),
        still_seconds: Some(600),
        timeouts: Some(600),
    };
    largest.state.workers = (0..16).map(load).collect();
    let trial = |number: i64| TrialState {
        number,
        queued: false,
        job_uid: Some("00000000-0000-4000-8000-000000000000".into()),
        outcome: Some(TrialOutcome::Invalid),
        throughput: Some("110847.123".into()),
        ttft_p99_ms: Some("123456.789".into()),
        errors: Some(100_000),
        requests: Some(100_000),
        seed: Some(4_294_967_295),
        soak: true,
        margin_percent: Some("-1234.56".into()),
        margins: vec!["-123.4".into(); 32],
        started_at: now,
        completed_at: Some(now),
        causes: vec!["RequestErrors".into(), "WorkerCrashed".into(), "RequestErrors".into()],
        far: true,
        slow_gpus: vec!["GPU-00000000-0000-4000-8000-000000000000".into(); 4],
        worker_loss: Some(WorkerLoss::Crashed),
        cpu_shortage: (number == 40).then(|| text[..200].to_owned()),
    };
    largest.state.trials = (1..=40).map(trial).collect();
    largest.state.timeline = vec![
        TimelineEntry {
            phase: Phase::WaitingForReady,
            started_at: now,
            completed_at: Some(now)
        };
        32
    ];
    let entry = EarlierRun {
        run: 1_000_000,
        verdict: None,
        reason: "DeploymentRejected".into(),
        node: Some("gpu-node-with-a-long-name.example.com".into()),
        throughput: Some("110847.123".into()),
        ttft_p99_ms: Some("123456.789".into()),
        throughput_spread: Some("12.34".into()),
        trials: Some(20),
        environment: Some("0123456789ab".into()),
        causes: vec!["RequestErrors".into(); 3],
        speeds: vec![
            DecodeSpeed {
                token_ms: "123.456".into(),
                batch: "1024.5".into(),
                gpu: Some("GPU-00000000-0000-4000-8000-000000000000".into()),
            };
            16
        ],
        slow_gpus: vec!["GPU-00000000-0000-4000-8000-000000000000".into(); 4],
        phases: Phase::ALL
            .iter()
            .map(|&phase| PhaseSeconds { phase, seconds: 86_400 })
            .collect(),
        completed_at: now,
    };
    largest.state.history = vec![entry; 10];
    largest.state.last_passed = largest.state.environment.clone().map(|environment| PassedRun {
        run: 1,
        throughput: Some("110847.123".into()),
        ttft_p99_ms: Some("123456.789".into()),
        trials: Some(20),
        environment,
    });
    largest.state.comparison = Some(Comparison {
        run: 1,
        throughput_percent: None,
        throughput_within: None,
        ttft_p99_percent: None,
        ttft_p99_within: None,
        differs: vec![text[..160].to_owned(); 8],
    });
    let name = "pv-3f9a1c07-worker-859d48dcbf-hfh79";
    {
        let uid = "e42ae774-0e01-41b2-bff3-f9a7a2eacaf1".to_owned();
        let worker = WorkerPod {
            pod: name.into(),
            uid,
            restarts: 10_000,
            last_exit: Some("exit code 143 (Error)".into()),
            ended_unseen: false,
            ended_by: Some(EndedBy::Probe),
            address: Some("2001:db8:85a3::8a2e:370:7334".into()),
            devices: vec![format!("{name}/gpu-10")],
        };
        largest.state.worker_pods = vec![worker; 16];
    }
    if let Some(placement) = &mut largest.placement {
        let device = DeviceStatus {
            pool: name.into(),
            name: "gpu-10".into(),
            uuid: Some(format!("GPU-{name}")),
        };
        hold(placement, &mut largest.state.plan, vec![device; 16]);
    }

    assert!(
        size(&largest) > 32 * 1024,
        "the largest status is not large: {}",
        size(&largest)
    );
    let before = largest.clone();
    fit(&mut largest);
    assert!(size(&largest) < 32 * 1024, "{}", size(&largest));
    assert_eq!(
        (largest.state.trials.len(), &largest.gates, &largest.workload),
        (40, &before.gates, &before.workload)
    );

    let mut small = story.status();
    fit(&mut small);
    assert_eq!(small, story.status(), "what fits is left alone");
}
