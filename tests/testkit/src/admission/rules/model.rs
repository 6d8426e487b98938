//! Rules on `spec.model`.

use serde_json::{Value, json};

use crate::admission::{Case, accepted, refused};

pub fn cases() -> Vec<Case> {
    let model = |patch: Value| json!({"model": patch});
    let mut cases = vec![
        refused("model without a name", model(json!({"name": ""})), "write a model id"),
        refused(
            "model that looks like a flag",
            model(json!({"name": "--trust"})),
            "write a model id",
        ),
        accepted(
            "token",
            model(json!({"tokenSecretRef": {"name": "hf-token", "key": "token"}})),
        ),
        refused(
            "token of no Secret",
            model(json!({"tokenSecretRef": {"name": "", "key": "token"}})),
            "write the name and the key of a Secret",
        ),
        refused(
            "token under no key",
            model(json!({"tokenSecretRef": {"name": "hf-token", "key": ""}})),
            "write the name and the key of a Secret",
        ),
        refused(
            "token given twice",
            json!({
                "model": {"tokenSecretRef": {"name": "hf-token", "key": "token"}},
                "workload": {"dynamo": {"env": [{"name": "HF_TOKEN", "value": "x"}]}},
            }),
            "the token is given twice",
        ),
        accepted("cache of a claim", model(json!({"cache": {"claimName": "weights"}}))),
        accepted(
            "cache by size",
            model(json!({"cache": {"size": "100Gi", "storageClassName": "gp3"}})),
        ),
        refused(
            "cache of nothing",
            model(json!({"cache": {}})),
            "write exactly one of claimName",
        ),
        refused(
            "cache of both kinds",
            model(json!({"cache": {"claimName": "weights", "size": "100Gi"}})),
            "write exactly one of claimName",
        ),
        refused(
            "storage class of an existing claim",
            model(json!({"cache": {"claimName": "weights", "storageClassName": "gp3"}})),
            "write size as well",
        ),
        refused(
            "cache without size",
            model(json!({"cache": {"size": "0"}})),
            "write a quantity of bytes above 0",
        ),
        refused(
            "cache of some size",
            model(json!({"cache": {"size": "big"}})),
            "write a quantity of bytes above 0",
        ),
        refused(
            "claim name in capitals",
            model(json!({"cache": {"claimName": "Weights"}})),
            "write the name of an object",
        ),
        refused(
            "storage class of no name",
            model(json!({"cache": {"size": "1Gi", "storageClassName": ""}})),
            "write the name of an object",
        ),
        refused(
            "cache together with HF_HOME",
            json!({"model": {"cache": {"claimName": "weights"}}, "workload": {"dynamo": {"env": [{"name": "HF_HOME", "value": "/x"}]}}}),
            "leave them out of workload.dynamo.env",
        ),
    ];
    for name in [
        "-m",
        "a b",
        "a\nb",
        "a;id",
        "$(HF_TOKEN)",
        "`id`",
        "a'b",
        "a\"b",
        "a\\b",
        "模型",
        "../weights",
        "/etc",
    ] {
        cases.push(refused(
            format!("model {name:?}"),
            model(json!({"name": name})),
            "write a model id",
        ));
    }
    cases
}
