//! The archive of a bug report: complete, and without secrets.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::thread;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use perfval_testkit::api_server::{Fault, Kind};
use serde_json::json;
use tar::Archive;

use super::desk::{Desk, stored};
use super::logs::{crash, under_way};

pub fn gzip(text: &str) -> ByteString {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory");
    ByteString(encoder.finish().expect("memory"))
}

pub async fn bundle(desk: &Desk) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bundle.tar.gz");
    let answer = desk.types(&format!("bundle run -o {}", path.display())).await;
    assert_eq!(answer.code, 0, "{}", answer.err);
    let mut archive = Archive::new(GzDecoder::new(std::fs::File::open(&path).expect("written")));
    let entries = archive.entries().expect("an archive");
    let files: BTreeMap<String, String> = entries
        .map(|entry| {
            let mut entry = entry.expect("an entry");
            let name = entry.path().expect("a name").to_string_lossy().into_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("text");
            (name.trim_start_matches("perfval-run/").to_owned(), text)
        })
        .collect();
    assert!(answer.out.starts_with(&files["CONTENTS.txt"]), "{}", answer.out);
    files
}

#[tokio::test]
async fn a_file_that_exists_is_not_replaced() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "mine").expect("written");
    let typed = format!("bundle run -o {}", file.path().display());
    Desk::with("passed")
        .types(&typed)
        .await
        .exits(2, "exists and is not replaced: remove it, or give another file");
    assert_eq!(std::fs::read_to_string(file.path()).expect("there"), "mine");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_refused_before_anything_is_collected() {
    let desk = Desk::with("passed");
    let answer = desk.types("bundle run -o /nowhere/bundle.tar.gz").await;
    answer.exits(2, "/nowhere/bundle.tar.gz");
    let calls = desk.server.calls();
    assert!(calls.iter().all(|call| call.resource != "pods"), "{calls:?}");
}

#[tokio::test]
async fn a_pipe_gets_the_whole_archive() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&path).status().expect("it starts");
    assert!(made.success(), "{made}");
    let typed = format!("bundle run -o {}", path.display());
    // Each opening and closing by the writer ends one read.
    let reader = thread::spawn(move || {
        let reads = std::iter::repeat_with(|| std::fs::read(&path).expect("a pipe"));
        let mut reads = reads.enumerate();
        reads.find(|(_, read)| !read.is_empty()).expect("endless")
    });
    let answer = Desk::with("passed").types(&typed).await;
    assert_eq!(answer.code, 0, "{answer:?}");
    let (ends, read) = reader.join().expect("no panic");
    assert_eq!(ends, 0, "the reader had its end of file before the archive");
    let mut whole = Vec::new();
    let read = GzDecoder::new(&*read).read_to_end(&mut whole);
    assert!(read.is_ok(), "{read:?}");
}

#[tokio::test]
async fn everything_is_in_it_and_no_secret() {
    let desk = under_way();
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "perf"},
        "involvedObject": {"kind": "PerfValidation", "name": "run"}, "reason": "Trial1Pass", "message": "Bearer abcdefgh",
    }));
    let secret = json!({"secretKeyRef": {"name": "ngc", "key": "token"}});
    desk.server.put(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "j", "namespace": "perf", "labels": {"perfvalidation.dev/name": "run"}},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "env": [
            {"name": "HF_TOKEN", "valueFrom": secret}, {"name": "NGC_API_KEY", "value": "plain-secret"},
        ]}]}}},
    }));
    desk.server.put(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "p", "namespace": "perf", "labels": {"perfvalidation.dev/name": "run"}},
    }));
    let id = perfval_run::names::run_id("u-1", 1);
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("run-{id}"), "namespace": "perf"},
        "data": {
            "summary.json": "{\"verdict\":\"Passed\"}",
            "trial-1.log": "==> w0, container main <==\nAuthorization: Bearer abcdefgh\n",
            "thinned.txt": "trial 1: its samples are left out\n",
        },
        "binaryData": {"trial-1.json.gz": gzip("{\"record\":{\"tail\":\"nvapi-0123456789abcdef\",\"api_key\":\"plain-secret\"}}")},
    }));
    // A pod of someone else, whose settings and last words are nobody's business.
    let ended = json!([{
        "name": "c", "image": "i", "imageID": "i", "ready": false, "restartCount": 1,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "plain-secret"}},
        "lastState": {"terminated": {"exitCode": 1, "message": "plain-secret"}},
    }]);
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "theirs", "namespace": "team-b", "annotations": {"note": "plain-secret"}},
        "spec": {"nodeName": "n1", "volumes": [{"name": "plain-secret"}], "containers": [{
            "name": "c", "args": ["plain-secret"], "resources": {"limits": {"nvidia.com/gpu": "1"}},
            "env": [{"name": "ANY", "value": "plain-secret"}],
        }]},
        "status": {
            "message": "plain-secret", "containerStatuses": ended,
            "initContainerStatuses": ended, "ephemeralContainerStatuses": ended,
        },
    }));
    let files = bundle(&desk).await;
    for file in [
        "CONTENTS.txt",
        "versions.txt",
        "perfvalidation.yaml",
        "children/pods.yaml",
        "children/networkpolicies.yaml",
        "children/events.yaml",
        "results/1/summary.json",
        "results/1/trial-1.json",
        "results/1/trial-1.log",
        "results/1/thinned.txt",
        "logs/filler-fill.txt",
        "logs/w0-main.txt",
        "logs/operator-0-operator.txt",
        "size-dump.json",
    ] {
        assert!(files.contains_key(file), "{file} is not in {:?}", files.keys());
    }
    for (name, text) in &files {
        for secret in [
            "hf_0123456789abcdef",
            "correct horse",
            "plain-secret",
            "nvapi-0123456789abcdef",
            "abcdefgh",
        ] {
            assert!(!text.contains(secret), "{secret} is in {name}: {text}");
        }
    }
    assert!(
        files["children/jobs.yaml"].contains("secretKeyRef"),
        "a reference is no secret"
    );
    assert!(
        files["size-dump.json"].contains("nvidia.com/gpu"),
        "what sizing needs is there"
    );
    assert!(
        files["versions.txt"].contains("Kubernetes v1.36.4"),
        "{}",
        files["versions.txt"]
    );
}

#[tokio::test]
async fn the_results_of_the_last_run_are_those_that_the_status_names() {
    let desk = Desk::new();
    let mut restored = stored("passed");
    restored["metadata"]["uid"] = json!("u-of-another-cluster");
    restored["status"]["resultsRef"] = json!({"name": "run-as-it-was", "sha256": "0"});
    desk.server.put(restored);
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "run-as-it-was", "namespace": "perf"},
        "data": {"summary.json": "{\"verdict\":\"Passed\"}"},
    }));
    let files = bundle(&desk).await;
    assert!(files.contains_key("results/1/summary.json"), "{:?}", files.keys());
}

#[tokio::test]
async fn results_of_runs_that_the_history_does_not_list_are_in_it_too() {
    let desk = Desk::with("passed-second-run");
    let name = |run| format!("run-{}", perfval_run::names::run_id("u-1", run));
    for run in [3, 29] {
        let summary = json!({"run": {
            "number": run, "trigger": "Created", "generation": 1, "startedAt": "2026-09-21T14:13:21Z",
        }});
        desk.server.put(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name(run), "namespace": "perf", "labels": {
                "perfvalidation.dev/name": "run", "perfvalidation.dev/component": "results",
            }},
            "data": {"summary.json": summary.to_string()},
        }));
    }
    // The last run judged the trials of the run before it again.
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        let status = &mut object["status"];
        (status["run"]["number"], status["resultsRef"]["name"]) = (json!(30), json!(name(29)));
        status["operatorState"]["judgedRun"] = json!(29);
        status["operatorState"]["history"][0]["run"] = json!(29);
    });
    let files = bundle(&desk).await;
    let saved: Vec<&str> = files.keys().filter_map(|file| file.strip_prefix("results/")).collect();
    assert_eq!(saved, ["29/summary.json", "3/summary.json"]);

    desk.server.fail(Fault::refuse("list", "configmaps", 403));
    let files = bundle(&desk).await;
    assert!(files.contains_key("results/29/summary.json"), "{:?}", files.keys());
    let contents = &files["CONTENTS.txt"];
    // The role for editing has no rights on ConfigMaps.
    let why = "you may not read ConfigMaps: configmaps is forbidden: User \"operator\" cannot list resource \"configmaps\"; \
               ask for a role with this right\n";
    let missing = format!("results of runs that the status does not list: {why}");
    assert!(contents.contains(&missing), "{contents}");
}

#[tokio::test]
async fn results_that_are_too_large_are_left_out() {
    let desk = Desk::with("passed");
    let name = stored("passed")["status"]["resultsRef"]["name"].clone();
    let large = format!("[{}]", " ".repeat(65 << 20));
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "perf"},
        "binaryData": {"trial-1.json.gz": gzip(&large), "trial-2.json.gz": gzip("{}")},
    }));
    let files = bundle(&desk).await;
    let contents = &files["CONTENTS.txt"];
    assert!(
        contents.contains("results of run 1, trial-1.json: it is too large: "),
        "{contents}"
    );
    assert_eq!(files["results/1/trial-2.json"], "{}\n");
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    let desk = Desk::with("passed");
    desk.server.withdraw("resourceslices");
    let files = bundle(&desk).await;
    let contents = &files["CONTENTS.txt"];
    assert!(contents.contains("Not in it:"), "{contents}");
    assert!(
        contents.contains("dynamographdeployments of the validation: this cluster does not serve them"),
        "{contents}"
    );
    assert!(contents.contains("results of run 1: they are not saved"), "{contents}");
    assert!(!files.contains_key("size-dump.json"), "half a dump would mislead");
}

#[tokio::test]
async fn only_events_of_what_a_run_created_are_in_the_bundle() {
    let desk = under_way();
    let uid = desk.server.get("pods", "perf", "w0").expect("it is there")["metadata"]["uid"].clone();
    for (name, about) in [
        ("of-pod", json!({"kind": "Pod", "name": "w0", "uid": uid})),
        ("without-uid", json!({"kind": "Pod", "name": "front"})),
        ("of-validation", json!({"kind": "PerfValidation", "name": "run"})),
        ("of-namesake", json!({"kind": "Pod", "name": "run"})),
        (
            "of-an-earlier-pod",
            json!({"kind": "Pod", "name": "w0", "uid": "another"}),
        ),
        ("of-others", json!({"kind": "Pod", "name": "theirs", "uid": "u-9"})),
    ] {
        desk.server.put(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "perf"},
            "involvedObject": about, "reason": "FailedScheduling",
        }));
    }
    let files = bundle(&desk).await;
    let events = &files["children/events.yaml"];
    for (name, is_there) in [
        ("of-pod", true),
        ("without-uid", true),
        ("of-validation", true),
        ("of-an-earlier-pod", true),
        ("of-namesake", false),
        ("of-others", false),
    ] {
        assert_eq!(
            events.contains(&format!("name: {name}\n")),
            is_there,
            "{name}: {events}"
        );
    }
}

#[tokio::test]
async fn components_of_the_runs_deployment_are_in_it() {
    let desk = under_way();
    desk.server.install_dynamo(&["v1beta1"], Some("1.6.1"));
    let plural = "dynamocomponentdeployments";
    desk.server.serve(Kind::new(
        "nvidia.com",
        "v1beta1",
        plural,
        "DynamoComponentDeployment",
        true,
    ));
    let deployment = desk.server.put(json!({
        "apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment",
        "metadata": {"name": "run-ab", "namespace": "perf", "labels": {"perfvalidation.dev/name": "run"}},
    }));
    for (name, owner) in [
        ("run-ab-worker", &deployment["metadata"]["uid"]),
        ("theirs", &json!("u-9")),
    ] {
        desk.server.put(json!({
            "apiVersion": "nvidia.com/v1beta1", "kind": "DynamoComponentDeployment",
            "metadata": {"name": name, "namespace": "perf", "ownerReferences": [{
                "apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "name": "run-ab", "uid": owner,
            }]},
        }));
    }
    let files = bundle(&desk).await;
    let components = &files["children/dynamocomponentdeployments.yaml"];
    assert!(
        components.contains("run-ab-worker") && !components.contains("theirs"),
        "{components}"
    );
    desk.server.fail(Fault::refuse("list", plural, 403));
    let contents = &bundle(&desk).await["CONTENTS.txt"];
    assert!(
        contents.contains("dynamocomponentdeployments of the validation: you may not read"),
        "{contents}"
    );
}

#[tokio::test]
async fn the_log_of_the_container_before_is_in_it() {
    let desk = under_way();
    crash(&desk, 3, "2026-09-21T14:13:32.5Z CUDA error: out of memory\n");
    let files = bundle(&desk).await;
    assert!(files["logs/w0-main-previous.txt"].contains("out of memory"));
    assert!(files["logs/w0-fetch.txt"].contains("weights are there"));
    assert!(!files["logs/w0-main.txt"].contains("out of memory"));
}

#[tokio::test]
async fn events_that_were_read_are_kept_where_the_rest_is_refused() {
    let desk = under_way();
    for number in 0..=500 {
        desk.server.put(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("e{number:03}"), "namespace": "perf"},
            "involvedObject": {"kind": "PerfValidation", "name": "run"}, "reason": "Sizing",
        }));
    }
    desk.server
        .fail(Fault::refuse("list", "events", 410).asked_with("continue="));
    let files = bundle(&desk).await;
    let events = &files["children/events.yaml"];
    assert!(events.contains("name: e000\n") && !events.contains("name: e500\n"));
    let contents = &files["CONTENTS.txt"];
    assert!(contents.contains("further events: "), "{contents}");
}
