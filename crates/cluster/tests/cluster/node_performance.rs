//! Writes of the measurements of nodes.

use perfval_api::fleet::NodePerformance;
use perfval_sizing::Seen;
use perfval_testkit::api_server::Fault;
use serde_json::json;

use crate::world::World;

pub fn row(node: &str, verdict: &str) -> NodePerformance {
    serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "NodePerformance",
        "metadata": {"name": node}, "spec": {},
        "status": {
            "verdict": verdict, "measuredAt": "2026-11-20T10:00:00Z",
            "validation": {"namespace": "perf", "name": "demo", "uid": "u", "run": 1},
        },
    }))
    .expect("a NodePerformance")
}

async fn write(world: &World, object: &NodePerformance) -> Option<NodePerformance> {
    let written = world.cluster.write_node_performance(object).await;
    written.expect("no failure")
}

async fn done(world: &World, object: &NodePerformance) -> NodePerformance {
    write(world, object).await.expect("no conflict")
}

#[tokio::test]
async fn a_new_object_is_created_with_its_status_and_later_only_its_status_is_written() {
    let world = World::new();
    let first = done(&world, &row("n1", "Passed")).await;
    assert_eq!(first.status, row("n1", "Passed").status);
    world.server.forget_calls();
    let next = NodePerformance {
        status: row("n1", "Failed").status,
        ..first
    };
    let second = done(&world, &next).await;
    assert_eq!(second.status, next.status);
    assert_eq!(world.server.calls().len(), 1);
}

#[tokio::test]
async fn a_newer_object_is_not_overwritten() {
    let world = World::new();
    let old = done(&world, &row("n1", "Passed")).await;
    world.server.edit("nodeperformances", "", "n1", |object| {
        object["status"]["verdict"] = "Failed".into();
    });
    assert_eq!(write(&world, &old).await, None);
    assert_eq!(write(&world, &row("n1", "Passed")).await, None);
    world.server.delete("nodeperformances", "", "n1");
    assert_eq!(write(&world, &old).await, None);
}

#[tokio::test]
async fn a_refused_write_is_a_failure() {
    let world = World::new();
    world.server.fail(Fault::refuse("create", "nodeperformances", 403));
    let written = world.cluster.write_node_performance(&row("n1", "Passed")).await;
    assert!(written.is_err());
}

#[tokio::test]
async fn only_the_object_with_this_uid_is_deleted() {
    let world = World::new();
    done(&world, &row("n1", "Passed")).await;
    let known = || world.server.get("nodeperformances", "", "n1");
    let uid = known().expect("there")["metadata"]["uid"].clone();
    let delete = async |uid: &str| world.cluster.delete_node_performance("n1", uid).await.unwrap();
    delete("another").await;
    assert!(known().is_some());
    delete(uid.as_str().expect("a uid")).await;
    assert!(known().is_none());
    delete("another").await;
}

#[tokio::test]
async fn a_node_without_an_answer_is_not_absent() {
    let world = World::new();
    assert!(matches!(world.cluster.node_identity("n1").await, Seen::Absent));
    world
        .server
        .put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}));
    assert!(matches!(world.cluster.node_identity("n1").await, Seen::Present(_)));
    world.server.fail(Fault::refuse("get", "nodes", 403));
    assert!(matches!(world.cluster.node_identity("n1").await, Seen::Unknown(_)));
}
