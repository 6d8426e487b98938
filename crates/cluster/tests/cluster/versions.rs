//! `resource.k8s.io` as older clusters serve it.

use kube::core::{ObjectMeta, ResourceExt as _};
use perfval_run::observed::{ChildKind, Need};
use perfval_run::{Effect, Run, build};
use perfval_sizing::Seen;
use perfval_testkit::api_server::{Fault, Kind};
use perfval_testkit::inventory::{ClaimBuilder, Cluster};
use serde_json::{Value, json};

use crate::world::{NAME, NAMESPACE, World};

/// A cluster that serves `resource.k8s.io` at one version alone, with one node of eight GPUs; a claim holds one of
/// them.
fn older(version: &str) -> World {
    let world = World::new();
    let kinds = [
        ("deviceclasses", "DeviceClass", false),
        ("resourceclaims", "ResourceClaim", true),
        ("resourceclaimtemplates", "ResourceClaimTemplate", true),
        ("resourceslices", "ResourceSlice", false),
    ];
    for (plural, kind, namespaced) in kinds {
        world.server.withdraw(plural);
        world
            .server
            .serve(Kind::new("resource.k8s.io", version, plural, kind, namespaced));
    }
    world.server.edit("perfvalidations", NAMESPACE, NAME, |object| {
        object["status"]["placement"]["node"] = json!("n1");
    });
    let held = ClaimBuilder::named("held").holds("n1", "gpu-3");
    for mut object in Cluster::of_gpus(8).claim(held).objects() {
        let devices = object.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
        for device in devices.into_iter().flatten().filter(|_| version == "v1beta1") {
            let name = device["name"].take();
            *device = json!({"name": name, "basic": device});
        }
        world.server.put(object);
    }
    world
}

#[tokio::test]
async fn every_version_of_the_devices_gives_the_same_answer() {
    let read = async |version| {
        let seen = older(version).observe(Need::Inventory).await;
        let inventory = seen.inventory.present().cloned().unwrap();
        let mut device_class = inventory.device_class;
        if let Seen::Present(class) = &mut device_class {
            class.metadata = ObjectMeta::default();
        }
        (device_class, inventory.slices, inventory.claims)
    };
    let newest = read("v1").await;
    assert_eq!(newest.1.present().unwrap()[0].devices.len(), 8);
    assert!(newest.1.present().unwrap()[0].devices[0].attribute("uuid").is_some());
    assert_eq!(newest.2.present().unwrap().len(), 1);
    for version in ["v1beta2", "v1beta1"] {
        assert_eq!(read(version).await, newest, "{version}");
    }
}

#[tokio::test]
async fn only_a_version_that_is_not_served_leads_to_an_older_one() {
    let world = older("v1beta1");
    world.server.fail(Fault::refuse("list", "resourceslices", 403).times(1));
    let seen = world.observe(Need::Inventory).await;
    let slices = &seen.inventory.present().unwrap().slices;
    assert!(
        matches!(slices, Seen::Unknown(why) if why.starts_with("list ResourceSlices: 403")),
        "{slices:?}"
    );
}

#[tokio::test]
async fn claims_are_created_found_and_removed_at_the_served_version() {
    for version in ["v1", "v1beta2", "v1beta1"] {
        let world = older(version);
        let object = world.object();
        let run = Run::new(&object, &world.settings);
        let template = build::claim_template(&run);
        let effect = Effect::CreateClaimTemplate(Box::new(template.clone()));
        world.cluster.act(&run, &[effect]).await.unwrap();
        let stored = world
            .server
            .get("resourceclaimtemplates", NAMESPACE, &template.name_any())
            .unwrap();
        assert_eq!(stored["apiVersion"], format!("resource.k8s.io/{version}"));
        let request = &stored["spec"]["spec"]["devices"]["requests"][0];
        let asks = if version == "v1beta1" {
            request
        } else {
            &request["exactly"]
        };
        assert_eq!(asks["deviceClassName"], "gpu.nvidia.com", "{version}");

        let api_version = format!("resource.k8s.io/{version}");
        world.put_child(&api_version, "ResourceClaim", "a-worker-s", &json!({}));
        let seen = world.observe(Need::Claims).await;
        assert_eq!(seen.claims.present().map(Vec::len), Some(1), "{version}");

        let seen = world.observe(Need::Children).await;
        let children = seen.children.present().unwrap();
        let found = children.iter().find(|child| child.id.kind == ChildKind::ClaimTemplate);
        let delete = Effect::Delete(found.unwrap().id.clone());
        world.cluster.act(&run, &[delete]).await.unwrap();
        assert!(world.server.objects("resourceclaimtemplates").is_empty(), "{version}");
    }
}

#[tokio::test]
async fn a_cluster_without_devices_has_no_claims_and_no_templates() {
    let world = World::new();
    for plural in [
        "deviceclasses",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourceslices",
    ] {
        world.server.withdraw(plural);
    }
    let seen = world.observe(Need::Inventory).await;
    let inventory = seen.inventory.present().unwrap();
    assert!(inventory.device_class.is_absent() && inventory.slices.is_absent() && inventory.claims.is_absent());
    assert_eq!(world.observe(Need::Claims).await.claims, Seen::Present(Vec::new()));
    assert_eq!(world.observe(Need::Children).await.children, Seen::Present(Vec::new()));
}
