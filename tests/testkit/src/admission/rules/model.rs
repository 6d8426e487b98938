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
        accepted(
            "cache of a claim",
            model(json!({"cache": {"persistentVolumeClaim": {"claimName": "weights"}}})),
        ),
        accepted(
            "cache by size",
            model(json!({"cache": {"volumeClaimTemplate": {"storage": "100Gi", "storageClassName": "gp3"}}})),
        ),
        refused(
            "cache of nothing",
            model(json!({"cache": {}})),
            "write exactly one member: persistentVolumeClaim",
        ),
        refused(
            "cache of both kinds",
            model(
                json!({"cache": {"persistentVolumeClaim": {"claimName": "weights"}, "volumeClaimTemplate": {"storage": "100Gi"}}}),
            ),
            "write exactly one member: persistentVolumeClaim",
        ),
        refused(
            "cache without size",
            model(json!({"cache": {"volumeClaimTemplate": {"storage": "0"}}})),
            "write a quantity of bytes above 0",
        ),
        refused(
            "cache of some size",
            model(json!({"cache": {"volumeClaimTemplate": {"storage": "big"}}})),
            "write a quantity of bytes above 0",
        ),
        refused(
            "claim name in capitals",
            model(json!({"cache": {"persistentVolumeClaim": {"claimName": "Weights"}}})),
            "write the name of an object",
        ),
        refused(
            "storage class of no name",
            model(json!({"cache": {"volumeClaimTemplate": {"storage": "1Gi", "storageClassName": ""}}})),
            "write the name of an object",
        ),
        refused(
            "cache together with HF_HOME",
            json!({"model": {"cache": {"persistentVolumeClaim": {"claimName": "weights"}}}, "workload": {"dynamo": {"env": [{"name": "HF_HOME", "value": "/x"}]}}}),
            "leave them out of workload.dynamo.env",
        ),
    ];
    cases.extend(revisions());
    cases.extend(places());
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

const COMMIT: &str = "b968826d9c46dd6066d109eabc6255188de91218";

fn own_cache(modes: &Value) -> Value {
    json!({"volumeClaimTemplate": {"storage": "100Gi", "accessModes": modes}})
}

fn existing_claim() -> Value {
    json!({"persistentVolumeClaim": {"claimName": "weights"}})
}

fn revisions() -> Vec<Case> {
    let pinned = |cache: Value, worker: Value| json!({"model": {"revision": COMMIT, "cache": cache}, "workload": {"dynamo": {"worker": worker}}});
    let own = || own_cache(&json!(["ReadWriteOnce"]));
    vec![
        accepted("revision of an own cache", pinned(own(), json!({}))),
        accepted("revision of an existing claim", pinned(existing_claim(), json!({}))),
        accepted(
            "revision of an own cache for an own command",
            pinned(own(), json!({"command": ["serve"]})),
        ),
        refused(
            "revision of an existing claim for an own command",
            pinned(existing_claim(), json!({"command": ["serve"]})),
            "your own command sets the revision",
        ),
        refused(
            "revision without a cache",
            json!({"model": {"revision": COMMIT}}),
            "without a cache Dynamo loads the newest revision",
        ),
        refused(
            "revision that is a branch",
            json!({"model": {"revision": "main", "cache": own()}}),
            "write the whole commit",
        ),
        refused(
            "revision given twice",
            pinned(own(), json!({"args": ["--revision", "main"]})),
            "the revision is given twice",
        ),
        refused(
            "revision of the tokenizer with underscores",
            pinned(own(), json!({"args": ["--tokenizer_revision=main"]})),
            "the revision is given twice",
        ),
    ]
}

fn places() -> Vec<Case> {
    let generator = |cache: Value| json!({"model": {"cache": cache}, "benchmark": {"placement": "Anywhere"}});
    let frontend = |cache: Value| json!({"model": {"cache": cache}, "workload": {"dynamo": {"frontend": {"placement": "Anywhere"}}}});
    let mut cases = Vec::new();
    for (name, place) in [
        ("load generator", &generator as &dyn Fn(Value) -> Value),
        ("frontend", &frontend),
    ] {
        cases.push(accepted(
            format!("{name} anywhere with weights on every node"),
            place(own_cache(&json!(["ReadWriteMany"]))),
        ));
        for (what, cache) in [
            ("own", own_cache(&json!(["ReadWriteOnce"]))),
            ("existing", existing_claim()),
        ] {
            cases.push(refused(
                format!("{name} anywhere with weights in an {what} claim"),
                place(cache),
                "the weights may be on the node under test only",
            ));
        }
    }
    cases
}
