//! What it takes when many runs end at once, in a process of its own: the operator's container has 256 MiB.

#[path = "../../run/tests/build/minute.rs"]
mod minute;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use perfval_api::PerfValidation;
use perfval_cluster::{Cluster, EndpointAccess};
use perfval_operator::context::Context;
use perfval_operator::controller::reconcile;
use perfval_operator::metrics::OperatorMetrics;
use perfval_operator::objects;
use perfval_operator::rights::Rights;
use perfval_operator::stored::Stored;
use perfval_run::{Settings, names};
use perfval_testkit::api_server::ApiServer;
use perfval_testkit::memory::Growth;
use perfval_verdict::frame::{self, Payload};
use perfval_verdict::spec_digests;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const NAMESPACE: &str = "perf";
/// The process has sixteen passes at once; these are enough to see whether they add up.
const RUNS: usize = 6;
/// The most that a run may have.
const TRIALS: i64 = 20;
/// One run alone takes 11 MiB here and these 18, with what the server in memory keeps of them; 33 if all are read at once.
const MOST: u64 = 26 << 20;

/// A run whose trials are over, and nothing is saved yet.
fn put_run(server: &ApiServer, name: &str, records: &[Payload]) {
    let trial = |number: i64| json!({"number": number, "outcome": "Pass", "startedAt": "2026-11-20T10:05:00Z"});
    let object = server.put(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"name": name, "namespace": NAMESPACE, "finalizers": ["perfvalidation.dev/cleanup"]},
        "spec": {
            "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}}, "trials": {"rule": "All", "max": TRIALS},
            "gates": [{"name": "g", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "5"}],
        },
    }));
    let uid = object["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let id = names::run_id(&uid, 1);
    let spec = serde_json::from_value(object["spec"].clone()).expect("a spec");
    let digests = spec_digests::digests(&spec);
    server.edit("perfvalidations", NAMESPACE, name, |object| {
        object["status"] = json!({
            "observedGeneration": 1, "phase": "Evaluating", "message": "saving",
            "run": {"number": 1, "trigger": "Created", "generation": 1, "startedAt": "2026-11-20T10:00:00Z"},
            "placement": {"node": format!("node-{name}"), "allocation": "DRA", "gpus": 8, "nodeGPUs": 8},
            "operatorState": {
                "digests": digests, "trials": (1..=TRIALS).map(trial).collect::<Vec<_>>(),
                "timeline": [{"phase": "Evaluating", "startedAt": "2099-01-01T00:00:00Z"}],
            },
        });
    });
    let controller = |api: &str, kind: &str, name: &str, uid: &Value| json!([{"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": true}]);
    for (number, record) in (1..=TRIALS).zip(records) {
        let job = names::trial_job(&id, number);
        let made = server.put(json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": job, "namespace": NAMESPACE, "labels": {"perfvalidation.dev/name": name, "perfvalidation.dev/run": id},
                "ownerReferences": controller("perfvalidation.dev/v1alpha1", "PerfValidation", name, &uid.clone().into()),
            },
            "status": {"conditions": [{"type": "Complete", "status": "True"}]},
        }));
        server.put(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": job, "namespace": NAMESPACE, "labels": {"batch.kubernetes.io/job-name": job},
                "ownerReferences": controller("batch/v1", "Job", &job, &made["metadata"]["uid"]),
            },
            "status": {"containerStatuses": [{
                "name": names::AIPERF_CONTAINER, "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": {"exitCode": 0}},
            }]},
        }));
        let mut record = record.clone();
        record.record.nonce = names::nonce(&uid, &id, number);
        let log = "INFO another line of AIPerf\n".repeat(10_000) + &frame::frame(&record).expect("a frame");
        server.set_log(NAMESPACE, &job, names::AIPERF_CONTAINER, log);
    }
}

fn context(server: &ApiServer) -> Arc<Context> {
    // Every answer takes a while, so that passes overlap.
    let slow = server.clone().map_future(|answer| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        answer.await
    });
    let client = Client::new(slow, "default");
    let (cluster, _) = Cluster::new(
        client.clone(),
        client.clone(),
        EndpointAccess::ServiceProxy,
        "test".to_owned(),
    );
    let (objects, _) = objects::watched(vec![None]);
    Arc::new(Context::new(
        cluster,
        Settings::default(),
        Arc::new(OperatorMetrics::new(false)),
        objects,
        Rights::default(),
    ))
}

fn object(server: &ApiServer, name: &str) -> Value {
    server.get("perfvalidations", NAMESPACE, name).expect("the object")
}

#[tokio::test]
async fn runs_that_end_at_once_are_read_one_after_the_other() {
    let server = ApiServer::new();
    let records: Vec<Payload> = (1..=TRIALS)
        .map(|trial| serde_json::from_str(&minute::minute(trial)).expect("a payload"))
        .collect();
    let runs: Vec<String> = (0..RUNS).map(|run| format!("run-{run:02}")).collect();
    for run in &runs {
        put_run(&server, run, &records);
    }
    drop(records);
    let context = context(&server);
    let growth = Growth::begin();

    let passes = runs.iter().cloned().map(|run| {
        let (server, context) = (server.clone(), context.clone());
        tokio::spawn(async move {
            for _ in 0..2_000 {
                let current: PerfValidation = serde_json::from_value(object(&server, &run)).expect("an object");
                if current.status.as_ref().is_some_and(|status| status.verdict.is_some()) {
                    return;
                }
                let guarded: Stored = serde_json::from_value(object(&server, &run)).expect("an object");
                let Ok(_) = reconcile(Arc::new(guarded), context.clone()).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            panic!("{run} was never judged: {}", object(&server, &run)["status"]);
        })
    });
    for pass in passes.collect::<Vec<_>>() {
        pass.await.expect("it ends");
    }
    let taken = growth.most();
    for run in &runs {
        let status = &object(&server, run)["status"];
        assert_eq!(status["verdict"], "Passed", "{status}");
        let name = status["resultsRef"]["name"].as_str().expect("saved results");
        let saved = server.get("configmaps", NAMESPACE, name).expect("the results");
        assert_eq!(saved["binaryData"].as_object().map(serde_json::Map::len), Some(20));
    }
    println!("{} MiB for {RUNS} runs at once", taken >> 20);
    assert!(taken < MOST, "{taken} bytes");
}
