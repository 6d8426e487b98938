//! Answer of the queue.

use perfval_api::Reason;
use perfval_run::queue::Turn;
use perfval_sizing::{Seen, Sizing};

pub(super) struct Answer {
    pub(super) place: usize,
    pub(super) turn: Seen<Turn>,
    /// Oddities of the cluster's devices; only for a run that gets some.
    pub(super) oddities: Vec<String>,
}

impl Answer {
    pub(super) fn unknown(why: &str) -> Self {
        Self {
            place: 0,
            turn: Seen::Unknown(why.to_owned()),
            oddities: Vec::new(),
        }
    }

    /// Returns true if a part of the cluster could not be read.
    pub(super) fn is_unread(&self) -> bool {
        match &self.turn {
            Seen::Present(Turn::Sized(Sizing::Wait { reason, .. })) => *reason == Reason::CallFailed,
            turn => turn.unknown().is_some(),
        }
    }
}
