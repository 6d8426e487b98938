//! Rules on `spec.telemetry`.

use serde_json::{Value, json};

use crate::admission::{Case, accepted, refused};

pub fn cases() -> Vec<Case> {
    let telemetry = |fields: Value| json!({"telemetry": fields});
    let mut cases = vec![
        accepted("no metrics of the GPUs", telemetry(json!({"gpus": "None"}))),
        refused(
            "an endpoint that is not read",
            telemetry(json!({"gpus": "None", "endpoint": "http://a:9400/metrics"})),
            "leave endpoint out",
        ),
    ];
    for page in [
        "http://10.0.0.7:9400/metrics",
        "http://dcgm.gpu-operator.svc/metrics",
        "http://[fd00::7]:9400/metrics",
    ] {
        cases.push(accepted(
            format!("metrics from {page}"),
            telemetry(json!({"endpoint": page})),
        ));
    }
    for page in [
        "",
        "10.0.0.7:9400",
        "https://a/metrics",
        "http://user:word@a/metrics",
        "http://a/metrics?x=1",
        "http://$(HF_TOKEN)/",
        "http:// a/metrics",
    ] {
        cases.push(refused(
            format!("metrics from {page:?}"),
            telemetry(json!({"endpoint": page})),
            "write the exporter's page as http://HOST:PORT/PATH",
        ));
    }
    cases
}
