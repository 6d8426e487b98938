//! Reads of each need when all is well, and when an object is missing.

mod copies;
mod dry_run;
mod exporter;
mod trials;
mod workload;

use std::time::Duration;

use perfval_run::names;
use perfval_run::observed::{ChildKind, Need};
use perfval_run::queue::Contender;
use perfval_sizing::Seen;
use perfval_testkit::api_server::{Fault, KUBERNETES, Kind};
use serde_json::json;

use crate::baseline::baseline;
use crate::world::{NAMESPACE, World, validation};

/// Lets the discovery of Dynamo expire.
async fn later() {
    tokio::time::advance(Duration::from_secs(6)).await;
}

#[tokio::test(start_paused = true)]
async fn looks_that_follow_each_other_ask_once_whether_dynamo_is_installed() {
    let world = World::new();
    let asked = || world.count_calls("customresourcedefinitions");
    for _ in 0..3 {
        world.observe(Need::Dynamo).await;
    }
    assert_eq!(asked(), 1);
    later().await;
    world.observe(Need::Dynamo).await;
    assert_eq!(asked(), 2);
    // An absent or unknown part is read again at once.
    later().await;
    world.fail(Fault::refuse("get", "customresourcedefinitions", 403).times(1));
    assert!(world.observe(Need::Dynamo).await.dynamo.unknown().is_some());
    assert!(world.observe(Need::Dynamo).await.dynamo.present().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_newest_version_of_dynamo_that_we_speak_is_taken() {
    let world = World::new();
    let seen = world.observe(Need::Dynamo).await;
    let api = seen.dynamo.present().unwrap();
    assert_eq!(api.resource.api_version, "nvidia.com/v1beta1");
    assert_eq!(api.resource.plural, "dynamographdeployments");
    assert_eq!(api.operator_version.as_deref(), Some("1.4.2"));
    assert_eq!(seen.kubernetes.as_deref(), Some(KUBERNETES));

    world.server.install_dynamo(&["v1alpha1"], None);
    later().await;
    let seen = world.observe(Need::Dynamo).await;
    assert_eq!(
        seen.dynamo.present().unwrap().resource.api_version,
        "nvidia.com/v1alpha1"
    );
}

#[tokio::test]
async fn dynamo_is_absent_only_without_its_crd() {
    let world = World::new();
    // Another operator of the same group, and a CRD that discovery does not show yet.
    world.server.withdraw("dynamographdeployments");
    world.server.serve(Kind::new(
        "nvidia.com",
        "v1alpha1",
        "nvidiadrivers",
        "NVIDIADriver",
        false,
    ));
    let seen = world.observe(Need::Dynamo).await;
    assert!(
        seen.dynamo.unknown().unwrap().contains("not served"),
        "{:?}",
        seen.dynamo
    );

    world
        .server
        .delete("customresourcedefinitions", "", "dynamographdeployments.nvidia.com");
    assert!(world.observe(Need::Dynamo).await.dynamo.is_absent());
}

#[tokio::test]
async fn pages_with_too_many_bytes_are_read_in_smaller_ones() {
    let world = World::new();
    for number in 0..12 {
        let mut large = validation(&format!("large-{number:02}"), &format!("node-{number}"), "Deploying");
        large["metadata"]["annotations"] = json!({"note": "n".repeat(1_400_000)});
        world.server.put(large);
    }
    world.server.forget_calls();
    let seen = world.observe(Need::Holders).await;
    let holders = seen.holders.present().expect("holders").len();
    // With the run of the world itself.
    assert_eq!(holders, 13);
    let lists = world.count_calls("perfvalidations");
    assert!(lists > 2, "one page has 17 MB: {lists}");
}

#[tokio::test]
async fn a_few_large_objects_do_not_keep_the_other_pages_small() {
    let world = World::new();
    let note = json!({"note": "n".repeat(1_400_000)});
    for number in 0..413 {
        let mut object = validation(&format!("a-{number:03}"), &format!("node-{number}"), "Deploying");
        if number < 13 {
            object["metadata"]["annotations"] = note.clone();
        }
        world.server.put(object);
    }
    world.server.forget_calls();
    let seen = world.observe(Need::Holders).await;
    let holders = seen.holders.present().expect("holders").len();
    assert_eq!(holders, 414, "with the run of the world itself");
    let lists = world.count_calls("perfvalidations");
    assert!(lists < 30, "it was 141 with the page of the large ones: {lists}");
}

#[tokio::test]
async fn pods_that_a_tenant_labels_as_a_runs_take_no_memory_without_limit() {
    let world = World::new();
    for number in 0..40 {
        let large = json!({"spec": {"containers": [], "hostname": "h".repeat(1_400_000)}});
        world.put_child("v1", "Pod", &format!("labelled-{number}"), &large);
    }
    world.server.forget_calls();
    let seen = world.observe(Need::Workload).await;
    let lists = world.count_calls("pods");
    assert!(lists < 35, "it ends at the limit: {lists}");
    let why = seen.pods.unknown().expect("they have 56 MB");
    assert!(why.contains("a list has more than 33554432 bytes"), "{why}");
}

#[tokio::test]
async fn a_list_of_runs_that_expires_counts_no_spec_twice() {
    let world = World::new();
    // Their specs have 7 of the 8 MiB of a namespace, and the first page has most of them.
    for number in 0..250 {
        let mut waiting = validation(&format!("waiting-{number:03}"), "", "Sizing");
        waiting["status"]["placement"] = json!(null);
        waiting["spec"]["workload"]["dynamo"]["worker"] = json!({"args": ["a".repeat(28_000)]});
        world.server.put(waiting);
    }
    let expires = Fault::refuse("list", "perfvalidations", 410).asked_with("continue=");
    world.server.fail(expires.times(1));
    world.server.forget_calls();
    let look = world.cluster.look(&world.settings, |_| None).await;
    let runs = &look.line.present().unwrap().runs;
    assert_eq!(runs.iter().filter(|run| run.wants.is_some()).count(), 250);
    let lists = world.count_calls("perfvalidations");
    assert_eq!(lists, 4, "two pages, and both again");
}

#[tokio::test]
async fn only_unfinished_runs_of_others_hold_or_want_a_node() {
    let world = World::new();
    let mut cleaned = validation("cleaned", "node-4", "Completed");
    cleaned["status"]["conditions"] = json!([{
        "type": "CleanedUp", "status": "True", "reason": "RunOver", "message": "", "lastTransitionTime": "2026-11-21T00:00:00Z",
    }]);
    // Written by another version of the CRD.
    cleaned["status"]["verdict"] = "Splendid".into();
    let mut strange = validation("strange", "node-5", "Dreaming");
    strange["spec"]["gates"] = json!("many");
    strange["status"]["conditions"] = cleaned["status"]["conditions"].clone();
    let mut waiting = validation("waiting", "", "Sizing");
    waiting["status"]["placement"] = json!(null);
    let mut unreadable = waiting.clone();
    unreadable["metadata"]["name"] = json!("unreadable");
    unreadable["spec"]["gates"] = json!("many");
    for object in [
        waiting,
        unreadable,
        validation("running", "node-2", "Deploying"),
        validation("kept", "node-3", "Completed"),
        cleaned,
        strange,
    ] {
        world.server.put(object);
    }
    let look = world.cluster.look(&world.settings, |_| None).await;
    let runs = &look.line.present().unwrap().runs;
    let seen = world.observe(Need::Holders).await;
    let holders = seen.holders.present().unwrap();
    assert!(holders.iter().all(|run| run.holds.is_some()), "{holders:?}");
    let held: Vec<_> = holders.iter().filter_map(Contender::held).collect();
    let mut held: Vec<_> = held.iter().map(|run| (run.name.as_str(), run.node.as_str())).collect();
    held.sort_unstable();
    assert_eq!(
        held,
        [
            ("perf/demo", "node-1"),
            ("perf/kept", "node-3"),
            ("perf/running", "node-2"),
            ("perf/strange", "node-5")
        ]
    );
    let waits = |run: &&Contender| {
        run.wants
            .as_ref()
            .and_then(|wish| wish.spec.unpack())
            .is_some_and(|spec| spec.model.name == "lab/tiny-qwen3")
    };
    let waiting: Vec<_> = runs.iter().filter(waits).map(|run| run.name.as_str()).collect();
    assert_eq!(waiting, ["waiting"]);
}

#[tokio::test]
async fn children_are_distinguished_from_namesakes_by_their_owner() {
    let world = World::new();
    world.put_child("batch/v1", "Job", "pv-1-t1", &json!({}));
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", "pv-1", &json!({}));
    world.put_child("v1", "Service", "pv-1-workers", &json!({}));
    world.put_child("resource.k8s.io/v1", "ResourceClaimTemplate", "pv-1", &json!({}));
    world.put_child("v1", "PersistentVolumeClaim", "demo-weights", &json!({}));
    world.put_child("v1", "ConfigMap", "demo-1", &json!({}));
    world.put_child("batch/v1", "Job", "strangers", &json!({}));
    world.server.edit("jobs", NAMESPACE, "strangers", |job| {
        job["metadata"]["ownerReferences"] = json!([]);
    });
    let seen = world.observe(Need::Children).await;
    let mut children: Vec<_> = seen
        .children
        .present()
        .unwrap()
        .iter()
        .map(|child| {
            (
                child.id.kind,
                child.id.name.as_str(),
                child.ours,
                child.run == world.run_id(),
            )
        })
        .collect();
    children.sort_unstable();
    let expected = [
        (ChildKind::Job, "pv-1-t1", true, true),
        (ChildKind::Job, "strangers", false, true),
        (ChildKind::Deployment, "pv-1", true, true),
        (ChildKind::Service, "pv-1-workers", true, true),
        (ChildKind::ClaimTemplate, "pv-1", true, true),
    ];
    assert_eq!(children, expected);
}

#[tokio::test]
async fn network_policies_are_children_where_runs_have_them() {
    let mut world = World::new();
    world.put_child("networking.k8s.io/v1", "NetworkPolicy", "pv-1", &json!({}));
    for (rules, expected) in [(None, 0), (Some(Vec::new()), 1)] {
        world.settings.run_network_policy = rules;
        let seen = world.observe(Need::Children).await;
        assert_eq!(seen.children.present().unwrap().len(), expected);
    }
}

#[tokio::test]
async fn a_kind_that_cannot_be_listed_hides_no_other() {
    let mut world = World::new();
    world.settings.run_network_policy = Some(Vec::new());
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", "pv-1", &json!({}));
    world.server.fail(Fault::refuse("list", "networkpolicies", 403));
    let seen = world.observe(Need::Children).await;
    assert!(seen.children.unknown().is_some_and(|why| why.contains("403")));
    let listed: Vec<_> = seen.listed_children.iter().map(|child| child.id.kind).collect();
    assert_eq!(listed, [ChildKind::Deployment]);

    world.server.heal();
    let seen = world.observe(Need::Children).await;
    assert_eq!(seen.children.present().map(Vec::len), Some(1));
    assert_eq!(seen.listed_children, []);
}

#[tokio::test]
async fn a_deployment_is_found_when_its_recorded_version_is_not_served_any_more() {
    let world = World::new();
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", "pv-1", &json!({}));
    world.server.install_dynamo(&["v1alpha1"], None);
    let seen = world.observe(Need::Children).await;
    assert_eq!(seen.children.present().unwrap()[0].id.name, "pv-1");
}

#[tokio::test]
async fn a_deployment_is_read_at_another_version_that_we_speak() {
    let world = World::new();
    let name = names::deployment(&world.run_id());
    let state = json!({"status": {"state": "successful"}});
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", &name, &state);
    world.server.install_dynamo(&["v1alpha1"], None);
    let seen = world.observe(Need::Deployment).await;
    assert_eq!(seen.deployment.present().unwrap().data["status"]["state"], "successful");
}

#[tokio::test]
async fn a_deployment_of_a_newer_version_than_we_speak_is_a_child_and_unknown_otherwise() {
    let world = World::new();
    let name = names::deployment(&world.run_id());
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", &name, &json!({}));
    world.server.install_dynamo(&["v2"], None);
    let seen = world.observe(Need::Children).await;
    assert_eq!(seen.children.present().unwrap()[0].id.name, name);
    let seen = world.observe(Need::Deployment).await;
    assert!(
        seen.deployment.unknown().is_some_and(|why| why.contains("v2")),
        "{:?}",
        seen.deployment
    );
}

#[tokio::test]
async fn a_supported_version_that_is_broken_is_the_reason_and_not_a_newer_one() {
    let world = World::new();
    world.server.install_dynamo(&["v1alpha1", "v1beta1", "v2"], None);
    world.fail(Fault::refuse("get", "dynamographdeployments", 500).times(2));
    let seen = world.observe(Need::Deployment).await;
    let why = seen.deployment.unknown().expect("two broken versions");
    assert!(why.contains("500") && !why.contains("v2"), "{why}");
}

#[tokio::test]
async fn a_deployment_that_is_served_nowhere_is_not_gone() {
    let world = World::new();
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", "pv-1", &json!({}));
    world.server.withdraw("dynamographdeployments");
    let seen = world.observe(Need::Children).await;
    assert!(
        seen.children.unknown().is_some_and(|why| why.contains("not served")),
        "{:?}",
        seen.children
    );
    assert!(world.observe(Need::Deployment).await.deployment.unknown().is_some());

    world.fail(Fault::refuse("get", "customresourcedefinitions", 403));
    let seen = world.observe(Need::Children).await;
    assert!(
        seen.children.unknown().is_some_and(|why| why.contains("403")),
        "{:?}",
        seen.children
    );
}

#[tokio::test]
async fn a_broken_conversion_leads_to_the_version_that_needs_none() {
    let world = World::new();
    world.put_child("nvidia.com/v1beta1", "DynamoGraphDeployment", "pv-1", &json!({}));
    world.fail(Fault::refuse("list", "dynamographdeployments", 500).times(1));
    let seen = world.observe(Need::Children).await;
    assert_eq!(seen.children.present().unwrap()[0].id.name, "pv-1");
}

#[tokio::test]
async fn without_dynamo_there_are_no_deployments() {
    let world = World::new();
    world.server.withdraw("dynamographdeployments");
    world
        .server
        .delete("customresourcedefinitions", "", "dynamographdeployments.nvidia.com");
    let seen = world.observe(Need::Children).await;
    assert_eq!(seen.children, Seen::Present(Vec::new()));
    assert!(world.observe(Need::Deployment).await.deployment.is_absent());
}

#[tokio::test]
async fn the_deployment_of_the_run_is_read() {
    let world = World::new();
    assert!(world.observe(Need::Deployment).await.deployment.is_absent());
    let name = names::deployment(&world.run_id());
    world.put_child(
        "nvidia.com/v1beta1",
        "DynamoGraphDeployment",
        &name,
        &json!({"status": {"state": "failed"}}),
    );
    let seen = world.observe(Need::Deployment).await;
    assert_eq!(seen.deployment.present().unwrap().data["status"]["state"], "failed");
}

#[tokio::test]
async fn it_is_read_whether_a_run_may_begin_in_its_namespace() {
    let world = World::new();
    let asked = async || world.observe(Need::Permission).await.permission;
    let refuse = |namespace| {
        let refused = Fault::refuse("create", "dynamographdeployments", 403);
        world.server.fail(refused.in_namespace(namespace));
    };
    refuse("elsewhere");
    refuse(NAMESPACE);
    assert_eq!(asked().await, Seen::Present(false));
    world.server.heal();
    refuse("elsewhere");
    assert_eq!(asked().await, Seen::Present(true), "a new right counts at once");
    let reviews = || world.count_calls("selfsubjectaccessreviews");
    let before = reviews();
    assert_eq!(asked().await, Seen::Present(true));
    assert_eq!(reviews(), before, "one answer serves the runs of a moment");
}

#[tokio::test]
async fn the_cache_job_and_storage_classes_are_read() {
    let world = World::new();
    assert!(world.observe(Need::CacheJob).await.cache_job.is_absent());
    world.put_child("batch/v1", "Job", &names::cache_job(&world.run_id()), &json!({}));
    assert!(world.observe(Need::CacheJob).await.cache_job.present().is_some());

    world.server.put(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "x",
    }));
    let classes = world.observe(Need::StorageClasses).await.storage_classes;
    assert_eq!(classes.present().map(Vec::len), Some(1));
}

#[tokio::test]
async fn baselines_are_read() {
    let world = World::new();
    world.server.put(serde_json::to_value(baseline()).expect("JSON"));
    let seen = world.observe(Need::Baselines).await.baselines;
    assert_eq!(seen.present().map(Vec::len), Some(1));
    world.server.fail(Fault::refuse("list", "perfbaselines", 404));
    assert!(
        world.observe(Need::Baselines).await.baselines.is_absent(),
        "the kind is not installed"
    );
}

#[tokio::test]
async fn only_needed_parts_are_read() {
    let world = World::new();
    world.server.forget_calls();
    let seen = world.observe(Need::StorageClasses).await;
    assert_eq!(seen.children, Seen::NotAsked);
    assert_eq!(world.server.calls().len(), 1);
}
