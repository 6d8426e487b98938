//! Every failed read is unknown; only "not found" is absent.

use perfval_run::Observed;
use perfval_run::observed::Need;
use perfval_sizing::Seen;
use perfval_testkit::api_server::{Fault, Kind};

use crate::world::World;

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

const fn read(need: Need, verb: &'static str, resource: &'static str, answer: fn(&Observed) -> String) -> Read {
    Read {
        need,
        verb,
        resource,
        answer,
    }
}

macro_rules! inventory {
    ($verb:literal, $resource:literal, $part:ident) => {
        read(Need::Inventory, $verb, $resource, |seen| {
            word(&seen.inventory.present().expect("an inventory").$part)
        })
    };
}

const READS: &[Read] = &[
    read(Need::Permission, "create", "selfsubjectaccessreviews", |seen| {
        word(&seen.permission)
    }),
    read(Need::Dynamo, "get", "customresourcedefinitions", |seen| {
        word(&seen.dynamo)
    }),
    read(Need::StorageClasses, "list", "storageclasses", |seen| {
        word(&seen.storage_classes)
    }),
    read(Need::Holders, "list", "perfvalidations", |seen| word(&seen.holders)),
    inventory!("get", "deviceclasses", device_class),
    inventory!("list", "resourceslices", slices),
    inventory!("list", "devicetaintrules", taint_rules),
    inventory!("list", "nodes", nodes),
    inventory!("list", "pods", pods),
    inventory!("get", "persistentvolumeclaims", cache_volume),
    inventory!("get", "persistentvolumes", cache_volume),
    inventory!("list", "resourceclaims", claims),
    read(Need::Children, "list", "jobs", |seen| word(&seen.children)),
    read(Need::Children, "list", "dynamographdeployments", |seen| {
        word(&seen.children)
    }),
    read(Need::Children, "list", "services", |seen| word(&seen.children)),
    read(Need::Children, "list", "resourceclaimtemplates", |seen| {
        word(&seen.children)
    }),
    read(Need::Deployment, "get", "dynamographdeployments", |seen| {
        word(&seen.deployment)
    }),
    read(Need::DryRun, "create", "dynamographdeployments", |seen| {
        word(&seen.dry_run)
    }),
    read(Need::Workload, "list", "pods", |seen| word(&seen.pods)),
    read(Need::Claims, "list", "resourceclaims", |seen| word(&seen.claims)),
    read(Need::Workload, "list", "events", |seen| word(&seen.pod_events)),
    read(Need::Trial, "get", "jobs", |seen| word(&seen.trial)),
    read(Need::Trial, "list", "pods", |seen| word(&seen.trial)),
    read(Need::Trial, "get", "pods/log", |seen| {
        word(&seen.trial.present().expect("a trial").record)
    }),
    read(Need::Results, "get", "configmaps", |seen| word(&seen.results)),
    read(Need::Results, "list", "pods", |seen| word(&seen.packed_trials[&1])),
    read(Need::Results, "get", "pods/log", |seen| word(&seen.packed_trials[&1])),
    read(Need::CacheJob, "get", "jobs", |seen| word(&seen.cache_job)),
    read(Need::Baselines, "list", "perfbaselines", |seen| word(&seen.baselines)),
];

fn world() -> World {
    let world = World::new();
    world.put_result(1);
    world.put_cache();
    world
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
            answer.starts_with("unknown") && answer.contains("no answer within"),
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
    let world = World::new();
    world.server.withdraw("dynamographdeployments");
    world
        .server
        .serve(Kind::new("nvidia.com", "v1beta1", "others", "Other", true));
    assert!(matches!(world.observe(Need::Dynamo).await.dynamo, Seen::Unknown(_)));
}
