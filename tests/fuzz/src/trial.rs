//! A trial's record as a pod printed it, judged: any number and any text may be in it.

use std::sync::LazyLock;

use chrono::DateTime;
use perfval_api::{PerfValidation, WorkerPod};
use perfval_verdict::frame::{Failure, Framed, Outcome, TrialRecord, find, find_message};
use perfval_verdict::gate::Share;
use perfval_verdict::judge::judge;
use perfval_verdict::saved::recorded;
use perfval_verdict::trial::Evidence;
use serde_json::json;

const NONCE: &str = "fuzz-1";

static OBJECT: LazyLock<PerfValidation> = LazyLock::new(|| {
    let gate = |metric: &str, statistic: &str, operator: &str| json!({"name": metric.to_lowercase(), "metric": metric, "statistic": statistic, "operator": operator, "threshold": "100", "scaling": "ByGPUShare"});
    let object = json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "metadata": {"name": "fuzz", "namespace": "perf"},
        "spec": {
            "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}},
            "gates": [
                gate("OutputTokenThroughput", "Avg", ">="), gate("TimeToFirstToken", "P99", "<="),
                gate("SlowestWorkerPercent", "Avg", ">="), gate("MemoryBandwidthPercent", "Avg", ">="),
                gate("BaselinePercent", "Avg", ">="),
            ],
        },
    });
    serde_json::from_value(object).expect("well-formed")
});

/// Judges AIPerf's export, a payload, a log with a frame, or a termination message.
pub fn run(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    if let Framed::Complete(payload) = find(&text, NONCE) {
        judged(&payload.record);
    }
    if let Framed::Complete(record) = find_message(&text, NONCE) {
        judged(&record);
    }
    let record = recorded(input).record;
    let understood = !matches!(&record.outcome, Outcome::Failure(Failure::Malformed { .. }));
    judged(&record);
    understood
}

/// The same record for every trial that the rule asks for.
fn judged(record: &TrialRecord) {
    let worker = |name: &str, restarts| WorkerPod {
        pod: format!("pod-{name}"),
        uid: name.to_owned(),
        restarts,
        last_exit: None,
        ended_unseen: false,
        ended_by: None,
        address: Some(format!("10.0.0.{name}")),
        devices: vec![format!("n1/{name}")],
    };
    let before = [worker("1", 0), worker("2", 0)];
    let share = Share { gpus: 2, node_gpus: 8 };
    for after in [before.clone(), [worker("1", 1), worker("2", 0)]] {
        let trial = Evidence {
            before: &before,
            after: &after,
            product: Some("NVIDIA H200"),
            ..Evidence::new(record, share)
        };
        let judgement = judge(&OBJECT, Some(share), &[trial; 3], DateTime::UNIX_EPOCH);
        assert!(judgement.message.len() <= 1024, "{}", judgement.message);
        let findings = &judgement.status.diagnosis;
        assert!(
            findings.iter().all(|finding| finding.evidence.len() <= 1024),
            "{findings:?}"
        );
    }
}
