use perfval_api::{GpuMetrics, RunFailure};
use perfval_verdict::frame::{Failure, Outcome};
use serde_json::json;

use super::*;

fn spec(env: &Value) -> PerfValidationSpec {
    let worker = json!({"args": ["--api-key", "open sesame", "--hf-token=plain-old-token"]});
    let workload = json!({"dynamo": {"image": "i", "env": env, "worker": worker}});
    serde_json::from_value(json!({"model": {"name": "m"}, "workload": workload})).expect("well-formed")
}

fn redactor(env: &Value) -> Redactor {
    Redactor::new(&spec(env))
}

#[test]
fn a_saved_trial_has_no_secrets() {
    let redactor = redactor(&json!([{"name": "DB_PASSWORD", "value": r#"pa"ss\word"#}]));
    let payload = |text: &str| {
        let outcome = Outcome::Failure(Failure::Exited { tail: text.to_owned() });
        let record = json!({"nonce": "n", "exitCode": 1, "outcome": outcome});
        let mut payload = Payload::new(serde_json::from_value(record).expect("a record"));
        payload = payload
            .with_export(&json!({"command": text}).to_string())
            .expect("JSON");
        redactor.redact_payload(&mut payload);
        serde_json::to_string(&payload).expect("JSON")
    };
    for (text, secret) in [
        ("--hf-token plain-old-token", "plain-old-token"),
        (r#"login with pa"ss\word"#, r"ss\\word"),
    ] {
        let saved = payload(text);
        assert!(!saved.contains(secret) && !saved.contains("command"), "{saved}");
    }
    assert!(payload("--streaming").contains(r#"{"command":"--streaming"}"#));
    let cut = payload("refused plain-old-to…");
    assert!(cut.contains("refused [hidden]…"), "{cut}");
}

#[test]
fn a_status_has_no_secrets_in_its_texts() {
    let redactor = redactor(&json!([]));
    let text = "401 for hf_abcdefghijklmnop: denied";
    let mut status: PerfValidationStatus = serde_json::from_value(json!({
        "message": text,
        "conditions": [{"type": "Passed", "status": "False", "reason": "GatesMissed", "message": text, "lastTransitionTime": "2026-11-21T00:00:00Z"}],
        "workload": {"name": "w", "workersReady": 0, "gpuMetrics": text},
        "diagnosis": [{"cause": "WorkerStall", "severity": "Warning", "evidence": text, "remedy": text}],
    }))
    .expect("a status");
    let failure = || {
        Some(RunFailure {
            reason: "CallFailed".to_owned(),
            message: text.to_owned(),
        })
    };
    (status.state.failure, status.state.unanswered) = (failure(), failure());
    status.state.deployment.get_or_insert_default().gpu_metrics = Some(GpuMetrics::Missing(text.to_owned()));
    redactor.redact_status(&mut status);
    let shown = serde_json::to_string(&status).expect("JSON");
    assert!(!shown.contains("hf_abc"), "{shown}");
    assert_eq!(shown.matches("[hidden]").count(), 8, "{shown}");
}

#[test]
fn hides_what_may_be_a_secret_and_nothing_else() {
    let redactor = redactor(&json!([
        {"name": "CACHE_PASSWORD", "value": "correct horse"},
        {"name": "MODE", "value": "eager mode"},
    ]));
    let cases = [
        ("401 for hf_abcdefghijklmnop: denied", "401 for [hidden]: denied"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [hidden]"),
        ("HF_TOKEN=abc next", "HF_TOKEN=[hidden] next"),
        (r#"{"api_key":"abc","n":1}"#, r#"{"api_key":[hidden],"n":1}"#),
        (r#"{"n": 1, "password": "abc"}"#, r#"{"n": 1, "password": [hidden]}"#),
        (
            r#"{"password": "a b\" c, d", "n": 1}"#,
            r#"{"password": [hidden], "n": 1}"#,
        ),
        (
            r#"{"m":"{\"token\":\"abc\",\"n\":1}"}"#,
            r#"{"m":"{\"token\":[hidden],\"n\":1}"}"#,
        ),
        ("{'api_key': ['abc'], 'n': 1}", "{'api_key': [[hidden]], 'n': 1}"),
        (
            "['--api-key', 'abc', '--model', 'm']",
            "['--api-key', [hidden], '--model', 'm']",
        ),
        ("x --header 'Authorization: Bearer 1 2' -v", "x --header [hidden] -v"),
        (r#"x --api-key 'a'"'"'b c' -v"#, "x --api-key [hidden] -v"),
        ("x --auth-token=abc -v", "x --auth-token=[hidden] -v"),
        ("x --token --verbose", "x --token --verbose"),
        ("INFO:token:abc", "INFO:token:[hidden]"),
        (
            "GET https://user:pw@host/path?X-Amz-Signature=abc failed",
            "GET https://host/path?[hidden] failed",
        ),
        (
            r#"{"url":"https://user:p,w@host/path","token":"abc"}"#,
            r#"{"url":"https://host/path","token":[hidden]}"#,
        ),
        (
            "urls=http://a/b,https://u:p@c/d#t=1",
            "urls=http://a/b,https://c/d#[hidden]",
        ),
        ("token=https://host/x next", "token=[hidden] next"),
        ("login with correct horse failed", "login with [hidden] failed"),
        ("got open sesame and plain-old-token", "got [hidden] and [hidden]"),
        ("password=[hidden] next", "password=[hidden] next"),
        ("sent bearer 0123456789 twice", "sent bearer [hidden] twice"),
        // Other texts stay.
        ("max_tokens=16 tokenizer: lab/x", "max_tokens=16 tokenizer: lab/x"),
        ("running in eager mode", "running in eager mode"),
        (
            "RuntimeError: Failed to infer device type",
            "RuntimeError: Failed to infer device type",
        ),
        ("Missing key: model.layers.0", "Missing key: model.layers.0"),
        (
            "x --use-server-token-count --random-seed 3",
            "x --use-server-token-count --random-seed 3",
        ),
        (
            r#"{"time_to_first_token":{"avg":4}}"#,
            r#"{"time_to_first_token":{"avg":4}}"#,
        ),
        ("task-1 risk-averse hf_x", "task-1 risk-averse hf_x"),
        // Amazon's registry.
        ("no basic auth credentials", "no basic auth credentials"),
        ("http://10.0.0.1:8000/v1/models", "http://10.0.0.1:8000/v1/models"),
    ];
    for (line, shown) in cases {
        assert_eq!(redactor.redact(line), shown, "{line}");
        assert_eq!(redactor.redact(shown), shown, "twice");
    }
}

#[test]
fn hides_a_value_by_every_name_that_a_secret_may_have() {
    let names = [
        "HF_TOKEN",
        "hfToken",
        "SSH_PRIVATE_KEY",
        "LICENSE_KEY",
        "REGISTRY_CREDENTIAL",
        "NGC_APIKEY",
        "MY_ACCESSKEY",
        "DB_PASSPHRASE",
        "db.password",
        "PGPASSWORD",
        "MYSQL_PWD",
        "DB_PASS",
        "GITHUB_PAT",
        "X-Auth",
        "API_KEY_2",
        "token2",
        "ÜBER_SECRET",
        "BEARER",
        "doorPasscode",
        "WEBAUTHN_PASSKEY",
        "AZURE_CONNECTION_STRING",
        "AWS_SECRET_ACCESS_KEY",
        "npm_config__authToken",
    ];
    for name in names {
        let redactor = redactor(&json!([]));
        assert_eq!(redactor.redact(&format!("{name}=abc")), format!("{name}=[hidden]"));
        assert_eq!(redactor.redact(&format!("--{name} abc")), format!("--{name} [hidden]"));
        let mut fields =
            json!({name: "abc", "env": [{"name": name, "value": "abc"}], "args": [format!("--{name}"), "abc"]});
        redactor.redact_object(&mut fields);
        assert!(!fields.to_string().contains("abc"), "{fields}");
    }
    // In a text a variable's value is hidden by any of its words; of other names the last word counts.
    for name in ["NGC_API_KEY_PROD", "DB_PASSWORD_OLD", "HF_TOKEN_VALUE", "SSH_KEY_DATA"] {
        assert_eq!(
            redactor(&json!([])).redact(&format!("{name}=abc")),
            format!("{name}=[hidden]")
        );
    }
    for text in ["env.HF_TOKEN_OLD=abc", r"PATH=/x\nHF_TOKEN_OLD=abc"] {
        let shown = redactor(&json!([])).redact(text);
        assert_eq!(shown, text.replace("abc", "[hidden]"));
    }
    for line in [
        "input_token_count=128",
        "KEYS=3",
        "max_token_length: 5",
        "PAD_TOKEN_ID: 151643",
    ] {
        assert_eq!(redactor(&json!([])).redact(line), line);
    }
    // A variable is hidden by any of its words, and its value everywhere.
    for name in names
        .into_iter()
        .chain(["TOKEN_FILE", "KEY", "SECRET_NAME", "AUTH_HEADER_1"])
    {
        let redactor = redactor(&json!([{"name": name, "value": "a-value-of-some-length"}]));
        assert_eq!(
            redactor.redact("it is a-value-of-some-length!"),
            "it is [hidden]!",
            "{name}"
        );
    }
}

#[test]
fn hides_private_keys_from_their_first_line_to_their_last() {
    let redactor = redactor(&json!([]));
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\naC1rZXk=\n-----END OPENSSH PRIVATE KEY-----";
    let log = format!("loaded\n{key}\nthen failed");
    assert_eq!(
        redactor.redact(&log),
        "loaded\n-----BEGIN OPENSSH PRIVATE KEY-----[hidden]\nthen failed"
    );
    let message = "expected -----BEGIN PRIVATE KEY-----\nfound nothing";
    assert_eq!(redactor.redact(message), message);
}

#[test]
fn removes_characters_that_reorder_a_line() {
    let redactor = redactor(&json!([]));
    assert_eq!(
        redactor.redact("a\u{202e}b\u{2066}c\u{200f} 名前 \u{1f600}"),
        "abc 名前 \u{1f600}"
    );
}

#[test]
fn hides_the_beginning_of_a_value_before_a_cut() {
    let redactor = redactor(&json!([{"name": "DB_PASSWORD", "value": "correct horse battery staple"}]));
    let cut = |text: &str| redactor.redact_cut(text);
    assert_eq!(cut("login with correct horse ba…"), "login with [hidden]…");
    assert_eq!(
        cut("login with correct horse battery staple failed and…"),
        "login with [hidden] failed and…"
    );
    assert_eq!(cut("login with correct"), "login with correct", "it is not cut");
    assert_eq!(
        cut("the answer is correct…"),
        "the answer is correct…",
        "a word like any other"
    );
    assert_eq!(
        cut("login with correct horse ba…; what to do: log in"),
        "login with [hidden]…; what to do: log in",
        "its evidence was cut"
    );
    let twice = Redactor::new(&spec(&json!([{"name": "DB_PASSWORD", "value": "changeme-changeme"}])));
    assert_eq!(
        twice.redact_cut("login with changeme-changeme…"),
        "login with [hidden]…"
    );
    let begin = "-----BEGIN RSA PRIVATE KEY-----";
    for body in ["\nb3BlbnNz\naC1r", "\nb3BlbnNz\n-----END RSA PRIV"] {
        for rest in ["", "; what to do: x"] {
            let shown = cut(&format!("got {begin}{body}…{rest}"));
            assert_eq!(shown, format!("got {begin}[hidden]…{rest}"));
            assert_eq!(cut(&shown), shown, "twice");
        }
    }
}

#[test]
fn redacts_a_line_of_a_hundred_thousand_numbers() {
    let redactor = redactor(&json!([]));
    for (unit, times) in [
        ("1,", 100_000),
        ("[", 200_000),
        ("a:", 100_000),
        ("://", 70_000),
        ("sk-a ", 40_000),
    ] {
        let line = unit.repeat(times);
        assert_eq!(redactor.redact(&line).trim_end(), line.trim_end(), "{unit:?}");
    }
    for unit in [
        "token=",
        "token=[",
        "token=a,",
        "\"",
        "hf_",
        "a://b@",
        "'--key', ",
        "x_key: [",
        "Bearer ",
    ] {
        let line = unit.repeat(20_000);
        assert!(redactor.redact(&line).len() <= 2 * line.len(), "{unit:?}");
    }
}

#[test]
fn redacts_only_the_secrets_of_an_object() {
    let redactor = redactor(&json!([{"name": "DB_PASSWORD", "value": "correct horse"}]));
    let mut object = json!({
        "metadata": {"managedFields": [1], "annotations": {(LAST_APPLIED): "hf_abcdefghijklmnop", "kept": "yes"}},
        "env": [
            {"name": "HF_TOKEN", "value": "plain"},
            {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token"}}},
            {"name": "MODE", "value": "eager"},
            {"name": "ODD", "value": "nvapi-0123456789abcdef"},
        ],
        "args": ["--api-key", "abc", "--model", "m", "--password=abc", "says correct horse", "--token", "--verbose"],
        "token": "abc",
        "passwords": {"password": ["abc", {"name": "kept"}]},
        "imagePullSecrets": [{"name": "kept"}],
        "affinity": {"topologyKey": "kubernetes.io/hostname"},
        "tolerations": [{"key": "nvidia.com/gpu", "value": "kept"}],
        "replicas": 2,
    });
    redactor.redact_object(&mut object);
    let expected = json!({
        "metadata": {"annotations": {"kept": "yes"}},
        "env": [
            {"name": "HF_TOKEN", "value": "[hidden]"},
            {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token"}}},
            {"name": "MODE", "value": "eager"},
            {"name": "ODD", "value": "[hidden]"},
        ],
        "args": [
            "--api-key", "[hidden]", "--model", "m", "--password=[hidden]", "says [hidden]", "--token", "--verbose",
        ],
        "token": "[hidden]",
        "passwords": {"password": ["[hidden]", {"name": "kept"}]},
        "imagePullSecrets": [{"name": "kept"}],
        "affinity": {"topologyKey": "kubernetes.io/hostname"},
        "tolerations": [{"key": "nvidia.com/gpu", "value": "kept"}],
        "replicas": 2,
    });
    assert_eq!(object, expected);
}
