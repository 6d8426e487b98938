//! What is seen of a trouble, and whether it will pass.

use std::time::Duration;

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

/// The most telling of some signs.
pub fn most_telling(signs: impl IntoIterator<Item = Sign>) -> Option<Sign> {
    // A crash that its log explains goes before one without an explanation.
    signs.into_iter().min_by_key(|sign| {
        let obstacle = sign.trouble.obstacle;
        let is_sized_again = matches!(obstacle.response(), Response::SizeAgain | Response::SizeOnceMore);
        (!sign.is_sure, is_sized_again, obstacle == Obstacle::CrashLoop)
    })
}
