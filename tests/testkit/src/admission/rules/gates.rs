//! Rules on `spec.gates`.

use serde_json::{Value, json};

use crate::admission::{Case, accepted, merge, refused};

pub fn cases() -> Vec<Case> {
    let gate = |name: &str, metric: &str, operator: &str, patch: Value| {
        let mut gate = json!({"name": name, "metric": metric, "operator": operator, "threshold": "1"});
        merge(&mut gate, patch);
        gate
    };
    let gates = |gates: &[Value]| json!({"gates": gates});
    let throughput = |patch: Value| gates(&[gate("throughput", "OutputTokenThroughput", ">=", patch)]);
    let ttft = |patch: Value| gates(&[gate("ttft", "TimeToFirstToken", "<=", patch)]);
    let mut cases = vec![
        accepted(
            "gates of one metric",
            gates(&[
                gate("ttft-p50", "TimeToFirstToken", "<=", json!({"statistic": "P50"})),
                gate("ttft-p99", "TimeToFirstToken", "<=", json!({"statistic": "P99"})),
            ]),
        ),
        refused(
            "gate in capitals",
            gates(&[gate("TTFT", "TimeToFirstToken", "<=", json!({}))]),
            "such as ttft-p99",
        ),
        refused(
            "percentile of a rate",
            throughput(json!({"statistic": "P99"})),
            "an average only",
        ),
        accepted(
            "percentile of a rate that each request has",
            gates(&[gate(
                "tps",
                "OutputTokenThroughputPerUser",
                ">=",
                json!({"statistic": "P1"}),
            )]),
        ),
        refused(
            "upper limit of the fastest request",
            ttft(json!({"statistic": "Min"})),
            "write Avg, Max or a percentile such as P99",
        ),
        accepted("upper limit of the spread", ttft(json!({"statistic": "Std"}))),
        refused(
            "upper bound on throughput",
            throughput(json!({"operator": "<="})),
            "more of this metric is better",
        ),
        refused(
            "lower bound on a latency",
            ttft(json!({"operator": ">="})),
            "less of this metric is better",
        ),
        accepted(
            "bounds on the output length",
            gates(&[
                gate("osl-min", "OutputSequenceLength", ">=", json!({})),
                gate("osl-max", "OutputSequenceLength", "<=", json!({})),
            ]),
        ),
        accepted("throughput per GPU", throughput(json!({"scaling": "PerGPU"}))),
        refused(
            "latency per GPU",
            ttft(json!({"scaling": "PerGPU"})),
            "write scaling None",
        ),
        refused(
            "latency by share",
            ttft(json!({"scaling": "ByGPUShare"})),
            "write scaling None",
        ),
        accepted(
            "a GPU's own past",
            gates(&[gate("past", "OwnPastPercent", ">=", json!({"threshold": "90"}))]),
        ),
        refused(
            "upper bound on a GPU's own past",
            gates(&[gate("past", "OwnPastPercent", "<=", json!({"threshold": "90"}))]),
            "more of this metric is better",
        ),
        refused(
            "percentile of a GPU's own past",
            gates(&[gate(
                "past",
                "OwnPastPercent",
                ">=",
                json!({"threshold": "90", "statistic": "P50"}),
            )]),
            "an average only",
        ),
        refused(
            "a GPU's own past per GPU",
            gates(&[gate(
                "past",
                "OwnPastPercent",
                ">=",
                json!({"threshold": "90", "scaling": "PerGPU"}),
            )]),
            "write scaling None",
        ),
        accepted(
            "a baseline beside the throughput",
            gates(&[
                gate("norm", "BaselinePercent", ">=", json!({"threshold": "90"})),
                gate("t", "OutputTokenThroughput", ">=", json!({})),
            ]),
        ),
        refused(
            "no gate that judges without a baseline or earlier runs",
            gates(&[
                gate("norm", "BaselinePercent", ">=", json!({"threshold": "90"})),
                gate("past", "OwnPastPercent", ">=", json!({"threshold": "90"})),
                gate("t", "OutputTokenThroughput", ">=", json!({"mode": "Warn"})),
            ]),
            "add another gate of mode Enforce",
        ),
        refused(
            "upper bound on the speed against a baseline",
            gates(&[gate("norm", "BaselinePercent", "<=", json!({"threshold": "90"}))]),
            "more of this metric is better",
        ),
        refused(
            "more than the baseline",
            gates(&[gate("norm", "BaselinePercent", ">=", json!({"threshold": "101"}))]),
            "a threshold of at most 100",
        ),
        refused(
            "goodput without objectives",
            gates(&[gate("good", "Goodput", ">=", json!({}))]),
            "a gate on Goodput needs objectives",
        ),
        refused(
            "slowest worker of one",
            gates(&[gate(
                "slowest",
                "SlowestWorkerPercent",
                ">=",
                json!({"threshold": "90"}),
            )]),
            "one worker has no peer",
        ),
        accepted(
            "warning about the slowest worker of one",
            gates(&[gate(
                "slowest",
                "SlowestWorkerPercent",
                ">=",
                json!({"threshold": "90", "mode": "Warn"}),
            )]),
        ),
        accepted(
            "slowest worker of two",
            json!({
                "placement": {"minGPUs": 2},
                "gates": [gate("slowest", "SlowestWorkerPercent", ">=", json!({"threshold": "100"}))],
            }),
        ),
        refused(
            "slowest worker of one with two GPUs",
            json!({
                "placement": {"minGPUs": 2},
                "workload": {"dynamo": {"worker": {"gpus": 2}}},
                "gates": [gate("slowest", "SlowestWorkerPercent", ">=", json!({"threshold": "90"}))],
            }),
            "placement.minGPUs for at least two workers",
        ),
        refused(
            "slowest worker faster than its peers",
            json!({
                "placement": {"minGPUs": 2},
                "gates": [gate("slowest", "SlowestWorkerPercent", ">=", json!({"threshold": "101"}))],
            }),
            "a threshold of at most 100",
        ),
        refused(
            "more than the whole bandwidth",
            gates(&[gate(
                "memory",
                "MemoryBandwidthPercent",
                ">=",
                json!({"threshold": "500"}),
            )]),
            "a threshold of at most 100",
        ),
        accepted(
            "goodput",
            json!({
                "benchmark": {"goodput": [{"metric": "RequestLatency", "max": "2k"}]},
                "gates": [gate("good", "Goodput", ">=", json!({}))],
            }),
        ),
    ];
    for threshold in ["1n", "100m", "0.5", "50000", "50k", "1Ki", "2e3", "1G"] {
        cases.push(accepted(
            format!("threshold {threshold}"),
            ttft(json!({"threshold": threshold})),
        ));
    }
    for threshold in ["", "0", "-1", "2001M", "fast", "5 k", "1,000", "NaN"] {
        cases.push(refused(
            format!("threshold {threshold:?}"),
            ttft(json!({"threshold": threshold})),
            "write a quantity above 0",
        ));
    }
    cases
}
