//! Every failed read is unknown; only "not found" is absent.

use std::time::Duration;

use perfval_run::Observed;
use perfval_run::observed::Need;
use perfval_sizing::Seen;
use perfval_testkit::api_server::{Fault, KUBERNETES, Strike};
use serde_json::json;

use crate::world::{NEEDS, World};

/// A read: its need, its call, and the place of its answer.
struct Read {
    need: Need,
    verb: &'static str,
    resource: &'static str,
    answer: fn(&Observed) -> String,
}

/// The answer in one word, and the reason.
fn word<T>(seen: &Seen<T>) -> String {
    match seen {
        Seen::Present(_) => "present".into(),
        Seen::Absent => "absent".into(),
        Seen::NotAsked => "not asked".into(),
        Seen::Unknown(why) => format!("unknown: {why}"),
    }
}

macro_rules! read {
    ($need:ident, $verb:literal, $resource:literal, $($part:tt)+) => {
        Read {
            need: Need::$need,
            verb: $verb,
            resource: $resource,
            answer: |seen| word(&seen.$($part)+),
        }
    };
}

macro_rules! inventory {
    ($verb:literal, $resource:literal, $part:ident) => {
        read!(
            Inventory,
            $verb,
            $resource,
            inventory.present().expect("an inventory").$part
        )
    };
}

const READS: &[Read] = &[
    read!(Permission, "create", "selfsubjectaccessreviews", permission),
    read!(Dynamo, "get", "customresourcedefinitions", dynamo),
    read!(StorageClasses, "list", "storageclasses", storage_classes),
    read!(Holders, "list", "perfvalidations", holders),
    read!(
        Devices,
        "list",
        "resourceslices",
        devices.present().expect("the devices").slices
    ),
    read!(
        Devices,
        "list",
        "resourceclaims",
        devices.present().expect("the devices").claims
    ),
    read!(Devices, "get", "nodes", devices.present().expect("the devices").nodes),
    inventory!("get", "deviceclasses", device_class),
    inventory!("list", "resourceslices", slices),
    inventory!("list", "devicetaintrules", taint_rules),
    inventory!("list", "nodes", nodes),
    inventory!("list", "pods", pods),
    inventory!("get", "persistentvolumeclaims", cache_volume),
    inventory!("get", "persistentvolumes", cache_volume),
    inventory!("list", "resourceclaims", claims),
    inventory!("list", "resourcequotas", quotas),
    inventory!("list", "limitranges", limit_ranges),
    read!(Children, "list", "jobs", children),
    read!(Children, "list", "dynamographdeployments", children),
    read!(Children, "list", "services", children),
    read!(Children, "list", "resourceclaimtemplates", children),
    read!(Deployment, "get", "dynamographdeployments", deployment),
    read!(DryRun, "create", "dynamographdeployments", dry_run),
    read!(Workload, "list", "pods", pods),
    read!(Claims, "list", "resourceclaims", claims),
    read!(Workload, "list", "events", pod_events),
    read!(Trial, "get", "jobs", trial),
    read!(Trial, "list", "pods", trial),
    read!(Trial, "get", "pods/log", trial.present().expect("a trial").record),
    read!(GpuExporter, "list", "pods", gpu_exporter),
    read!(Results, "get", "configmaps", results),
    read!(Results, "list", "pods", packed_trials[&1]),
    read!(Results, "get", "pods/log", packed_trials[&1]),
    read!(SavedRun, "get", "configmaps", saved_run),
    read!(SavedResults, "list", "configmaps", saved_results),
    read!(CacheJob, "get", "jobs", cache_job),
    read!(Baselines, "list", "perfbaselines", baselines),
];

fn world() -> World {
    let world = World::new();
    world.put_result(1);
    world.put_cache();
    world.edit(|object| object["status"]["resultsRef"] = json!({"name": "demo-earlier", "sha256": "s"}));
    world
}

#[test]
fn every_need_has_a_read() {
    // A probe's answer is in memory.
    for need in NEEDS.iter().filter(|need| **need != Need::Probe) {
        assert!(READS.iter().any(|read| read.need == *need), "{need:?}");
    }
}

#[tokio::test]
async fn a_refused_read_is_unknown_with_its_reason() {
    for read in READS {
        for code in [401, 403, 429, 500, 503] {
            let world = world();
            world.server.fail(Fault::refuse(read.verb, read.resource, code));
            let answer = (read.answer)(&world.observe(read.need).await);
            let what = format!(
                "{:?} with {code} on {} {}: {answer}",
                read.need, read.verb, read.resource
            );
            assert!(
                answer.starts_with("unknown") && answer.contains(&code.to_string()),
                "{what}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_without_an_answer_is_unknown() {
    for read in READS {
        let world = world();
        world.server.fail(Fault::hang(read.verb, read.resource));
        let answer = (read.answer)(&world.observe(read.need).await);
        let what = format!(
            "{:?} with a hanging {} {}: {answer}",
            read.need, read.verb, read.resource
        );
        assert!(
            answer.starts_with("unknown") && answer.contains("no result within"),
            "{what}"
        );
        assert!(world.cluster.counts().timeouts > 0, "{what}");
    }
}

#[tokio::test]
async fn not_found_is_never_unknown() {
    // The dry run's subject is not there by nature: that its kind is not served is no answer.
    for read in READS.iter().filter(|read| read.need != Need::DryRun) {
        let world = world();
        world.server.fail(Fault::refuse(read.verb, read.resource, 404));
        let answer = (read.answer)(&world.observe(read.need).await);
        let what = format!("{:?} with 404 on {} {}: {answer}", read.need, read.verb, read.resource);
        assert!(!answer.starts_with("unknown"), "{what}");
    }
}

#[tokio::test]
async fn a_broken_discovery_does_not_mean_that_dynamo_is_missing() {
    for code in [403, 500] {
        let (world, wire) = World::wired();
        wire.strike_next(Strike::Refuse(code));
        let why = word(&world.cluster.served_dynamo().await);
        let call = format!("unknown: discover nvidia.com/v1beta1: {code}");
        assert!(why.starts_with(&call), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_version_of_the_api_server_stays_while_it_does_not_answer() {
    let (world, wire) = World::wired();
    wire.strike_next(Strike::Refuse(500));
    world.cluster.version().await.expect_err("no version is known yet");
    assert_eq!(world.cluster.version().await.expect("an answer"), KUBERNETES);
    tokio::time::advance(Duration::from_mins(11)).await;
    wire.strike_next(Strike::Refuse(500));
    assert_eq!(world.cluster.version().await.expect("the last one"), KUBERNETES);
    assert_eq!(wire.count(), 3, "it was asked again");
}
