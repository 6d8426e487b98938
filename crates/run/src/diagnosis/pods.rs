//! Why pods do not start: signs in their status, their events and their logs, and which of them will not pass.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Pod;
use perfval_api::Why;

use super::containers::{self, containers};
use super::obstacle::{Obstacle, Response};
use super::{claims, scheduling};
use crate::observed::{PodEvent, PodLog};
use crate::time;

/// What keeps a run from measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What keeps it.
    pub obstacle: Obstacle,
    /// Which pod, what was seen.
    pub evidence: String,
}

impl Trouble {
    /// The reason, and what was seen with what to do.
    pub fn why(&self) -> Why {
        let (obstacle, evidence) = (self.obstacle, self.evidence.trim_end_matches('.'));
        Why::new(obstacle.reason(), format!("{evidence}; {}", obstacle.remedy()))
    }
}

/// Something that is seen of a trouble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// What it is a sign of.
    pub trouble: Trouble,
    /// Whether it has lasted so long that it will not pass by itself.
    pub is_sure: bool,
}

impl Sign {
    /// A sign that has lasted for `lasted`.
    pub(super) fn new(obstacle: Obstacle, evidence: impl Into<String>, lasted: Duration) -> Self {
        let evidence = evidence.into();
        Self {
            trouble: Trouble { obstacle, evidence },
            is_sure: lasted >= obstacle.patience(),
        }
    }

    /// A sign for which the same is true of any length of time.
    pub(super) fn settled(obstacle: Obstacle, evidence: impl Into<String>, is_sure: bool) -> Self {
        Self {
            is_sure,
            ..Self::new(obstacle, evidence, Duration::ZERO)
        }
    }
}

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

/// The most telling of some signs.
pub(crate) fn most_telling(signs: impl IntoIterator<Item = Sign>) -> Option<Sign> {
    // A crash that its log explains goes before one without an explanation.
    signs.into_iter().min_by_key(|sign| {
        let obstacle = sign.trouble.obstacle;
        let is_sized_again = matches!(obstacle.response(), Response::SizeAgain | Response::SizeOnceMore);
        (!sign.is_sure, is_sized_again, obstacle == Obstacle::CrashLoop)
    })
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
