//! Rules on every wait.

use serde_json::json;

use crate::admission::{Case, accepted, merge, refused};

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        accepted("no wait for GPUs", json!({"timeouts": {"sizing": "0s"}})),
        accepted(
            "a probe as long as its wait",
            json!({"timeouts": {"endpointProbe": "5m"}}),
        ),
        refused(
            "a probe longer than its wait",
            json!({"timeouts": {"endpointProbe": "6m"}}),
            "one probe outlives",
        ),
    ];
    let short = |benchmark: serde_json::Value| {
        let mut spec = json!({"benchmark": {"requestTimeout": "10s"}, "timeouts": {"benchmark": "75s"}});
        merge(&mut spec, json!({ "benchmark": benchmark }));
        spec
    };
    cases.push(refused(
        "a limit shorter than the trial's default length",
        short(json!({})),
        "the trial outlives its limit",
    ));
    cases.push(accepted(
        "a short trial with a short limit",
        short(json!({"duration": "20s"})),
    ));
    // The runner ends AIPerf 45 s before the limit, or at half of it, to report it.
    cases.push(refused(
        "a limit without time to report",
        short(json!({"duration": "28s"})),
        "the trial outlives its limit",
    ));
    cases.push(accepted(
        "a trial of a number of requests with a short limit",
        short(json!({"minRequests": 10})),
    ));
    let waits = [
        "prerequisites",
        "sizing",
        "modelCache",
        "workloadReady",
        "endpointReady",
        "endpointProbe",
        "benchmark",
        "cleanup",
    ];
    let fields = waits
        .map(|name| ("timeouts", name))
        .into_iter()
        .chain([("benchmark", "requestTimeout"), ("timeouts", "total")]);
    for (group, field) in fields {
        // Next to longest waits, so that no rule between two fields answers.
        let set = |value: &str| {
            let mut spec = json!({
                "benchmark": {"minRequests": 1}, "timeouts": {"benchmark": "24h", "endpointReady": "24h"},
            });
            merge(&mut spec, json!({group: {field: value}}));
            if field == "endpointReady" {
                merge(&mut spec, json!({"timeouts": {"endpointProbe": "500ms"}}));
            }
            if (group, field) == ("timeouts", "benchmark") {
                merge(&mut spec, json!({"benchmark": {"requestTimeout": "500ms"}}));
            }
            spec
        };
        for value in ["500ms", "1h5m", "1.5h", "24h"] {
            cases.push(accepted(format!("{group}.{field} {value}"), set(value)));
        }
        for value in ["", "5", "5 m", "-5m", "1d", "24h1s"] {
            cases.push(refused(
                format!("{group}.{field} {value:?}"),
                set(value),
                "write a Go duration",
            ));
        }
        if field != "sizing" {
            cases.push(refused(
                format!("{group}.{field} of nothing"),
                set("0s"),
                "write a Go duration above 0s",
            ));
        }
    }
    cases
}
