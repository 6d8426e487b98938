//! Evidence of a trouble, and the proof that makes it certain.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::Why;

use crate::obstacle::{Obstacle, Response};

/// Trouble that keeps a run from measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Obstacle that causes it.
    pub obstacle: Obstacle,
    /// The pod, and the observation.
    pub evidence: String,
}

impl Trouble {
    /// The reason, and the observation with its remedy.
    pub fn why(&self) -> Why {
        let (obstacle, evidence) = (self.obstacle, self.evidence.trim_end_matches('.'));
        Why::new(obstacle.reason(), format!("{evidence}; {}", obstacle.remedy()))
    }
}

/// Proof that a trouble will not pass on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Nothing yet.
    Missing,
    /// Visible in this look.
    Seen,
    /// Seen by every look during the [patience](Obstacle::patience) with its obstacle.
    Lasts,
    /// The same, but events are seen, which stay when the trouble is over: newer ones have to come for as long. With the time
    /// of the newest, by the clock of who wrote it.
    Repeats(Option<DateTime<Utc>>),
}

/// Something that is seen of a trouble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Trouble that it is a sign of.
    pub trouble: Trouble,
    /// Name of the pod, node or controller that shows it.
    pub subject: String,
    /// Proof that makes it certain.
    pub proof: Proof,
    /// Time for which it belongs to a normal start: until then the status does not show it.
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
    /// Trouble that it is a sign of.
    pub trouble: Trouble,
    /// True if it will not pass on its own.
    pub is_sure: bool,
}

/// The sign that explains most.
pub fn most_telling(signs: impl IntoIterator<Item = Judged>) -> Option<Judged> {
    // A crash that its log explains goes before one without an explanation.
    signs.into_iter().min_by_key(|sign| {
        let obstacle = sign.trouble.obstacle;
        let is_sized_again = matches!(obstacle.response(), Response::SizeAgain | Response::SizeOnceMore);
        (!sign.is_sure, is_sized_again, obstacle == Obstacle::CrashLoop)
    })
}
