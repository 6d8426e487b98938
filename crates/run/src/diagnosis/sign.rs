//! What is seen of a trouble, and what makes it certain.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::Why;

use super::obstacle::{Obstacle, Response};

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

/// What makes it certain that a trouble will not pass by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Nothing yet.
    Missing,
    /// What is seen now.
    Seen,
    /// That the operator keeps seeing it, for the [patience](Obstacle::patience) with its obstacle.
    Lasts,
    /// The same, but events are seen, which stay when the trouble is over: newer ones have to come for as long. With the time
    /// of the newest, by the clock of who wrote it.
    Repeats(Option<DateTime<Utc>>),
}

/// Something that is seen of a trouble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// What it is a sign of.
    pub trouble: Trouble,
    /// Name of the pod, node or controller that shows it.
    pub subject: String,
    /// What makes it certain.
    pub proof: Proof,
    /// How long it belongs to a normal start: until then the status does not show it.
    pub normal_for: Duration,
}

impl Sign {
    pub(super) fn new(
        obstacle: Obstacle,
        subject: impl Into<String>,
        evidence: impl Into<String>,
        proof: Proof,
    ) -> Self {
        let evidence = evidence.into();
        Self {
            trouble: Trouble { obstacle, evidence },
            subject: subject.into(),
            proof,
            normal_for: Duration::ZERO,
        }
    }
}

/// A sign, judged by how long it has been seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What it is a sign of.
    pub trouble: Trouble,
    /// Whether it will not pass by itself.
    pub is_sure: bool,
}

/// The most telling of some signs.
pub fn most_telling(signs: impl IntoIterator<Item = Judged>) -> Option<Judged> {
    // A crash that its log explains goes before one without an explanation.
    signs.into_iter().min_by_key(|sign| {
        let obstacle = sign.trouble.obstacle;
        let is_sized_again = matches!(obstacle.response(), Response::SizeAgain | Response::SizeOnceMore);
        (!sign.is_sure, is_sized_again, obstacle == Obstacle::CrashLoop)
    })
}
