//! The table of rights and the calls really made are the same.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::core::Resource as _;
use perfval_api::{PerfValidationStatus, Word};
use perfval_cluster::{PERMISSIONS, Permission, Scope, cache_of};
use perfval_run::decision::ProbeRequest;
use perfval_run::names::dynamo::{FRONTEND_PORT, frontend_service};
use perfval_run::{Effect, Event, Run};
use perfval_sizing::Seen;
use perfval_testkit::api_server::Call;
use serde_json::json;

use crate::act::{children, creations, save_results};
use crate::node_performance::row;
use crate::world::{NAMESPACE, NEEDS, World, validation, woken};

/// A namespace that another operator looks after.
const OTHER: &str = "other";

/// Every call of every need and every effect, with and without a namesake in the way.
async fn every_call() -> BTreeSet<Call> {
    let mut world = World::new();
    world.settings.run_network_policy = Some(Vec::new());
    world.put_trial(Some("result"));
    world.put_child("v1", "Pod", "waiting", &json!({}));
    world.put_cache();
    world.server.forget_calls();
    for need in NEEDS {
        world.observe(*need).await;
    }
    look_for_a_run_of_another_namespace(&world).await;
    let object = world.object();
    let run = Run::new(&object, &world.settings);
    let mut effects = vec![Effect::EnsureFinalizer, save_results(&run)];
    effects.extend(creations(&run).into_iter().map(|(_, effect)| effect));
    effects.extend(children(&world).into_iter().map(|(_, child)| Effect::Delete(child)));
    let probe = ProbeRequest {
        namespace: NAMESPACE.into(),
        service: frontend_service(&run.id()),
        port: FRONTEND_PORT,
        model: "m".into(),
        timeout: Duration::from_secs(5),
    };
    let hello = json!({"choices": [{"message": {"content": "Hello"}}]}).to_string();
    world
        .server
        .set_backend(NAMESPACE, &probe.service, probe.port, move |_, _, _| {
            (200, hello.clone())
        });
    effects.push(Effect::Probe(probe));
    for _ in 0..2 {
        world.cluster.act(&run, &effects[1..]).await.expect("all goes well");
    }
    woken(&mut world.wakeups).await;
    let notice = Event {
        warning: false,
        reason: Word::Running,
        action: "BeginRun".into(),
        note: String::new(),
    };
    for _ in 0..2 {
        world.cluster.publish(&object.object_ref(&()), &notice).await;
    }
    record_a_node(&world).await;
    Box::pin(follow_a_policy(&world)).await;
    Box::pin(follow_a_baseline(&world)).await;
    let status = PerfValidationStatus::default();
    world.cluster.record(&run, &status).await.expect("all goes well");
    let newest = world.object();
    let run = Run::new(&newest, &world.settings);
    let finalizer = [Effect::EnsureFinalizer];
    world.cluster.act(&run, &finalizer).await.expect("all goes well");
    let newest = world.object();
    let run = Run::new(&newest, &world.settings);
    world
        .cluster
        .act(&run, &[Effect::DeleteSelf])
        .await
        .expect("all goes well");
    world.server.calls().into_iter().collect()
}

/// Writes of the measurement of a node that was made anew.
async fn record_a_node(world: &World) {
    let row = row("n1", "Passed");
    let Seen::Absent = world.cluster.node_identity("n1").await else {
        panic!("there is no node")
    };
    world.cluster.write_node_performance(&row).await.expect("all goes well");
    world
        .cluster
        .delete_node_performance("n1", "uid")
        .await
        .expect("all goes well");
}

/// Writes for a policy.
async fn follow_a_policy(world: &World) {
    let policy = crate::policy::policy();
    let child = crate::policy::child();
    // The second time it exists.
    for _ in 0..2 {
        world.cluster.create_validation(&child).await.expect("all goes well");
    }
    let status = perfval_api::fleet::PerfValidationPolicyStatus::default();
    world
        .cluster
        .write_policy_status(&policy, &status)
        .await
        .expect("all goes well");
}

/// Writes for a baseline.
async fn follow_a_baseline(world: &World) {
    let baseline = crate::baseline::baseline();
    world.cluster.create_baseline(&baseline).await.expect("all goes well");
    let status = perfval_api::fleet::PerfBaselineStatus::default();
    let written = world.cluster.write_baseline_status(&baseline, &status).await;
    written.expect("all goes well");
}

/// Reads of the planner while a run that another operator looks after waits for the node of its model cache.
async fn look_for_a_run_of_another_namespace(world: &World) {
    let mut other = validation("waiting", "", "Sizing");
    other["metadata"]["namespace"] = OTHER.into();
    other["status"]["placement"] = json!(null);
    other["spec"]["model"]["cache"] = json!({"persistentVolumeClaim": {"claimName": "weights"}});
    world.server.put(other);
    let mut look = world.cluster.look(&world.settings, |_| None).await;
    let runs = &look.line.present().expect("the queue").runs;
    let caches = runs.iter().filter_map(cache_of).collect();
    assert!(look.locate_caches(&world.cluster, caches).await);
}

/// Returns true if a right covers a call.
fn covers(permission: &Permission, call: &Call) -> bool {
    let named = permission.names.is_empty()
        || call
            .name
            .as_deref()
            .is_some_and(|name| permission.names.contains(&name));
    permission.group == call.group
        && permission.resource == call.resource
        && permission.verbs.contains(&call.verb)
        && named
        && ([Scope::Cluster, Scope::Fleet].contains(&permission.scope) || call.namespace.is_some())
}

#[tokio::test]
async fn every_call_has_its_right() {
    for call in Box::pin(every_call()).await {
        // Kubernetes gives this one to everybody.
        if call.resource == "selfsubjectaccessreviews" {
            continue;
        }
        assert!(
            PERMISSIONS.iter().any(|permission| covers(permission, &call)),
            "no right for {call:?}"
        );
    }
}

#[tokio::test]
async fn every_right_has_its_call() {
    let calls = Box::pin(every_call()).await;
    for permission in PERMISSIONS {
        for verb in permission.verbs {
            let one = Permission {
                verbs: std::slice::from_ref(verb),
                ..*permission
            };
            // A right in the whole cluster needs a call that a right in a namespace would not cover.
            let is_elsewhere = |call: &Call| call.namespace.as_deref().is_none_or(|namespace| namespace == OTHER);
            let needed = calls
                .iter()
                .any(|call| covers(&one, call) && (one.scope != Scope::Cluster || is_elsewhere(call)));
            assert!(
                needed,
                "nothing needs {verb} on {} ({})",
                permission.resource, permission.call
            );
        }
    }
}

#[test]
fn no_right_is_a_wildcard_or_a_secret() {
    for permission in PERMISSIONS {
        let words = permission.verbs.iter().chain([&permission.group, &permission.resource]);
        assert!(words.into_iter().all(|word| !word.contains('*')), "{permission:?}");
        assert!(!permission.resource.starts_with("secrets"), "{permission:?}");
    }
}
