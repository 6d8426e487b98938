//! What sizing counts: the order of the reads, pages, and versions.

use std::collections::BTreeSet;

use futures::future::join_all;
use perfval_run::observed::Need;
use perfval_sizing::Seen;
use perfval_testkit::api_server::{Fault, Kind};
use serde_json::json;

use crate::world::{NAME, NAMESPACE, World};

#[tokio::test]
async fn holders_are_read_after_devices() {
    let world = World::new();
    world.server.forget_calls();
    world.observe(Need::Inventory).await;
    let order: Vec<String> = world.server.calls().into_iter().map(|call| call.resource).collect();
    let holders = ["pods", "bindrequests", "resourceclaims"];
    let (devices, held) = order.split_at(order.len() - holders.len());
    assert_eq!(held, holders, "{order:?}");
    let devices: BTreeSet<&str> = devices.iter().map(String::as_str).collect();
    let expected = [
        "deviceclasses",
        "devicetaintrules",
        "limitranges",
        "nodes",
        "resourcequotas",
        "resourceslices",
    ];
    assert_eq!(devices, BTreeSet::from(expected));
}

#[tokio::test]
async fn runs_that_ask_together_read_the_cluster_once() {
    let world = World::new();
    world.server.edit("perfvalidations", NAMESPACE, NAME, |object| {
        object["status"]["placement"]["node"] = json!("n1");
    });
    for node in ["n1", "n2"] {
        let pod = json!({"spec": {"nodeName": node}, "status": {"phase": "Running"}});
        world.put_child("v1", "Pod", &format!("on-{node}"), &pod);
    }
    world.server.forget_calls();
    let looks = join_all((0..16).map(|_| world.observe(Need::Inventory))).await;
    for seen in &looks {
        let inventory = seen.inventory.present().expect("an inventory");
        let pods: Vec<&str> = inventory
            .pods
            .present()
            .expect("pods")
            .iter()
            .map(|pod| &*pod.node)
            .collect();
        assert_eq!(pods, ["n1"], "what is on other nodes is not kept");
    }
    let calls = world.server.calls();
    for resource in ["nodes", "pods", "resourceslices", "resourceclaims"] {
        let lists = calls.iter().filter(|call| call.resource == resource).count();
        assert_eq!(lists, 1, "{resource}: {calls:?}");
    }
    world.observe(Need::Inventory).await;
    let lists = world
        .server
        .calls()
        .iter()
        .filter(|call| call.resource == "pods")
        .count();
    assert_eq!(lists, 2, "nothing is kept once nobody waits for it");
}

#[tokio::test(start_paused = true)]
async fn runs_that_asked_before_a_slow_read_share_it() {
    let world = World::new();
    world.server.edit("perfvalidations", NAMESPACE, NAME, |object| {
        object["status"]["placement"]["node"] = json!("n1");
    });
    world.server.fail(Fault::hang("list", "nodes").times(1));
    world.server.forget_calls();
    let _looks = join_all((0..16).map(|_| world.observe(Need::Inventory))).await;
    let calls = world.server.calls();
    let lists = calls.iter().filter(|call| call.resource == "resourceclaims").count();
    assert_eq!(lists, 1, "the read took 10 s");
}

#[tokio::test]
async fn nothing_installed_is_absent_and_known() {
    let world = World::new();
    let seen = world.observe(Need::Inventory).await;
    let inventory = seen.inventory.present().unwrap();
    assert!(inventory.device_class.is_absent());
    assert!(inventory.taint_rules.is_absent());
    assert_eq!(inventory.slices, Seen::Present(Vec::new()));

    world.server.withdraw("resourceslices");
    let seen = world.observe(Need::Inventory).await;
    assert!(seen.inventory.present().unwrap().slices.is_absent());
}

#[tokio::test]
async fn the_model_cache_is_where_its_volume_is() {
    let world = World::new();
    let volume = async || {
        let seen = world.observe(Need::Inventory).await;
        seen.inventory.present().unwrap().cache_volume.clone()
    };
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
    let seen = world.observe(Need::Inventory).await;
    let Seen::Present(rules) = &seen.inventory.present().unwrap().taint_rules else {
        panic!("{seen:?}")
    };
    assert_eq!(rules[0].pointer("/spec/taint/effect"), Some(&json!("NoExecute")));
    assert_eq!(
        rules[0]["apiVersion"], "resource.k8s.io/v1beta2",
        "it decides on what a rule is for"
    );
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
    let seen = world.observe(Need::Inventory).await;
    assert_eq!(seen.inventory.present().unwrap().pods.present().unwrap().len(), 1_199);
    let pages = world
        .server
        .calls()
        .iter()
        .filter(|call| call.resource == "pods")
        .count();
    assert_eq!(pages, 3, "of 500 each");
}

#[tokio::test]
async fn an_expired_list_is_read_again_from_the_beginning() {
    let world = World::new();
    put_pods(&world, 700);
    world
        .server
        .fail(Fault::refuse("list", "pods", 410).asked_with("continue=").times(1));
    let seen = world.observe(Need::Inventory).await;
    assert_eq!(seen.inventory.present().unwrap().pods.present().unwrap().len(), 700);

    world
        .server
        .fail(Fault::refuse("list", "pods", 410).asked_with("continue="));
    let seen = world.observe(Need::Inventory).await;
    let pods = &seen.inventory.present().unwrap().pods;
    assert!(
        matches!(pods, Seen::Unknown(why) if why.starts_with("list Pods: 410")),
        "half a list is none: {pods:?}"
    );
}
