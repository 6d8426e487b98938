//! Signs of the reason why pods are not ready: in themselves, in their namespace, on their node.

use k8s_openapi::api::core::v1::Pod;
use perfval_sizing::Seen;

use crate::diagnosis::pods::{self, Judged, most_telling};
use crate::diagnosis::surroundings;
use crate::pass::Pass;
use crate::patience;

/// The sign that explains most among these pods and their surroundings.
pub(super) fn worst<'a>(pass: &mut Pass<'_>, pods: impl IntoIterator<Item = &'a Pod>) -> Option<Judged> {
    let seen = pass.seen;
    let events = seen.pod_events.present().map_or(&[][..], Vec::as_slice);
    let refusals = seen.refusals.present().map_or(&[][..], Vec::as_slice);
    let node = pass.run.placement().map_or("", |plan| plan.node.as_str());
    let gpus = &pass.run.spec().placement.resource_name;
    // A node that is gone explains every sign of its pods.
    let mut found: Vec<_> = surroundings::node(node, &seen.node).into_iter().collect();
    found.extend(pods::signs(pods, gpus, events, &seen.pod_logs));
    found.extend(surroundings::refused(refusals));
    surroundings::name_architecture(&mut found, node, &seen.node);
    let is_unread = matches!(seen.node, Seen::Unknown(_))
        || [&seen.pod_events, &seen.refusals]
            .iter()
            .any(|read| matches!(read, Seen::Unknown(_)));
    most_telling(patience::judge(pass, found, !is_unread))
}
