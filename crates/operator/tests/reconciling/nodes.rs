//! The measurement of a node after a run.

use perfval_api::PerfValidationStatus;
use perfval_run::status::publish;
use perfval_testkit::api_server::{ApiServer, Fault};
use serde_json::{Value, json};

use crate::policy::put_policy;
use crate::{NAMESPACE, Operator, count_writes, eventually, reaches};

const NODE: &str = "n1";

/// A run with a verdict. What is published follows from the state, so that no pass writes it again.
fn put_run(server: &ApiServer, phase: &str, run: i64) {
    put_run_on(server, ("h100", NODE), phase, run);
}

/// Time of a run by its number. Runs that the operator ends have the time of this machine, which is later.
fn run_time(run: i64) -> String {
    format!("2020-11-20T11:{run:02}:00Z")
}

fn put_run_on(server: &ApiServer, (name, node): (&str, &str), phase: &str, run: i64) {
    let mut object = crate::manifest(name);
    let at = run_time(run);
    object["status"] = json!({
        "observedGeneration": 1, "phase": phase, "verdict": "Passed", "reason": "GatesMet",
        "run": {"number": run, "trigger": "Created", "generation": 1,
                "startedAt": at, "completedAt": at},
        "placement": {"node": node, "allocation": "DRA", "gpus": 1, "nodeGPUs": 1, "devices": [format!("GPU-{node}")]},
        "operatorState": {
            "environment": {"model": "lab/tiny", "image": "localhost/dynamo:1.4.2", "digest": "0123456789ab", "aiperf": "0.13.0"},
            "metrics": {"outputTokenThroughput": "1234"},
            "plan": {"deviceIds": [{"pool": node, "name": "gpu-0", "uuid": format!("GPU-{node}")}]},
            "workerPods": [{"pod": "w", "uid": "w", "restarts": 0, "devices": [format!("{node}/gpu-0")]}],
            "workers": [{"name": "w", "tokenMsOfTrials": ["8"]}],
        },
    });
    let mut status: PerfValidationStatus = serde_json::from_value(object["status"].take()).expect("a status");
    publish(&mut status);
    object["status"] = serde_json::to_value(&status).expect("JSON");
    server.put(object);
}

fn put_node(server: &ApiServer) -> Value {
    put_node_of(server, "2020-11-20T09:00:00Z")
}

/// A node that was created at this time.
fn put_node_of(server: &ApiServer, created: &str) -> Value {
    let metadata = json!({"name": NODE, "creationTimestamp": created});
    server.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}))["metadata"]["uid"].clone()
}

fn row(server: &ApiServer) -> Value {
    server.get("nodeperformances", "", NODE).unwrap_or_default()
}

fn shows(run: i64) -> impl Fn(&ApiServer) -> bool {
    move |server| row(server)["status"]["validation"]["run"] == run
}

/// Creates another object and waits until the operator has looked at it.
async fn look_at_another(server: &ApiServer) {
    server.put(crate::manifest("later"));
    eventually(server, "another object is looked at", |server| {
        !crate::status(server, "later").is_null()
    })
    .await;
}

#[tokio::test]
async fn a_leader_that_starts_records_what_the_one_before_did_not() {
    let server = ApiServer::new();
    let node = put_node(&server);
    put_run(&server, "Completed", 1);
    let operator = Operator::start(&server);
    eventually(&server, "the node is recorded", shows(1)).await;
    let first = row(&server);
    assert_eq!(first["metadata"]["ownerReferences"][0]["uid"], node);
    // The watch's store has no workers of a finished object.
    assert_eq!(first["status"]["gpus"][0]["uuid"], "GPU-n1");
    operator.end().await;

    server.forget_calls();
    let _operator = start_next_leader(&server).await;
    assert_eq!(row(&server), first);
    assert_eq!(count_writes(&server, "nodeperformances"), 0, "nothing is written twice");
}

/// Starts another leader, and waits until it knows the objects: it then looks for the node of a run, which is not there.
async fn start_next_leader(server: &ApiServer) -> Operator {
    put_run_on(server, ("other", "n2"), "Completed", 1);
    let operator = Operator::start(server);
    eventually(server, "the leader knows the objects", |server| {
        let calls = server.calls().into_iter();
        calls
            .filter(|call| call.resource == "nodes")
            .any(|call| call.name.as_deref() == Some("n2"))
    })
    .await;
    operator
}

#[tokio::test]
async fn a_leader_that_could_not_read_a_finished_run_tries_again() {
    let server = ApiServer::new();
    put_node(&server);
    put_run(&server, "Completed", 1);
    let unread = Fault::refuse("list", "perfvalidations", 500).asked_with("fieldSelector=metadata.name=h100");
    server.fail(unread.times(1));
    let _operator = Operator::start(&server);
    eventually(&server, "the node is recorded", shows(1)).await;
}

#[tokio::test]
async fn the_end_of_a_run_is_recorded_and_a_refusal_holds_up_only_the_record() {
    let server = ApiServer::new();
    put_node(&server);
    put_run(&server, "Completed", 1);
    let _operator = Operator::start(&server);
    eventually(&server, "the node is recorded", shows(1)).await;
    server.fail(Fault::refuse("patch", "nodeperformances/status", 403).times(1));
    end_run(&server, 2);
    reaches(&server, "h100", "Completed").await;
    eventually(&server, "the second run is recorded", shows(2)).await;
    assert_eq!(server.objects("nodeperformances").len(), 1);
}

#[tokio::test]
async fn a_run_whose_last_write_got_no_answer_is_recorded() {
    let server = ApiServer::new();
    put_node(&server);
    put_run(&server, "Completed", 1);
    let _operator = Operator::start(&server);
    eventually(&server, "the node is recorded", shows(1)).await;
    server.fail(Fault::lose_answer("patch", "perfvalidations/status").times(1));
    end_run(&server, 2);
    eventually(&server, "the second run is recorded", shows(2)).await;
}

/// A run that has its verdict and only removes its objects.
fn end_run(server: &ApiServer, run: i64) {
    server.edit("perfvalidations", NAMESPACE, "h100", |object| {
        object["status"]["phase"] = json!("CleaningUp");
        object["status"]["run"]["number"] = json!(run);
        object["status"]["run"]["startedAt"] = json!(run_time(run));
        object["status"]["run"]["completedAt"] = json!(null);
    });
}

/// A user may write any owner into an object of the own namespace.
#[tokio::test]
async fn a_run_counts_for_a_policy_only_in_the_namespace_of_its_template() {
    for (namespace, policy) in [(NAMESPACE, json!("p")), ("other", Value::Null)] {
        let server = ApiServer::new();
        put_node(&server);
        let template = json!({"metadata": {"namespace": namespace}, "spec": crate::manifest("unused")["spec"]});
        put_policy(&server, "p", &json!({"suspend": true, "validationTemplate": template}));
        let owner = json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "name": "p", "controller": true,
            "uid": server.get("perfvalidationpolicies", "", "p").expect("a policy")["metadata"]["uid"],
        });
        put_run(&server, "Completed", 1);
        server.edit("perfvalidations", NAMESPACE, "h100", |object| {
            object["metadata"]["ownerReferences"] = json!([owner]);
        });
        let _operator = Operator::start(&server);
        eventually(&server, "the node is recorded", shows(1)).await;
        assert_eq!(row(&server)["status"]["validation"]["policy"], policy);
        end_run(&server, 2);
        eventually(&server, "the second run is recorded", shows(2)).await;
        assert_eq!(row(&server)["status"]["validation"]["policy"], policy);
    }
}

#[tokio::test]
async fn the_run_of_a_policy_stays_for_two_ages_of_its_stale_verdicts() {
    for (max_age, shown) in [("720h", "h100"), ("168h", "of-user")] {
        let server = ApiServer::new();
        put_node(&server);
        put_policy(
            &server,
            "p",
            &json!({"suspend": true, "freshness": {"maxAge": max_age}}),
        );
        let uid = server.get("perfvalidationpolicies", "", "p").expect("a policy")["metadata"]["uid"].clone();
        put_run(&server, "Completed", 1);
        server.edit("perfvalidations", NAMESPACE, "h100", |object| {
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "name": "p",
                "controller": true, "uid": uid,
            }]);
        });
        let operator = Operator::start(&server);
        eventually(&server, "the node is recorded", shows(1)).await;
        assert_eq!(row(&server)["status"]["validation"]["policy"], "p");
        operator.end().await;

        put_run_on(&server, ("of-user", NODE), "Completed", 2);
        server.edit("perfvalidations", NAMESPACE, "of-user", |object| {
            object["status"]["run"]["startedAt"] = json!("2020-12-20T10:00:00Z");
            object["status"]["run"]["completedAt"] = json!("2020-12-20T11:00:00Z");
        });
        let _operator = start_next_leader(&server).await;
        assert_eq!(row(&server)["status"]["validation"]["name"], shown, "{max_age}");
    }
}

#[tokio::test]
async fn a_deleted_node_gets_no_object_and_a_recreated_node_a_new_one() {
    let server = ApiServer::new();
    put_run(&server, "Completed", 1);
    let operator = Operator::start(&server);
    look_at_another(&server).await;
    assert!(server.objects("nodeperformances").is_empty());
    operator.end().await;

    put_node(&server);
    let operator = Operator::start(&server);
    eventually(&server, "the node is recorded", shows(1)).await;
    let first = row(&server);
    operator.end().await;

    server.delete("nodes", "", NODE);
    let anew = put_node_of(&server, "2020-11-20T11:01:30Z");
    put_run(&server, "Completed", 2);
    let _operator = Operator::start(&server);
    eventually(&server, "the new node is recorded", shows(2)).await;
    let second = row(&server);
    assert_ne!(second["metadata"]["uid"], first["metadata"]["uid"]);
    assert_eq!(second["metadata"]["ownerReferences"][0]["uid"], anew);
    // The first run of a machine is not learned.
    let earlier = |row: &Value| row["status"]["gpus"][0]["operatorState"]["s"].clone();
    assert_eq!(
        (earlier(&first), earlier(&second)),
        (Value::Null, json!(1)),
        "the GPU keeps its past"
    );
}

/// Lets the operator write another node. Once the watch shows the first object, that write forgets that it was an own one.
async fn record_another_node(server: &ApiServer) {
    server.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2", "creationTimestamp": "2020-11-20T09:00:00Z"}}));
    put_run_on(server, ("other", "n2"), "CleaningUp", 1);
    eventually(server, "the other node is recorded", |server| {
        server.get("nodeperformances", "", "n2").is_some()
    })
    .await;
}

/// Starts an operator that records the first run.
async fn record_first_run(server: &ApiServer) -> Operator {
    put_node(server);
    put_run(server, "Completed", 1);
    let operator = Operator::start(server);
    eventually(server, "the node is recorded", shows(1)).await;
    operator
}

/// Ends the second run, and returns the number of earlier runs that its GPU has.
async fn record_second_run(server: &ApiServer) -> Value {
    end_run(server, 2);
    eventually(server, "the second run is recorded", shows(2)).await;
    row(server)["status"]["gpus"][0]["operatorState"]["s"].clone()
}

/// Puts a new machine in place of the node, whose object goes with it.
fn replace_node(server: &ApiServer) {
    server.delete("nodes", "", NODE);
    server.delete("nodeperformances", "", NODE);
    put_node_of(server, "2020-11-20T11:01:30Z");
}

#[tokio::test]
async fn a_gpu_keeps_its_past_although_its_node_and_its_object_were_deleted() {
    let server = ApiServer::new();
    let _operator = record_first_run(&server).await;
    record_another_node(&server).await;
    replace_node(&server);
    assert_eq!(record_second_run(&server).await, 1);
}

#[tokio::test]
async fn a_gpu_keeps_its_past_although_a_new_leader_has_written_nothing_yet() {
    let server = ApiServer::new();
    record_first_run(&server).await.end().await;

    let _operator = start_next_leader(&server).await;
    replace_node(&server);
    assert_eq!(record_second_run(&server).await, 1);
}

#[tokio::test]
async fn an_object_that_cannot_be_parsed_keeps_its_past_and_holds_up_no_other() {
    let server = ApiServer::new();
    record_first_run(&server).await.end().await;
    let write_verdict = |verdict: &str| {
        server.edit("nodeperformances", "", NODE, |object| {
            object["status"]["verdict"] = json!(verdict);
        })
    };
    let unreadable = write_verdict("VerdictOfAnotherVersion");
    put_run(&server, "Completed", 2);
    let operator = Operator::start(&server);
    record_another_node(&server).await;
    assert_eq!(row(&server), unreadable, "a person may still correct it");
    let text = operator.metrics().text([]);
    let reported = "perfvalidation_reconcile_errors_total{reason=\"SpecUnreadable\"} 1";
    assert!(text.contains(reported), "{text}");

    write_verdict("Passed");
    eventually(&server, "the second run is recorded", shows(2)).await;
    let created = server.count_calls("create", "nodeperformances");
    assert_eq!(created, 2, "one for each node");
    assert_eq!(row(&server)["status"]["gpus"][0]["operatorState"]["s"], 1);
}

#[tokio::test]
async fn a_gpu_has_no_past_after_a_person_deleted_the_object_of_its_node() {
    let server = ApiServer::new();
    let _operator = record_first_run(&server).await;
    record_another_node(&server).await;
    server.delete("nodeperformances", "", NODE);
    assert_eq!(record_second_run(&server).await, Value::Null);
}
