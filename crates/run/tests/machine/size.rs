//! A status stays small with every list at its longest and every text at its largest.

use perfval_api::{
    Comparison, DecodeSpeed, DeviceStatus, EarlierRun, EndedBy, Finding, GateResult, GateStatus, PassedRun, Phase,
    PhaseSeconds, RelativeSpeed, Severity, TimelineEntry, TrialOutcome, TrialState, WorkerLoad, WorkerLoss, WorkerPod,
};
use perfval_run::status;
use perfval_verdict::diagnosis::cause::Cause;

use super::story::Story;

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
        threshold: "1000000000".into(),
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
        peak_in_flight: Some(1000),
        seconds_per_request: Some("123.456".into()),
        tokens_per_second: Some("110847.1".into()),
        token_ms: Some("123.456".into()),
        batch: Some("1024.5".into()),
        percent_of_peers: Some(speed()),
        in_run: Some(speed()),
        percent_of_earlier_runs: Some(speed()),
        cached_percent: Some("99.9".into()),
        still_seconds: Some(600),
        timeouts: Some(600),
        peak_waiting: Some(1000),
        peak_kv_percent: Some(100),
    };
    largest.state.workers = (0..16).map(load).collect();
    let trial = |number: i64| TrialState {
        number,
        job_uid: Some("00000000-0000-4000-8000-000000000000".into()),
        outcome: Some(TrialOutcome::Invalid),
        throughput: Some("110847.123".into()),
        ttft_p99_ms: Some("123456.789".into()),
        errors: Some(100_000),
        requests: Some(100_000),
        seed: Some(4_294_967_295),
        soak: true,
        margin_percent: Some("-1234.56".into()),
        margins: vec!["-123.4".into(); 6],
        started_at: now,
        completed_at: Some(now),
        causes: vec!["RequestErrors".into(), "WorkerCrashed".into(), "RequestErrors".into()],
        far: true,
        slow_gpus: vec!["GPU-00000000-0000-4000-8000-000000000000".into(); 4],
        worker_loss: Some(WorkerLoss::Crashed),
        cpu_shortage: (number == 40).then(|| text[..200].to_owned()),
    };
    largest.state.trials = (1..=40).map(trial).collect();
    largest.timeline = vec![
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
    largest.state.last_passed = largest.environment.clone().map(|environment| PassedRun {
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
        placement.devices = vec![device; 16];
    }

    let size = |status: &_| serde_json::to_string(status).expect("JSON").len();
    assert!(
        size(&largest) > 32 * 1024,
        "the largest status is not large: {}",
        size(&largest)
    );
    let before = largest.clone();
    status::fit(&mut largest);
    assert!(size(&largest) < 32 * 1024, "{}", size(&largest));
    assert_eq!(
        (largest.state.trials.len(), &largest.gates, &largest.workload),
        (40, &before.gates, &before.workload)
    );

    let mut small = story.status();
    status::fit(&mut small);
    assert_eq!(small, story.status(), "what fits is left alone");
}
