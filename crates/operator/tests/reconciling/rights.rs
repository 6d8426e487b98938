//! Rights that are missing: named within seconds, and not missed any more once they are granted.

use std::sync::Arc;
use std::time::Duration;

use kube::client::ClientBuilder;
use perfval_cluster::{PERMISSIONS, Scope};
use perfval_operator::calls::Counting;
use perfval_operator::metrics::OperatorMetrics;
use perfval_operator::objects;
use perfval_operator::rbac::{Duties, Right};
use perfval_operator::rights::Rights;
use perfval_testkit::api_server::{ApiServer, Call, Fault};
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use crate::{NAMESPACE, Operator, client, eventually, goes, has_reason, manifest, phase, reaches, status, with_gpus};

fn duties() -> Duties {
    Duties {
        namespaces: vec![None],
        lease: Some("own".to_owned()),
        outside: false,
    }
}

pub(crate) fn looking(server: &ApiServer, rights: &Rights, metrics: &Arc<OperatorMetrics>) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(rights.clone().watch(
        server.client(),
        duties().rights(),
        metrics.clone(),
        || {},
    )))
}

fn missing(metrics: &OperatorMetrics) -> String {
    let text = metrics.text([]);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("perfvalidation_missing_rights "));
    line.unwrap_or_default().to_owned()
}

/// Number of rights that were asked for.
fn reviews(server: &ApiServer) -> usize {
    server.count_calls("create", "selfsubjectaccessreviews")
}

// The clock is paused: it jumps to the next timer whenever every task waits.

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_named_and_missed_no_longer_once_granted() {
    let server = ApiServer::new();
    server.fail(Fault::refuse("patch", "perfvalidations/status", 403));
    server.fail(Fault::refuse("watch", "jobs", 403));
    let (rights, metrics) = (Rights::default(), Arc::new(OperatorMetrics::new(true)));
    assert_eq!(rights.complaint(), None, "not known yet");
    let _looking = looking(&server, &rights, &metrics);
    eventually(&server, "it is reported", |_| rights.complaint().is_some()).await;
    let complaint = rights.complaint().unwrap_or_default();
    for words in [
        "patch perfvalidations/status.perfvalidation.dev (cluster-wide)",
        "watch jobs.batch (cluster-wide)",
        "config/rbac",
    ] {
        assert!(complaint.contains(words), "{words} is not in {complaint}");
    }
    assert_eq!(complaint.lines().count(), 4, "and nothing else: {complaint}");
    assert_eq!(missing(&metrics), "2");

    server.heal();
    eventually(&server, "granted", |_| rights.complaint().is_none()).await;
    assert_eq!(missing(&metrics), "0");
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_taken_away_later_is_missed_after_the_first_refusal() {
    let server = ApiServer::new();
    let (rights, metrics) = (Rights::default(), Arc::new(OperatorMetrics::new(true)));
    let _looking = looking(&server, &rights, &metrics);
    eventually(&server, "asked", |server| reviews(server) > 20).await;
    server.fail(Fault::refuse("watch", "pods", 403));
    assert_eq!(rights.complaint(), None);

    let counting = Counting::new(metrics.clone(), rights.clone());
    let client = ClientBuilder::new(server.clone(), "default")
        .with_layer(&counting)
        .build();
    let refused = kube::Api::<k8s_openapi::api::core::v1::Pod>::all(client)
        .watch(&kube::api::WatchParams::default(), "0")
        .await;
    assert!(refused.is_err());
    eventually(&server, "it is reported", |_| {
        rights
            .complaint()
            .is_some_and(|complaint| complaint.contains("watch pods (cluster-wide)"))
    })
    .await;
    let text = metrics.text([]);
    let counted = "perfvalidation_api_requests_total{verb=\"watch\",resource=\"pods\",code=\"403\"} 1";
    assert!(text.contains(counted), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_another_reason_checks_the_rights_of_its_call_alone() {
    let server = ApiServer::new();
    let (rights, metrics) = (Rights::default(), Arc::new(OperatorMetrics::new(true)));
    let namespaces = (0..50).map(|number| Some(format!("n{number}")));
    let needed = Duties {
        namespaces: namespaces.collect(),
        lease: None,
        outside: false,
    };
    let mut needed = needed.rights();
    needed.push(Right {
        group: "authentication.k8s.io",
        resource: "tokenreviews",
        verb: "create",
        name: None,
        namespace: None,
    });
    let all = needed.len();
    let watching = rights.clone().watch(server.client(), needed, metrics.clone(), || {});
    let _looking = AbortOnDropHandle::new(tokio::spawn(watching));
    eventually(&server, "asked", |server| reviews(server) == all).await;
    rights.doubt("create", "jobs");
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(reviews(&server), all + 50);
    server.fail(Fault::refuse("create", "configmaps", 403));
    // The first apply of an object needs this right too.
    rights.doubt("patch", "configmaps");
    eventually(&server, "it is reported", |_| rights.complaint().is_some()).await;
    assert_eq!(missing(&metrics), "50");
    server.fail(Fault::refuse("create", "tokenreviews", 403));
    // The counter of the calls has no name for this resource.
    rights.doubt("create", "other");
    eventually(&server, "the other one is reported", |_| missing(&metrics) == "51").await;
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_doubted_while_another_one_is_missing_is_reported_too() {
    let server = ApiServer::new();
    server.fail(Fault::refuse("watch", "jobs", 403));
    let (rights, metrics) = (Rights::default(), Arc::new(OperatorMetrics::new(true)));
    let _looking = looking(&server, &rights, &metrics);
    eventually(&server, "it is reported", |_| rights.complaint().is_some()).await;
    server.fail(Fault::refuse("watch", "pods", 403));
    rights.doubt("watch", "pods");
    eventually(&server, "both are reported", |_| {
        let complaint = rights.complaint().unwrap_or_default();
        let reported = ["watch pods (cluster-wide)", "watch jobs.batch (cluster-wide)"];
        reported.iter().all(|right| complaint.contains(right))
    })
    .await;
    server.heal();
    eventually(&server, "granted", |_| rights.complaint().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_right_is_not_missing() {
    for fault in [
        Fault::refuse("create", "selfsubjectaccessreviews", 403),
        Fault::hang("create", "selfsubjectaccessreviews"),
    ] {
        let server = ApiServer::new();
        server.fail(fault);
        let (rights, metrics) = (Rights::default(), Arc::new(OperatorMetrics::new(true)));
        let _looking = looking(&server, &rights, &metrics);
        rights.doubt("watch", "pods");
        // The second round begins once the first one is over: eight questions at a time, and each may take five seconds.
        let second_round = async {
            while server.calls().len() <= duties().rights().len() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(5), second_round)
            .await
            .expect("asked again");
        assert_eq!(rights.complaint(), None);
    }
}

#[tokio::test]
async fn an_object_whose_namespace_is_not_allowed_needs_no_right_of_runs() {
    let server = with_gpus(4);
    let of_runs: Vec<(&str, &str)> = PERMISSIONS
        .iter()
        .filter(|permission| permission.scope == Scope::Run)
        .flat_map(|permission| permission.verbs.iter().map(|verb| (*verb, permission.resource)))
        .collect();
    for (verb, resource) in &of_runs {
        server.fail(Fault::refuse(verb, resource, 403));
    }
    let _operator = Operator::start(&server);
    server.put(manifest("waits"));
    has_reason(&server, "waits", "Refused").await;
    assert_eq!(phase(&server, "waits"), "Pending");
    let suspend = |value: bool| {
        server.edit("perfvalidations", NAMESPACE, "waits", |object| {
            object["spec"]["suspend"] = value.into();
        });
    };
    suspend(true);
    reaches(&server, "waits", "Suspended").await;
    suspend(false);
    reaches(&server, "waits", "Pending").await;
    server.delete("perfvalidations", NAMESPACE, "waits");
    goes(&server, "waits").await;
    let refused = |call: &Call| of_runs.contains(&(call.verb, call.resource.as_str()));
    let refused: Vec<_> = server.calls().into_iter().filter(refused).collect();
    assert!(refused.is_empty(), "{refused:?}");
}

fn reported(server: &ApiServer) -> Vec<Value> {
    let events = server.objects("events").into_iter();
    events
        .filter(|event| event["reason"] == "CallFailed" && event["action"] == "CheckRights")
        .collect()
}

#[tokio::test]
async fn an_object_gets_one_event_and_its_run_goes_on_when_the_right_is_granted() {
    let server = with_gpus(4);
    server.fail(Fault::refuse("list", "nodes", 403));
    let (rights, metrics) = (Rights::default(), Arc::new(OperatorMetrics::new(true)));
    let _looking = looking(&server, &rights, &metrics);
    eventually(&server, "known", |_| rights.complaint().is_some()).await;
    let (objects, scopes) = objects::watched(vec![None]);
    let _operator = Operator::start_through(&server, &client(&server), objects, scopes, rights);
    server.put(manifest("waits"));
    eventually(&server, "it is reported", |server| {
        !reported(server).is_empty() && status(server, "waits")["reason"] == "CallFailed"
    })
    .await;
    let events = reported(&server);
    let note = events[0]["note"].as_str().unwrap_or_default();
    assert!(note.contains("list nodes (cluster-wide)"), "{note}");
    assert_eq!(events[0]["regarding"]["name"], "waits");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0]["series"].is_null(), "said once: {events:?}");

    server.heal();
    // Another run makes the planner look; it looks for all.
    server.put(manifest("later"));
    eventually(&server, "it goes on", |server| {
        !["Pending", "Sizing", ""].contains(&phase(server, "waits").as_str())
    })
    .await;
    assert!(server.get("perfvalidations", NAMESPACE, "waits").is_some());
}
