//! What may happen in a world.

use std::sync::atomic::Ordering;
use std::time::Duration;

use perfval_cluster::PERMISSIONS;
use perfval_testkit::api_server::{Fault, Strike};
use perfval_testkit::inventory::Cluster as Hardware;
use perfval_testkit::world::{Answer, Faults, Trial};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::edits::{EDITS, edit};
use super::{NAMES, spec};
use crate::rig::{NAMESPACE, Rig};

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Happening {
    Time(u16),
    Apply(usize),
    Delete(usize),
    /// The number of an edit.
    Edit(usize, usize),
    Suspend(usize, bool),
    Keep(usize, bool),
    Rerun(usize, u8),
    DeleteChild(u8),
    LabelChild(u8),
    Replace(u8),
    Cordon(usize, bool),
    LoseNode(usize),
    ReturnNode(usize),
    /// Into another pool, or out of it.
    Relabel(usize, u8),
    Dynamo(u8),
    Trials(u8),
    Answers(u8),
    NeverReady(bool),
    Stuck(bool),
    /// Seconds until a GPU is allocated, and until a container is ready.
    Lag(u8, u8),
    NodesUnready(bool),
    NoRoles(bool),
    /// A quota on the GPUs of the namespace: so many of two, or none.
    Quota(u8),
    /// The API server's clock is set, this many seconds ahead or back.
    SetClock(i64),
    Crash(u8, bool),
    Strike(u8),
    /// From now on one kind of read fails, in one way.
    Unread(usize, u8),
    /// Everything is read again.
    Read,
    Deaf(u8),
    Pace(u16),
}

pub fn happening() -> impl Strategy<Value = Happening> {
    use Happening as H;
    let object = 0..NAMES.len();
    prop_oneof![
        10 => (1u16..60).prop_map(H::Time),
        3 => (60u16..900).prop_map(H::Time),
        2 => object.clone().prop_map(H::Apply),
        1 => object.clone().prop_map(H::Delete),
        4 => (object.clone(), 0..EDITS.len()).prop_map(|(o, n)| H::Edit(o, n)),
        1 => (object.clone(), any::<bool>()).prop_map(|(o, n)| H::Suspend(o, n)),
        1 => (object.clone(), any::<bool>()).prop_map(|(o, n)| H::Keep(o, n)),
        1 => (object.clone(), 0u8..3).prop_map(|(o, n)| H::Rerun(o, n)),
        1 => any::<u8>().prop_map(H::DeleteChild),
        1 => any::<u8>().prop_map(H::LabelChild),
        1 => any::<u8>().prop_map(H::Replace),
        1 => (1u8..120).prop_map(H::Deaf),
        2 => (0u16..1500).prop_map(H::Pace),
        1 => (object.clone(), any::<bool>()).prop_map(|(o, n)| H::Cordon(o, n)),
        1 => object.clone().prop_map(H::LoseNode),
        1 => object.clone().prop_map(H::ReturnNode),
        1 => (object, 0u8..3).prop_map(|(o, n)| H::Relabel(o, n)),
        1 => any::<u8>().prop_map(H::Dynamo),
        1 => any::<u8>().prop_map(H::Trials),
        1 => any::<u8>().prop_map(H::Answers),
        1 => any::<bool>().prop_map(H::NeverReady),
        1 => any::<bool>().prop_map(H::Stuck),
        1 => (0u8..30, 0u8..60).prop_map(|(n, m)| H::Lag(n, m)),
        1 => any::<bool>().prop_map(H::NodesUnready),
        1 => any::<bool>().prop_map(H::NoRoles),
        1 => (0u8..4).prop_map(H::Quota),
        1 => (-90i64..90).prop_map(H::SetClock),
        2 => (0u8..40, any::<bool>()).prop_map(|(n, b)| H::Crash(n, b)),
        2 => any::<u8>().prop_map(H::Strike),
        2 => (0..reads().len(), 0u8..4).prop_map(|(n, how)| H::Unread(n, how)),
        1 => Just(H::Read),
    ]
}

const QUOTA: &str = "gpus";
const NODES: [&str; 2] = ["n1", "n2"];
const CHILDREN: [&str; 6] = [
    "jobs",
    "dynamographdeployments",
    "services",
    "resourceclaimtemplates",
    "pods",
    "configmaps",
];

pub async fn happen(rig: &mut Rig, what: &Happening) {
    match what {
        Happening::Time(seconds) => rig.wait(Duration::from_secs(u64::from(*seconds))).await,
        Happening::Apply(object) => {
            if rig.get(NAMES[*object]).is_none() {
                rig.apply(NAMES[*object], &spec());
            }
        }
        Happening::Delete(object) => rig.server.delete("perfvalidations", NAMESPACE, NAMES[*object]),
        Happening::Edit(object, number) => {
            rig.edit(NAMES[*object], |object| {
                json_patch::merge(&mut object["spec"], &edit(*number));
            });
        }
        Happening::Suspend(object, yes) => {
            rig.edit(NAMES[*object], |object| object["spec"]["suspend"] = (*yes).into());
        }
        Happening::Keep(object, yes) => rig.annotate(NAMES[*object], "no-cleanup", yes.then_some("true")),
        Happening::Rerun(object, token) => rig.annotate(NAMES[*object], "rerun", Some(&token.to_string())),
        Happening::DeleteChild(n) => {
            if let Some((plural, name)) = child(rig, *n) {
                rig.server.delete(plural, NAMESPACE, &name);
            }
        }
        Happening::LabelChild(n) => {
            if let Some((plural, name)) = child(rig, *n) {
                rig.server.edit(plural, NAMESPACE, &name, |object| {
                    object["metadata"]["labels"]["team"] = "a".into();
                });
            }
        }
        Happening::Replace(n) => replace(rig, *n),
        Happening::Deaf(seconds) => {
            let now = tokio::time::Instant::now();
            rig.deaf = Some((now, now + Duration::from_secs(u64::from(*seconds))));
        }
        Happening::Pace(milliseconds) => rig.wire.slow_down(Duration::from_millis(u64::from(*milliseconds))),
        Happening::Cordon(node, yes) => edit_node(rig, *node, |node| {
            node["spec"]["unschedulable"] = (*yes).into();
        }),
        Happening::LoseNode(node) => {
            rig.server.delete("nodes", "", NODES[*node]);
            rig.server
                .delete("resourceslices", "", &format!("00000-gpu.nvidia.com-{}", NODES[*node]));
        }
        Happening::ReturnNode(node) => put_node(rig, NODES[*node]),
        Happening::Relabel(node, pool) => edit_node(rig, *node, |node| {
            node["metadata"]["labels"]["pool"] = ["a", "b", "none"][usize::from(*pool)].into();
        }),
        Happening::Dynamo(n) => match n % 3 {
            0 => rig.remove_dynamo(),
            1 => rig.server.install_dynamo(&["v1alpha1"], Some("1.1.0")),
            _ => rig.server.install_dynamo(&["v1alpha1", "v1beta1"], Some("1.4.2")),
        },
        Happening::Trials(n) => {
            let all = [
                Trial::Good,
                Trial::Slow,
                Trial::Starved,
                Trial::Crash,
                Trial::Hang,
                Trial::Silent,
                Trial::Absurd,
                Trial::Endless,
            ];
            let at = |n: u8| all[usize::from(n) % all.len()];
            rig.world.faults.trials = vec![at(*n), at(n / 8), at(n / 64)];
        }
        Happening::Answers(n) => {
            rig.world.faults.answer = [Answer::Completion, Answer::NotFound, Answer::Empty][usize::from(n % 3)];
        }
        Happening::NeverReady(yes) => rig.world.faults.never_ready = *yes,
        Happening::Stuck(yes) => rig.world.faults.stuck = *yes,
        Happening::Lag(allocation, start) => {
            rig.world.faults.allocates_after = i64::from(*allocation);
            rig.world.faults.starts_after = i64::from(*start);
        }
        Happening::NodesUnready(yes) => rig.world.faults.nodes_unready = *yes,
        Happening::NoRoles(yes) => rig.world.faults.no_roles = *yes,
        Happening::Quota(gpus) if *gpus > 2 => rig.server.delete("resourcequotas", NAMESPACE, QUOTA),
        Happening::Quota(gpus) => {
            let limit = |gpus: u8| json!({"requests.nvidia.com/gpu": gpus.to_string(), "gpu.nvidia.com.deviceclass.resource.k8s.io/devices": gpus.to_string()});
            rig.server.put(json!({
                "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": QUOTA, "namespace": NAMESPACE},
                "spec": {"hard": limit(*gpus)}, "status": {"hard": limit(*gpus), "used": limit(0)},
            }));
        }
        Happening::SetClock(seconds) => {
            rig.server_ahead.fetch_add(*seconds, Ordering::Relaxed);
        }
        Happening::Crash(calls, after) => {
            let strike = if *after { Strike::StopAfter } else { Strike::StopBefore };
            rig.wire.strike(rig.wire.count() + usize::from(*calls), strike);
        }
        Happening::Strike(n) => rig.wire.strike_next(match n % 6 {
            0 => Strike::Refuse(409),
            1 => Strike::Refuse(500),
            2 => Strike::Refuse(503),
            3 => Strike::LoseCall,
            4 => Strike::LoseAnswer,
            _ => Strike::Slow(2),
        }),
        Happening::Unread(number, how) => {
            let (verb, resource) = reads()[*number];
            rig.server.fail(match how {
                0 => Fault::refuse(verb, resource, 403),
                1 => Fault::refuse(verb, resource, 500),
                2 => Fault::refuse(verb, resource, 503),
                _ => Fault::hang(verb, resource),
            });
        }
        Happening::Read => rig.server.heal(),
    }
}

/// Every kind of read that the operator has a right to.
pub fn reads() -> Vec<(&'static str, &'static str)> {
    let verbs = |verb: &&&str| matches!(**verb, "get" | "list");
    PERMISSIONS
        .iter()
        .flat_map(|right| right.verbs.iter().filter(verbs).map(|verb| (*verb, right.resource)))
        .collect()
}

fn edit_node(rig: &Rig, node: usize, change: impl FnOnce(&mut Value)) {
    if rig.server.get("nodes", "", NODES[node]).is_some() {
        rig.server.edit("nodes", "", NODES[node], change);
    }
}

fn put_node(rig: &Rig, name: &str) {
    for object in Hardware::of_nodes_with(&[name], 2).objects() {
        rig.server.put(object);
    }
}

/// Somebody puts an object of their own in the place of ours, with all its labels.
fn replace(rig: &mut Rig, n: u8) {
    let plural = ["services", "resourceclaimtemplates", "configmaps"][usize::from(n % 3)];
    let Some(object) = rig.server.objects(plural).into_iter().next() else {
        return;
    };
    rig.server.usurp(plural, NAMESPACE, &object);
}

fn child(rig: &Rig, n: u8) -> Option<(&'static str, String)> {
    let plural = CHILDREN[usize::from(n) % CHILDREN.len()];
    let ours = |object: &Value| object["metadata"]["labels"]["perfvalidation.dev/run"].is_string();
    let found = rig.server.objects(plural).into_iter().find(ours)?;
    Some((plural, found["metadata"]["name"].as_str()?.to_owned()))
}

/// Everything works again, and nobody holds a run back or keeps it.
pub fn heal(rig: &mut Rig) {
    rig.world.faults = Faults::default();
    rig.wire.slow_down(Duration::ZERO);
    rig.server.heal();
    rig.server.install_dynamo(&["v1alpha1", "v1beta1"], Some("1.4.2"));
    rig.server.delete("resourcequotas", NAMESPACE, QUOTA);
    for node in NODES {
        put_node(rig, node);
    }
    for name in NAMES {
        rig.annotate(name, "no-cleanup", None);
    }
}
