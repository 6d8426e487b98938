//! Reads of sizing: their order, pages, and versions.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use perfval_run::observed::Need;
use perfval_sizing::Seen;
use perfval_testkit::api_server::{Fault, Kind};
use perfval_testkit::inventory::{ClaimBuilder, Cluster};
use serde_json::json;
use tokio::time::sleep;

use crate::world::{NAMESPACE, World};

/// Kinds of which a run's inventory has every object.
const FOLLOWED: [&str; 4] = ["resourceslices", "nodes", "pods", "resourceclaims"];

/// Lists or watches of the followed kinds.
fn calls(world: &World, verb: &str) -> Vec<String> {
    let calls = world.server.calls().into_iter().filter(|call| call.verb == verb);
    let resources = calls.map(|call| call.resource);
    resources
        .filter(|resource| FOLLOWED.contains(&resource.as_str()))
        .collect()
}

fn pod_lists(world: &World) -> usize {
    calls(world, "list").iter().filter(|kind| *kind == "pods").count()
}

/// Names of the pods in an inventory.
async fn pods(world: &World) -> Vec<String> {
    let inventory = world.inventory().await;
    let pods = inventory.pods.present().expect("pods").iter();
    pods.map(|pod| pod.name.to_string()).collect()
}

fn on_node_1(world: &World) {
    world.edit(|object| object["status"]["placement"]["node"] = json!("n1"));
}

fn put_pod(world: &World, name: &str) {
    put_pod_on(world, name, "node-1");
}

fn put_pod_on_each_node(world: &World) {
    for node in ["n1", "n2"] {
        put_pod_on(world, &format!("on-{node}"), node);
    }
}

fn put_pod_on(world: &World, name: &str, node: &str) {
    let pod = json!({"spec": {"nodeName": node, "containers": []}, "status": {"phase": "Running"}});
    world.put_child("v1", "Pod", name, &pod);
}

#[tokio::test]
async fn promises_are_read_before_claims() {
    let world = World::new();
    world.server.forget_calls();
    world.inventory().await;
    let order: Vec<String> = world.server.calls().into_iter().map(|call| call.resource).collect();
    let place = |resource: &str| order.iter().position(|known| known == resource);
    assert!(place("bindrequests") < place("resourceclaims"), "{order:?}");
    let all: BTreeSet<String> = order.into_iter().collect();
    for other in [
        "deviceclasses",
        "devicetaintrules",
        "limitranges",
        "resourcequotas",
        "bindrequests",
    ] {
        assert!(all.contains(other), "{all:?}");
    }
}

#[tokio::test]
async fn runs_that_ask_together_read_the_cluster_once() {
    let world = World::new();
    on_node_1(&world);
    put_pod_on_each_node(&world);
    world.server.forget_calls();
    for inventory in join_all((0..16).map(|_| world.inventory())).await {
        let pods = inventory.pods.present().expect("pods").iter();
        let nodes: Vec<&str> = pods.map(|pod| &*pod.node).collect();
        assert_eq!(nodes, ["n1"], "what is on other nodes is not kept");
    }
    world.inventory().await;
    assert_eq!(calls(&world, "list"), FOLLOWED);
    assert_eq!(calls(&world, "watch"), FOLLOWED);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_hangs_is_made_once_for_all() {
    let world = World::new();
    on_node_1(&world);
    world.server.fail(Fault::hang("list", "nodes").times(1));
    world.server.forget_calls();
    let looks = join_all((0..16).map(|_| world.inventory())).await;
    assert_eq!(calls(&world, "list"), FOLLOWED, "the read took 10 s");
    assert!(looks.iter().all(|inventory| inventory.nodes.unknown().is_some()));
    sleep(Duration::from_secs(1)).await;
    assert!(world.inventory().await.nodes.present().is_some());
}

#[tokio::test]
async fn changes_are_seen_without_another_list() {
    let world = World::new();
    put_pod(&world, "a");
    assert_eq!(pods(&world).await, ["perf/a"]);
    put_pod(&world, "c");
    put_pod(&world, "b");
    assert_eq!(pods(&world).await, ["perf/a", "perf/b", "perf/c"]);
    world
        .server
        .edit("pods", NAMESPACE, "a", |pod| pod["status"]["phase"] = "Failed".into());
    world.server.delete("pods", NAMESPACE, "b");
    assert_eq!(pods(&world).await, ["perf/c"]);
    assert_eq!(pod_lists(&world), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_goes_on_from_its_last_version() {
    let world = World::new();
    put_pod(&world, "a");
    assert_eq!(pods(&world).await, ["perf/a"]);
    world.server.end_watches();
    put_pod(&world, "b");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(pods(&world).await, ["perf/a", "perf/b"]);
    assert_eq!(calls(&world, "list"), FOLLOWED);
    assert_eq!(calls(&world, "watch").len(), 8);
}

#[tokio::test(start_paused = true)]
async fn after_an_expired_watch_everything_is_listed_again() {
    let world = World::new();
    put_pod(&world, "a");
    assert_eq!(pods(&world).await, ["perf/a"]);
    world.server.delete("pods", NAMESPACE, "a");
    put_pod(&world, "b");
    world.server.expire_watches();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(pods(&world).await, ["perf/b"]);
    assert_eq!(calls(&world, "list").len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_watch_comes_too_late_counts_until_the_next_look() {
    let world = World::new();
    put_pod(&world, "a");
    world.server.fail(Fault::refuse("watch", "pods", 410));
    assert_eq!(pods(&world).await, ["perf/a"]);
    sleep(Duration::from_hours(1)).await;
    assert_eq!(pod_lists(&world), 1, "nobody looks");
    put_pod(&world, "b");
    assert_eq!(pods(&world).await, ["perf/a", "perf/b"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_hangs_makes_its_kind_unknown() {
    let world = World::new();
    world.server.fail(Fault::hang("watch", "resourceclaims").times(1));
    let claims = world.inventory().await.claims;
    let why = claims.unknown().expect("unknown");
    assert!(why.starts_with("watch ResourceClaims: "), "{why}");
    sleep(Duration::from_secs(1)).await;
    assert!(world.inventory().await.claims.present().is_some());
}

#[tokio::test]
async fn without_a_node_the_whole_cluster_is_listed_and_not_watched() {
    let world = World::new();
    world.edit(|object| object["status"]["placement"] = json!(null));
    put_pod_on_each_node(&world);
    assert_eq!(pods(&world).await, ["perf/on-n1", "perf/on-n2"]);
    assert_eq!(calls(&world, "watch").len(), 0);
    assert_eq!(calls(&world, "list"), FOLLOWED, "holders are read after devices");
}

#[tokio::test]
async fn the_devices_of_a_run_come_from_the_watches_and_after_a_doubt_from_new_lists() {
    let world = World::new();
    let others = ClaimBuilder::named("elsewhere").holds("n2", "gpu-3");
    let cluster = Cluster::of_gpus(8).claim(ClaimBuilder::named("held").holds("n1", "gpu-3"));
    for object in cluster.claim(others).objects() {
        world.server.put(object);
    }
    on_node_1(&world);
    let held = async || {
        let seen = world.observe(Need::Devices).await;
        let nodes = &seen.devices.present().expect("the devices").nodes;
        assert_eq!(nodes.present().map(Vec::len), Some(1));
        let devices = seen.devices.present().expect("the devices");
        assert_eq!(devices.slices.present().map(Vec::len), Some(1));
        let claims = devices.claims.present().expect("the claims").iter();
        claims.map(|claim| claim.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(held().await, ["other/held"], "those of other nodes are not kept");
    assert_eq!(calls(&world, "list"), ["resourceslices", "resourceclaims"]);
    assert_eq!(calls(&world, "watch").len(), 0, "nothing is followed for it");
    world.server.forget_calls();
    world.cluster.prepare().await;
    assert_eq!(held().await, ["other/held"]);
    assert_eq!(calls(&world, "list"), FOLLOWED, "once for all looks");
    assert_eq!(calls(&world, "watch").len(), 4);
    world.edit(|object| object["status"]["operatorState"]["gpuCheck"] = json!({}));
    world.server.forget_calls();
    let claims = world.server.shared("resourceclaims");
    let claim = claims
        .iter()
        .find(|claim| claim["metadata"]["name"] == "held")
        .expect("it is there");
    let namespace = claim["metadata"]["namespace"].as_str().unwrap_or_default();
    world.server.delete("resourceclaims", namespace, "held");
    assert!(held().await.is_empty(), "the watch may be behind");
    assert_eq!(calls(&world, "list"), ["resourceslices", "resourceclaims"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_makes_its_kind_unknown() {
    let world = World::new();
    put_pod(&world, "a");
    world.server.fail(Fault::refuse("watch", "pods", 403).times(1));
    let seen = world.inventory().await.pods;
    assert!(
        matches!(&seen, Seen::Unknown(why) if why.starts_with("watch Pods: 403")),
        "{seen:?}"
    );
    put_pod(&world, "b");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(pods(&world).await, ["perf/a", "perf/b"], "it is tried again");
}

#[tokio::test(start_paused = true)]
async fn an_operator_without_runs_watches_nothing() {
    let world = World::new();
    put_pod(&world, "a");
    assert_eq!(pods(&world).await, ["perf/a"]);
    sleep(Duration::from_mins(20)).await;
    world.server.forget_calls();
    sleep(Duration::from_hours(1)).await;
    assert_eq!(world.server.calls().len(), 0);
    put_pod(&world, "b");
    assert_eq!(pods(&world).await, ["perf/a", "perf/b"]);
    assert_eq!(calls(&world, "list"), FOLLOWED);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_once_the_cluster_is_dropped() {
    let world = World::new();
    assert!(pods(&world).await.is_empty());
    let server = world.server.clone();
    drop(world);
    server.forget_calls();
    sleep(Duration::from_mins(3)).await;
    assert_eq!(server.calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_installed_is_absent_and_known() {
    let world = World::new();
    let inventory = world.inventory().await;
    assert!(inventory.device_class.is_absent());
    assert!(inventory.taint_rules.is_absent());
    assert_eq!(inventory.slices, Seen::Present(Vec::new()));

    world.server.withdraw("resourceslices");
    world.server.end_watches();
    sleep(Duration::from_secs(2)).await;
    assert!(world.inventory().await.slices.is_absent());
}

#[tokio::test]
async fn the_model_cache_is_where_its_volume_is() {
    let world = World::new();
    let volume = async || world.inventory().await.cache_volume;
    assert_eq!(volume().await, Seen::Absent, "no cache");
    world.put_cache();
    let Seen::Present(found) = volume().await else {
        panic!("a volume")
    };
    assert_eq!(found.claim, "weights");
    let zone = &json!(found.nodes)["nodeSelectorTerms"][0]["matchExpressions"][0];
    assert_eq!(zone["values"], json!(["a"]));
    world
        .server
        .edit("persistentvolumes", "", "disk-1", |volume| volume["spec"] = json!({}));
    assert_eq!(volume().await, Seen::Absent, "every node reaches it");
    world
        .server
        .edit("persistentvolumeclaims", NAMESPACE, "weights", |claim| {
            claim["spec"] = json!({"volumeName": ""});
        });
    assert_eq!(volume().await, Seen::Absent, "not bound yet");
}

#[tokio::test]
async fn taint_rules_are_read_at_the_version_that_is_served() {
    let world = World::new();
    let kind = Kind::new(
        "resource.k8s.io",
        "v1beta2",
        "devicetaintrules",
        "DeviceTaintRule",
        false,
    );
    world.server.serve(kind);
    world.server.put(json!({
        "apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "broken"},
        "spec": {"taint": {"key": "broken", "effect": "NoExecute"}},
    }));
    let Seen::Present(rules) = world.inventory().await.taint_rules else {
        panic!("they are not read")
    };
    assert_eq!(rules[0].pointer("/spec/taint/effect"), Some(&json!("NoExecute")));
    assert_eq!(
        rules[0]["apiVersion"], "resource.k8s.io/v1beta2",
        "it decides on what a rule is for"
    );
}

#[tokio::test(start_paused = true)]
async fn promises_that_no_scheduler_serves_are_listed_once_a_minute() {
    let world = World::new();
    let looks = async |count: usize| {
        world.server.forget_calls();
        for _ in 0..count {
            world.inventory().await;
            sleep(Duration::from_secs(1)).await;
        }
        world.count_calls("bindrequests")
    };
    assert_eq!(looks(3).await, 1);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(looks(3).await, 1);
    let kind = Kind::new("scheduling.run.ai", "v1alpha2", "bindrequests", "BindRequest", true);
    world.server.serve(kind);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(looks(3).await, 3, "KAI was installed");
}

fn put_pods(world: &World, count: usize) {
    for number in 0..count {
        let name = format!("pod-{number:04}");
        world.server.put(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "any", "name": name},
            "spec": {"nodeName": "node-1", "containers": []}, "status": {"phase": "Running"},
        }));
    }
}

#[tokio::test]
async fn a_list_has_all_its_pages_and_no_finished_pods() {
    let world = World::new();
    put_pods(&world, 1_200);
    world.server.edit("pods", "any", "pod-0001", |pod| {
        pod["status"]["phase"] = "Succeeded".into();
    });
    world.server.forget_calls();
    assert_eq!(pods(&world).await.len(), 1_199);
    assert_eq!(pod_lists(&world), 3, "of 500 each");
}

#[tokio::test]
async fn an_expired_list_is_read_again_from_the_beginning() {
    let world = World::new();
    put_pods(&world, 700);
    world.fail(Fault::refuse("list", "pods", 410).asked_with("continue=").times(1));
    assert_eq!(pods(&world).await.len(), 700);

    let world = World::new();
    put_pods(&world, 700);
    world.fail(Fault::refuse("list", "pods", 410).asked_with("continue="));
    let pods = world.inventory().await.pods;
    assert!(
        matches!(&pods, Seen::Unknown(why) if why.starts_with("list Pods: 410")),
        "half a list is none: {pods:?}"
    );
}
