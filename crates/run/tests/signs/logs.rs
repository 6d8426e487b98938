//! Signs in logs, and the logs that are asked for.

use k8s_openapi::api::core::v1::Pod;
use perfval_api::Reason;
use perfval_run::diagnosis::log::{clean, silence, wanted};
use perfval_run::diagnosis::pods::Proof;
use perfval_run::observed::PodLog;
use perfval_run::obstacle::Obstacle;
use perfval_run::{Run, Settings};
use perfval_sizing::Seen;
use serde_json::{Value, json};

use crate::{component, container, crashed, log, now, pod, sign};

/// vLLM 0.9 to 0.31, as users reported them; Dynamo's own lines around them.
const NO_GPU: &str = "INFO 06-18 10:13:10 [__init__.py:244] No platform detected, vLLM is running on UnspecifiedPlatform
Traceback (most recent call last):
  File \"/opt/dynamo/venv/lib/python3.12/site-packages/vllm/config/device.py\", line 54, in __post_init__
    raise RuntimeError(
RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue.
";
const MEMORY_TAKEN: &str = "ERROR 06-30 13:53:19 [core.py:515] EngineCore failed to start.
ERROR 06-30 13:53:19 [core.py:515] Traceback (most recent call last):
(EngineCore_DP0 pid=17374) ERROR 06-30 13:53:19 [core.py:718] ValueError: Free memory on device (3.22/79.1 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.
RuntimeError: Engine core initialization failed. See root cause above.
vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.
";
const ENGINE_DEAD: &str = "2026-10-30T10:00:00.1Z ERROR engine_monitor._check_engine_health: vLLM AsyncLLM health check failed: EngineCore encountered an issue.
2026-10-30T10:00:00.2Z  INFO engine_monitor: Initiating Dynamo Runtime shutdown.
";
/// Dynamo 1.4.2, asked for a mode that it does not know.
const BAD_MODE: &str = "                   [--tokenizer {default,fastokens}]
                   [--trust-remote-code | --no-trust-remote-code]
__main__.py: error: argument --router-mode: invalid choice: 'bogus' (choose from 'round-robin', 'random', 'power-of-two', 'kv', 'direct', 'least-loaded', 'device-aware-weighted')
";
const BAD_TOKENIZER: &str = "INFO loading
OSError: Can't load tokenizer for 'm'
INFO shutting down
";
const PANIC: &str = "2026-03-13T08:00:00.1Z  INFO dynamo_llm::http::service: chat endpoints enabled
\x1b[31mthread 'tokio-runtime-worker' panicked\x1b[0m at /usr/local/cargo/registry/src/index.crates.io/futures-util-0.3.31/src/stream/unfold.rs:62:9:
Unfold must not be polled after it returned Poll::Ready(None)
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
";
const ADD_FAILED: &str = r#"{"time":"2026-07-02T08:00:00Z","level":"ERROR","target":"dynamo_llm::discovery::watcher","message":"Error adding model from discovery","error":"/home/dynamo/.cache/huggingface/hub/models--m/snapshots/1/config.json is 29464 bytes, exceeds cap 29431","model_name":"m"}
"#;
/// Dynamo 1.4.2, colours and all: the tokenizer is not the one that the worker announced.
const CHECKSUM: &str = "\x1b[2m2026-11-21T13:17:40.440950Z\x1b[0m \x1b[31mERROR\x1b[0m \x1b[2mdynamo_llm::discovery::watcher\x1b[0m\x1b[2m:\x1b[0m Error adding model from discovery \x1b[3mmodel_name\x1b[0m\x1b[2m=\x1b[0m\"lab/nowhere\" \x1b[3mnamespace\x1b[0m\x1b[2m=\x1b[0m\"dynamo\" \x1b[3merror\x1b[0m\x1b[2m=\x1b[0m\"checksum mismatch for http://127.0.0.1:19103/v1/metadata/dynamo/backend/generate/lab_nowhere/_base/tokenizer.json: expected blake3:4e7cf634e09857c93207c605b04df894d0e23c5a7999673d896a6ab97020760c, got blake3:bfc824ac7a0f27e57bc54c16f010310dd82278ef2ded70f7c61a14bd899f6c93\"\n";
const NO_INSTANCES: &str = "2026-10-30T10:00:00Z DEBUG dynamo_runtime::discovery::kube: KubeDiscoveryClient::list returning 0 instances for query=AllEndpoints
2026-10-30T10:00:05Z DEBUG dynamo_runtime::discovery::kube: KubeDiscoveryClient::list returning 0 instances for query=AllEndpoints
";

/// Obstacle and evidence of a worker's crashes, if they are believed.
fn found(restarts: i32, logs: &[PodLog]) -> Option<(Obstacle, String)> {
    let sign = sign(&crashed(restarts), &[], logs)?;
    (sign.proof == Proof::Seen).then_some((sign.trouble.obstacle, sign.trouble.evidence))
}

#[test]
fn a_crash_is_explained_by_its_log() {
    let cases = [
        (NO_GPU, Obstacle::NoGPUInContainer, "Failed to infer device type"),
        (
            MEMORY_TAKEN,
            Obstacle::GPUMemoryTaken,
            "Free memory on device (3.22/79.1 GiB)",
        ),
        (ENGINE_DEAD, Obstacle::EngineDead, "health check failed"),
        (BAD_MODE, Obstacle::RouterModeUnsupported, "invalid choice: 'bogus'"),
    ];
    for (text, obstacle, line) in cases {
        let (named, evidence) = found(1, &log("worker", text)).expect(line);
        assert_eq!(named, obstacle);
        assert!(
            evidence.starts_with("pod worker, container main: crashes (exit code 1): ") && evidence.contains(line),
            "{evidence}"
        );
        assert_eq!(found(0, &log("worker", text)), None, "one crash is none");
    }
}

/// `huggingface_hub`: the first three as its sources have them, the one without a network as the lab's image printed it; Dynamo
/// 1.4.2 offline.
const GATED: &str = "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-6)

Cannot access gated repo for url http://hub/api/models/lab/gated/revision/main.
Access to model lab/gated is restricted. You must have access to it and be authenticated to access it. Please log in.
";
const UNKNOWN: &str = "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. (Request ID: Root=1-6)

Repository Not Found for url: http://hub/api/models/lab/none/revision/main.
Please make sure you specified the correct `repo_id` and `repo_type`.
If you are trying to access a private or gated repo, make sure you are authenticated and your token has the required permissions.
";
const MALFORMED: &str = "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or \
    'namespace/repo_name': 'a/b/c'. Use `repo_type` argument if needed.\n";
const NO_SNAPSHOT: &str = "Exception: Model snapshots for 'lab/none' not found in cache\n";
const NO_NETWORK: &str = "httpx2.ConnectError: [Errno -3] Temporary failure in name resolution

The above exception was the direct cause of the following exception:

huggingface_hub.errors.LocalEntryNotFoundError: Got: ConnectError: [Errno -3] Temporary failure in name resolution
An error happened while trying to locate the files on the Hub, and we cannot find the appropriate snapshot folder for the specified \
    revision on the local disk. Please check your internet connection and try again.
";
const INCOMPLETE: &str = "OSError: We couldn't connect to 'https://huggingface.co' to load the files
huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and outgoing traffic has been disabled.
";
const NO_SPACE: &str = "OSError: [Errno 28] No space left on device\n";

#[test]
fn a_model_that_cannot_be_had_is_named_by_its_kind() {
    let cases = [
        (GATED, Obstacle::ModelGated, "Cannot access gated repo"),
        (UNKNOWN, Obstacle::ModelNotFound, "Repository Not Found for url"),
        (MALFORMED, Obstacle::ModelNotFound, "Repo id must be in the form"),
        (NO_SNAPSHOT, Obstacle::ModelNotFound, "'lab/none' not found in cache"),
        (
            NO_NETWORK,
            Obstacle::ModelUnreachable,
            "Temporary failure in name resolution",
        ),
        (
            INCOMPLETE,
            Obstacle::ModelNotFound,
            "outgoing traffic has been disabled",
        ),
    ];
    for (text, obstacle, line) in cases {
        let (named, evidence) = found(1, &log("worker", text)).expect(line);
        assert_eq!(named, obstacle, "{text}");
        assert!(evidence.contains(line), "{evidence}");
    }
    // A worker cannot write to the model cache.
    let full = log("worker", NO_SPACE);
    assert_eq!(found(1, &full), None, "not yet a loop");
    let (named, evidence) = found(2, &full).expect("a loop");
    assert_eq!(named, Obstacle::CrashLoop);
    assert!(evidence.contains("No space left on device"), "{evidence}");
}

#[test]
fn any_other_crash_loop_quotes_the_most_telling_line() {
    let of = |restarts| found(restarts, &log("worker", BAD_TOKENIZER));
    assert_eq!(of(1), None, "not yet a loop");
    let (named, evidence) = of(2).expect("a loop");
    assert_eq!(named, Obstacle::CrashLoop);
    assert!(
        evidence.ends_with("crashes (exit code 1): OSError: Can't load tokenizer for 'm'"),
        "{evidence}"
    );

    let (_, evidence) = found(2, &log("worker", "one\nlast words\n\n")).expect("a loop");
    assert!(evidence.ends_with("last words"), "{evidence}");
    let gone = "unable to retrieve container logs for containerd://c13f";
    let (_, evidence) = found(2, &log("worker", gone)).expect("a loop");
    assert!(evidence.ends_with("crashes (exit code 1)"), "{evidence}");
    let unread = vec![PodLog {
        text: Seen::Unknown("get the log: 500".into()),
        ..log("worker", "").remove(0)
    }];
    assert_eq!(found(2, &unread).map(|found| found.0), Some(Obstacle::CrashLoop));
}

#[test]
fn a_silent_frontend_is_explained_by_its_log() {
    let cases = [
        (PANIC.to_owned(), Obstacle::DiscoveryPanic, "Unfold must not be polled"),
        (
            ADD_FAILED.to_owned(),
            Obstacle::ModelAddFailed,
            "config.json is 29464 bytes",
        ),
        (
            CHECKSUM.to_owned(),
            Obstacle::ModelAddFailed,
            "model_name=\"lab/nowhere\" namespace=\"dynamo\" error=\"checksum mismatch",
        ),
        (NO_INSTANCES.to_owned(), Obstacle::NoInstances, "returning 0 instances"),
        (
            format!("{NO_INSTANCES}{ADD_FAILED}"),
            Obstacle::ModelAddFailed,
            "adding model",
        ),
        (
            PANIC.replace("polled after", "polled\nafter"),
            Obstacle::DiscoveryPanic,
            "Unfold must not be polled after",
        ),
    ];
    let run = object(&json!({}));
    for (text, obstacle, line) in cases {
        let cleaned = clean(&Run::new(&run, &Settings::default()), &text);
        assert!(!cleaned.contains('\x1b'), "{cleaned}");
        let (named, quoted) = silence(&log("frontend", &cleaned)).expect(line);
        assert_eq!(named, obstacle);
        assert!(quoted.contains(line) && quoted.len() <= 240, "{quoted}");
    }
    assert_eq!(silence(&log("frontend", "INFO all is well")), None);
}

/// What it lists changes: every frontend begins with none, and a worker may go.
#[test]
fn a_frontend_that_sees_its_workers_by_now_is_not_without_any() {
    let none = |log_text: &str| silence(&log("frontend", log_text)).map(|found| found.0);
    let one = NO_INSTANCES.replace("returning 0", "returning 1");
    assert_ne!(one, NO_INSTANCES);
    assert_eq!(none(&format!("{NO_INSTANCES}{one}")), None);
    assert_eq!(none(&format!("{NO_INSTANCES}{one}ERROR a request failed\n")), None);
    assert_eq!(none(&format!("{one}{NO_INSTANCES}")), Some(Obstacle::NoInstances));
    // What stands beside it is no news of the workers.
    assert_eq!(none(&format!("{ADD_FAILED}{one}")), Some(Obstacle::ModelAddFailed));
}

fn object(status: &Value) -> perfval_api::PerfValidation {
    let mut object = json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"name": "run", "namespace": "perf", "uid": "u-1", "generation": 1},
        "spec": {"model": {"name": "m"}, "workload": {"dynamo": {"image": "vllm-runtime:1.6.1"}}},
        "status": {"observedGeneration": 1, "phase": "WaitingForReady", "run": {
            "number": 1, "trigger": "Created", "generation": 1, "startedAt": now().to_rfc3339()}},
    });
    for (key, value) in status.as_object().into_iter().flatten() {
        object["status"][key] = value.clone();
    }
    serde_json::from_value(object).expect("well-formed")
}

#[test]
fn logs_are_read_only_where_something_is_wrong() {
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let settings = Settings::default();
    let asked = |status: Value, pods: &[Pod]| {
        let object = object(&status);
        let wanted = wanted(&Run::new(&object, &settings), pods);
        wanted.into_iter().map(|of| (of.pod, of.previous)).collect::<Vec<_>>()
    };
    let well = [component("frontend", ready.clone()), pod(ready.clone())];
    assert_eq!(asked(json!({}), &well), []);
    assert_eq!(asked(json!({}), &[crashed(0)]), [], "one crash is none");
    assert_eq!(asked(json!({}), &[crashed(1)]), [("worker".to_owned(), true)]);
    let just_ended = pod(container(2, &json!({"terminated": {"exitCode": 1}}), &json!({})));
    assert_eq!(asked(json!({}), &[just_ended]), [("worker".to_owned(), false)]);
    assert_eq!(asked(json!({"phase": "CleaningUp"}), &[crashed(3)]), []);

    for reason in [Reason::EndpointNotReady.name(), Reason::ModelAddFailed.name()] {
        let silent = json!({"operatorState": {"unanswered": {"reason": reason, "message": ""}}});
        assert_eq!(asked(silent, &well), [("frontend".to_owned(), false)], "{reason}");
    }
    let many: Vec<Pod> = (0..8).map(|_| crashed(2)).collect();
    assert_eq!(asked(json!({}), &many).len(), 4, "eight workers crash for one reason");
}
