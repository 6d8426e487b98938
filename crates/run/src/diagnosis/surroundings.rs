//! Obstacles outside of the pods that keep them from existing or from running: the namespace and the node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::core::ResourceExt as _;
use perfval_sizing::Seen;

use super::sign::{Proof, Sign};
use crate::observed::{NodeSeen, PodEvent};
use crate::obstacle::Obstacle;

/// Words of a webhook that did not answer: the next try may reach it.
const UNANSWERED: &str = "failed calling webhook";

/// Fault of a run's node; it is looked at only while pods of the run are missing or not ready.
pub fn node(name: &str, seen: &Seen<NodeSeen>) -> Option<Sign> {
    let sign = |evidence, proof| Some(Sign::new(Obstacle::NodeNotReady, name, evidence, proof));
    match seen {
        Seen::Absent => sign(format!("node {name} does not exist any more"), Proof::Seen),
        Seen::Present(node) if !node.ready => sign(format!("node {name} is not Ready: {}", node.message), Proof::Lasts),
        Seen::Present(_) | Seen::NotAsked | Seen::Unknown(_) => None,
    }
}

/// Adds the node to the signs of an image that is for another architecture. `pods`: those with the signs; `name`: the node
/// under test, which alone was looked at.
pub fn name_architecture(signs: &mut [Sign], pods: &[&Pod], name: &str, seen: &Seen<NodeSeen>) {
    let known = seen.present().map(|node| node.architecture.as_str());
    let known = known.filter(|architecture| !architecture.is_empty());
    for sign in signs {
        if sign.trouble.obstacle != Obstacle::OtherArchitecture {
            continue;
        }
        let pod = pods.iter().find(|pod| pod.name_any() == sign.subject);
        let node = pod.and_then(|pod| pod.spec.as_ref()?.node_name.as_deref());
        let place = match (node, known) {
            (Some(node), _) if node != name => format!("node {node} is not the node under test"),
            (Some(node), Some(architecture)) => format!("node {node} is {architecture}"),
            _ => continue,
        };
        let evidence = &mut sign.trouble.evidence;
        *evidence = format!("{place}: {evidence}");
    }
}

/// Reasons why pods that a controller has to create are missing, in the words of its newest refusal: one sign for
/// each controller.
pub fn refused(refusals: &[PodEvent]) -> Vec<Sign> {
    let mut newest: BTreeMap<&str, &PodEvent> = BTreeMap::new();
    for event in refusals {
        let known = newest.entry(&event.pod).or_insert(event);
        if known.last_seen < event.last_seen {
            *known = event;
        }
    }
    newest.into_values().map(refusal).collect()
}

/// A controller tries again and again, in growing pauses, and for some seconds after a start of the API server its rights are
/// not loaded yet. So a refusal is believed only if it comes again.
fn refusal(event: &PodEvent) -> Sign {
    // Prefix that client-go puts in front of an Event with many occurrences.
    let words = event
        .message
        .trim_start_matches("(combined from similar events):")
        .trim();
    let obstacle = if words.contains("exceeded quota") {
        Obstacle::QuotaExceeded
    } else {
        Obstacle::PodsRefused
    };
    let proof = if words.contains(UNANSWERED) {
        Proof::Missing
    } else {
        Proof::Repeats(event.last_seen)
    };
    let evidence = format!("{}: {}", event.pod, without_pod_name(words));
    Sign::new(obstacle, event.pod.as_str(), evidence, proof)
}

/// Each try is for a pod of another name; one text is one write of the status.
fn without_pod_name(words: &str) -> String {
    match (words.find("pods \""), words.find("\" is forbidden")) {
        (Some(from), Some(to)) if from < to => format!("{}a pod{}", &words[..from], &words[to + 1..]),
        _ => words.to_owned(),
    }
}
