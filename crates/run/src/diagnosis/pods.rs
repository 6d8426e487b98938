//! Why pods do not start: signs in their status, their events and their logs, and which of them will not pass.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Pod;

pub use super::sign::{Sign, Trouble, most_telling};
use super::statuses::containers;
use super::{claims, containers, scheduling};
use crate::observed::{PodEvent, PodLog};
use crate::time;

/// The most telling sign, one that will not pass before one that may.
pub fn sign<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    events: &[PodEvent],
    logs: &[PodLog],
    now: DateTime<Utc>,
) -> Option<Sign> {
    let found = pods.into_iter().filter_map(|pod| of_pod(pod, events, logs, now));
    most_telling(found)
}

/// The first trouble that will not pass by itself, the most specific first.
pub fn trouble<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    events: &[PodEvent],
    logs: &[PodLog],
    now: DateTime<Utc>,
) -> Option<Trouble> {
    sign(pods, events, logs, now)
        .filter(|sign| sign.is_sure)
        .map(|sign| sign.trouble)
}

fn of_pod(pod: &Pod, events: &[PodEvent], logs: &[PodLog], now: DateTime<Utc>) -> Option<Sign> {
    let created = pod.metadata.creation_timestamp.as_ref();
    let age = created.map_or(Duration::ZERO, |created| {
        time::until(now, time::from_kubernetes(created))
    });
    claims::sign(pod, events, age)
        .or_else(|| most_telling(containers(pod).filter_map(|container| containers::sign(pod, container, logs, age))))
        .or_else(|| scheduling::sign(pod, now))
}
