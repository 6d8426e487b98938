//! `resource.k8s.io` at the version that clusters serve from Kubernetes 1.34 on, and clusters without it.

use kube::core::ResourceExt as _;
use perfval_run::observed::{ChildKind, Need};
use perfval_run::{Effect, Run, build};
use perfval_sizing::Seen;
use perfval_testkit::api_server::Kind;
use perfval_testkit::inventory::{ClaimBuilder, Cluster};
use serde_json::json;

use crate::world::{NAMESPACE, World};

/// A cluster that serves `resource.k8s.io` at one version alone, with one node of eight GPUs; a claim holds one of
/// them.
fn serving(version: Option<&str>) -> World {
    let world = World::new();
    let kinds = [
        ("deviceclasses", "DeviceClass", false),
        ("resourceclaims", "ResourceClaim", true),
        ("resourceclaimtemplates", "ResourceClaimTemplate", true),
        ("resourceslices", "ResourceSlice", false),
    ];
    for (plural, kind, namespaced) in kinds {
        world.server.withdraw(plural);
        if let Some(version) = version {
            world
                .server
                .serve(Kind::new("resource.k8s.io", version, plural, kind, namespaced));
        }
    }
    world.edit(|object| object["status"]["placement"]["node"] = json!("n1"));
    if version.is_some() {
        let held = ClaimBuilder::named("held").holds("n1", "gpu-3");
        for object in Cluster::of_gpus(8).claim(held).objects() {
            world.server.put(object);
        }
    }
    world
}

#[tokio::test]
async fn devices_and_claims_are_read() {
    let inventory = serving(Some("v1")).inventory().await;
    assert!(inventory.device_class.present().is_some());
    let slices = inventory.slices.present().unwrap();
    assert_eq!(slices[0].devices.len(), 8);
    assert!(slices[0].devices[0].attribute("uuid").is_some());
    assert_eq!(inventory.claims.present().unwrap().len(), 1);
}

#[tokio::test]
async fn claims_are_created_found_and_removed() {
    let world = serving(Some("v1"));
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let template = build::claim_template(&run);
    let effect = Effect::CreateClaimTemplate(Box::new(template.clone()));
    world.cluster.act(&run, &[effect]).await.unwrap();
    let stored = world
        .server
        .get("resourceclaimtemplates", NAMESPACE, &template.name_any())
        .unwrap();
    assert_eq!(stored["apiVersion"], "resource.k8s.io/v1");
    let request = &stored["spec"]["spec"]["devices"]["requests"][0];
    assert_eq!(request["exactly"]["deviceClassName"], "gpu.nvidia.com");

    world.put_child("resource.k8s.io/v1", "ResourceClaim", "a-worker-s", &json!({}));
    let seen = world.observe(Need::Claims).await;
    assert_eq!(seen.claims.present().map(Vec::len), Some(1));

    let seen = world.observe(Need::Children).await;
    let children = seen.children.present().unwrap();
    let found = children.iter().find(|child| child.id.kind == ChildKind::ClaimTemplate);
    let delete = Effect::Delete(found.unwrap().id.clone());
    world.cluster.act(&run, &[delete]).await.unwrap();
    assert!(world.server.objects("resourceclaimtemplates").is_empty());
}

#[tokio::test]
async fn a_cluster_without_v1_has_no_claims_and_no_templates() {
    for version in [None, Some("v1beta2"), Some("v1beta1")] {
        let world = serving(version);
        let inventory = world.inventory().await;
        assert!(
            inventory.device_class.is_absent() && inventory.slices.is_absent() && inventory.claims.is_absent(),
            "{version:?}: {inventory:?}"
        );
        assert_eq!(world.observe(Need::Claims).await.claims, Seen::Present(Vec::new()));
        assert_eq!(world.observe(Need::Children).await.children, Seen::Present(Vec::new()));
    }
}
