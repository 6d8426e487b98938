//! What is seen of why pods are not ready: in themselves, in their namespace, on their node.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use crate::diagnosis::pods::{self, Sign, most_telling};
use crate::diagnosis::surroundings;
use crate::pass::Pass;
use crate::status;

/// The most telling sign of these pods and of what is around them.
pub(super) fn of<'a>(pass: &Pass<'_>, pods: impl IntoIterator<Item = &'a Pod>) -> Option<Sign> {
    let seen = pass.seen;
    let events = seen.pod_events.present().map_or(&[][..], Vec::as_slice);
    let own = pods::sign(pods, events, &seen.pod_logs, pass.now);
    let node = pass.run.placement().map_or("", |plan| plan.node.as_str());
    let on_node = surroundings::node(node, &seen.node, pass.now);
    let refusals = seen.refusals.present().map_or(&[][..], Vec::as_slice);
    let began = status::phase_started_at(&pass.status);
    let lasted = began.map_or(Duration::ZERO, |began| pass.attended_since(began));
    let refused = surroundings::refused(refusals, lasted);
    // A node that is gone explains whatever its pods say.
    most_telling([on_node, own, refused].into_iter().flatten())
}
