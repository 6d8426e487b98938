//! What keeps pods from existing or from running although nothing is wrong with them: the namespace and the node.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_sizing::Seen;

use super::obstacle::Obstacle;
use super::sign::Sign;
use crate::observed::{NodeSeen, PodEvent};
use crate::time;

/// Words of a webhook that did not answer: the next try may reach it.
const UNANSWERED: &str = "failed calling webhook";

/// What is wrong with the node of a run; it is looked at only while pods of the run are missing or not ready.
pub fn node(name: &str, seen: &Seen<NodeSeen>, now: DateTime<Utc>) -> Option<Sign> {
    match seen {
        Seen::Absent => Some(Sign::settled(
            Obstacle::NodeNotReady,
            format!("node {name} does not exist any more"),
            true,
        )),
        Seen::Present(node) if !node.ready => {
            let lasted = node.since.map_or(Duration::ZERO, |since| time::until(now, since));
            let evidence = format!("node {name} is not Ready: {}", node.message);
            Some(Sign::new(Obstacle::NodeNotReady, evidence, lasted))
        }
        Seen::Present(_) | Seen::NotAsked | Seen::Unknown(_) => None,
    }
}

/// Why pods that a controller has to create are missing, in the words of the newest refusal. `lasted`: how long the run
/// has been in its phase.
pub fn refused(refusals: &[PodEvent], lasted: Duration) -> Option<Sign> {
    let last = refusals.iter().max_by_key(|event| event.last_seen)?;
    // What the API server puts in front of an Event of which there were many.
    let words = last
        .message
        .trim_start_matches("(combined from similar events):")
        .trim();
    let obstacle = if words.contains("exceeded quota") {
        Obstacle::QuotaExceeded
    } else {
        Obstacle::PodsRefused
    };
    let sign = Sign::new(obstacle, format!("{}: {}", last.pod, without_pod_name(words)), lasted);
    Some(Sign {
        is_sure: sign.is_sure && !words.contains(UNANSWERED),
        ..sign
    })
}

/// Each try is for a pod of another name; one text is one write of the status.
fn without_pod_name(words: &str) -> String {
    match (words.find("pods \""), words.find("\" is forbidden")) {
        (Some(from), Some(to)) if from < to => format!("{}a pod{}", &words[..from], &words[to + 1..]),
        _ => words.to_owned(),
    }
}
