//! Signs of the reason why pods are not ready: in themselves, in their namespace, on their node.

use k8s_openapi::api::core::v1::Pod;
use perfval_sizing::Seen;

use crate::diagnosis::pods::{self, Judged, most_telling};
use crate::diagnosis::{race, rejection, surroundings};
use crate::pass::Pass;
use crate::patience;
use crate::readiness::Pods;

/// The sign that explains most in a deployment that is not ready.
pub(super) fn worst_in_deployment(pass: &mut Pass<'_>, pods: &Pods<'_>) -> Option<Judged> {
    let rejected = rejection::newest(pods, pass.run.workers());
    // As long as a worker ends, the scheduler may have no room for its successor.
    let is_next = |pod: &&Pod| !pods.leaving.is_empty() && race::is_unschedulable(pod);
    worst(pass, pods.all().filter(|pod| !is_next(pod)).chain(rejected))
}

/// The sign that explains most among these pods and their surroundings.
pub(super) fn worst<'a>(pass: &mut Pass<'_>, pods: impl IntoIterator<Item = &'a Pod>) -> Option<Judged> {
    let pods: Vec<&Pod> = pods.into_iter().collect();
    let seen = pass.seen;
    let events = seen.pod_events.present().map_or(&[][..], Vec::as_slice);
    let refusals = seen.refusals.present().map_or(&[][..], Vec::as_slice);
    let node = pass.run.placement().map_or("", |plan| plan.node.as_str());
    let gpus = &pass.run.spec().placement.resource_name;
    // A node that is gone explains every sign of its pods.
    let mut found: Vec<_> = surroundings::node(node, &seen.node).into_iter().collect();
    found.extend(pods::signs(pods.iter().copied(), gpus, events, &seen.pod_logs));
    found.extend(surroundings::refused(refusals));
    surroundings::name_architecture(&mut found, &pods, node, &seen.node);
    let is_unread = matches!(seen.node, Seen::Unknown(_))
        || [&seen.pod_events, &seen.refusals]
            .iter()
            .any(|read| matches!(read, Seen::Unknown(_)));
    most_telling(patience::judge(pass, found, !is_unread))
}
