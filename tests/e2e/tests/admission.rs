//! What a real API server makes of the CustomResourceDefinition: its rules, defaults, columns and documentation; and of the
//! policies and roles that come with it.

mod admission {
    mod commands;
    mod limits;
    mod metrics;
    mod people;
    mod priority;
}

use std::process::Stdio;
use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use perfval_api::PerfValidation;
use perfval_e2e::eventually;
use perfval_testkit::admission::{Case, Rejected, cases, with, with_spec};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// The API server notices a new policy, and the controller a new role, within seconds.
const NOTICED: Duration = Duration::from_mins(1);

static INSTALLED: OnceCell<()> = OnceCell::const_new();

/// A client of a cluster that serves the CustomResourceDefinition of this build.
async fn cluster() -> Client {
    INSTALLED
        .get_or_init(|| async {
            let crds = perfval_api::crds().map(|crd| serde_json::to_string(&crd).expect("JSON"));
            let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
            let (_, warnings) = kubectl(&apply, &crds.join("\n---\n")).await;
            assert_eq!(warnings, "", "the API server warns about the definition");
            let established = [
                "wait",
                "--for=condition=Established",
                "--timeout=60s",
                "crd/perfvalidations.perfvalidation.dev",
                "crd/perfvalidationpolicies.perfvalidation.dev",
                "crd/perfbaselines.perfvalidation.dev",
            ];
            // A definition without any condition yet is an error to `kubectl wait`.
            eventually("the definition is established", NOTICED, async || {
                try_kubectl(&established, "").await.map(drop)
            })
            .await;
        })
        .await;
    Client::try_default()
        .await
        .expect("KUBECONFIG names the lab's cluster: run this by `lab exec`")
}

/// Output and warnings of a kubectl command that has to succeed.
async fn kubectl(args: &[&str], input: &str) -> (String, String) {
    let answer = try_kubectl(args, input).await;
    answer.unwrap_or_else(|error| panic!("kubectl {args:?}: {error}"))
}

/// Output and warnings of a kubectl command, or its words when it fails.
async fn try_kubectl(args: &[&str], input: &str) -> Result<(String, String), String> {
    let mut child = Command::new("kubectl")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl is in PATH");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(input.as_bytes())
        .await
        .expect("kubectl reads its input");
    drop(stdin);
    let output = child.wait_with_output().await.expect("kubectl ends");
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if output.status.success() {
        Ok((out, err))
    } else {
        Err(err)
    }
}

async fn namespace(name: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    kubectl(&["apply", "--server-side", "-f", "-"], &namespace.to_string()).await;
}

/// Creates without storing: what is stored if it were, or the words of the refusal.
async fn dry_run(client: &Client, manifest: &Value) -> Result<Value, String> {
    let object: DynamicObject = serde_json::from_value(manifest.clone()).expect("an object");
    let resource = kube::core::ApiResource::erase::<PerfValidation>(&());
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), "default", &resource);
    let params = PostParams {
        dry_run: true,
        field_manager: None,
    };
    match api.create(&params, &object).await {
        Ok(object) => Ok(serde_json::to_value(object).expect("JSON")),
        Err(kube::Error::Api(status)) if status.code == 422 || status.code == 400 => Err(status.message),
        Err(other) => panic!("the API server did not judge {manifest}: {other}"),
    }
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn every_case_gets_the_result_of_the_table() {
    let client = cluster().await;
    for Case {
        name,
        manifest,
        rejected,
    } in cases()
    {
        let answer = dry_run(&client, &manifest).await;
        match (rejected, answer) {
            (None, answer) => assert!(answer.is_ok(), "{name}: {answer:?}"),
            (Some(expected), Ok(_)) => panic!("{name} is accepted, not refused by {expected:?}"),
            (Some(Rejected::Rule(words)), Err(said)) => {
                assert!(said.contains(&words), "{name}: no {words:?} in {said}");
            }
            (Some(Rejected::Schema(field)), Err(said)) => {
                assert!(said.contains(&format!("{field}: ")), "{name}: not for {field}: {said}");
            }
            (Some(Rejected::Duplicate(field)), Err(said)) => {
                assert!(said.contains(&format!("{field}: Duplicate value")), "{name}: {said}");
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn every_sample_is_accepted() {
    cluster().await;
    let samples = "config/samples";
    namespace("perf").await;
    let (accepted, warnings) = kubectl(&["create", "--dry-run=server", "-o=name", "-f", samples], "").await;
    assert_eq!(accepted.lines().count(), std::fs::read_dir(samples).unwrap().count());
    assert_eq!(warnings, "");
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn the_server_fills_in_the_defaults_of_the_types() {
    let stored = dry_run(&cluster().await, &with(json!({}))).await.unwrap();
    let ours: PerfValidation = serde_json::from_value(with(json!({}))).unwrap();
    assert_eq!(stored["spec"], serde_json::to_value(&ours.spec).unwrap());
    let read: PerfValidation = serde_json::from_value(stored).unwrap();
    assert_eq!(read.spec, ours.spec);
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn an_object_before_the_first_look_shows_it() {
    let stored = dry_run(&cluster().await, &with(json!({}))).await.unwrap();
    assert_eq!(
        stored["status"],
        json!({"observedGeneration": -1, "phase": "Pending", "message": perfval_api::UNSEEN})
    );
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn explain_prints_units_and_defaults() {
    cluster().await;
    let (fields, _) = kubectl(&["explain", "perfvalidation.spec", "--recursive"], "").await;
    for field in [
        "timeouts\t<Object>",
        "ttlSecondsAfterFinished\t<integer>",
        "gates\t<[]Object>",
    ] {
        assert!(fields.contains(field), "no {field:?} in {fields}");
    }
    for (path, words) in [
        (
            "timeouts.sizing",
            "(Go duration, `0s`: fail at once), without the time in the queue.",
        ),
        ("timeouts.endpointProbe", "Default: 120s."),
        ("benchmark.concurrencyPerGPU", "Requests in flight per GPU (1–4096)."),
        (
            "trials.maxFailedRequestsPercent",
            "(quantity, percent, 0–100). Default: 1.",
        ),
        ("workload.dynamo.routerMode", "Default: LeastLoaded."),
    ] {
        let (text, _) = kubectl(&["explain", &format!("perfvalidation.spec.{path}")], "").await;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{path}: no {words:?} in {text}");
    }
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn columns_and_field_selectors_show_the_status() {
    let client = cluster().await;
    namespace("columns").await;
    let api = Api::<PerfValidation>::namespaced(client, "columns");
    let mut manifest = with_spec(json!({"suspend": true})); // no operator starts it
    manifest["metadata"]["namespace"] = json!("columns");
    let object: PerfValidation = serde_json::from_value(manifest).unwrap();
    let name = object.name_any();
    api.patch(
        &name,
        &PatchParams::apply("columns-test").force(),
        &Patch::Apply(&object),
    )
    .await
    .unwrap();
    let status = json!({"status": {
        "phase": "Completed", "verdict": "Passed", "reason": "GatesMet", "message": "8/8 GPUs",
        "metrics": {"outputTokensPerSecond": 110_847, "ttftP99Milliseconds": 910},
        "placement": {"node": "gpu-node-1", "allocation": "DRA", "gpus": 8, "nodeGPUs": 8},
        "trials": [
            {"number": 1, "outcome": "Pass"},
            {"number": 2, "outcome": "Pass"},
        ],
    }});
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();

    let get = [
        "get",
        "perfval",
        "--namespace=columns",
        "--output=wide",
        "--field-selector=status.verdict=Passed,status.phase=Completed",
    ];
    let (table, _) = kubectl(&get, "").await;
    let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let [head, row] = rows.as_slice() else {
        panic!("not one object: {table}")
    };
    assert_eq!(
        head.as_slice(),
        [
            "NAME", "PHASE", "VERDICT", "NODE", "TOK/S", "TTFT-P99", "PROGRESS", "AGE", "GPUS", "TRIALS", "MODEL",
            "REASON", "MESSAGE"
        ]
    );
    assert_eq!(
        row[..6],
        ["admission", "Completed", "Passed", "gpu-node-1", "110847", "910"]
    );
    assert_eq!(row[7..], ["8", "2", "Qwen/Qwen3-8B", "GatesMet", "8/8", "GPUs"]);

    let none = [
        "get",
        "perfval",
        "--namespace=columns",
        "--field-selector=status.verdict=Failed",
    ];
    assert_eq!(kubectl(&none, "").await.0, "");
    kubectl(&["delete", "perfval", &name, "--namespace=columns"], "").await;
}
