//! Obstacles that keep a deployment from being measured, each with its signs, its reason, its remedy and the response of
//! the run.

use perfval_api::{Finding, Reason, Severity};

/// Longest evidence (bytes): it must fit into a condition together with its remedy.
pub(super) const EVIDENCE: usize = 400;

/// Declares the obstacles with their documentation, so that the enum, its words and the page are one list.
macro_rules! obstacles {
    ($($(#[doc = $why:literal])+ $name:ident {
        reason: $reason:ident, response: $response:ident, patience: $patience:literal,
        seen: $seen:literal, remedy: $remedy:literal $(,)?
    })+) => {
        /// Obstacles that keep a deployment from being measured, finer than the words of the status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Obstacle { $($(#[doc = $why])+ $name,)+ }

        impl Obstacle {
            /// Every obstacle, in the order in which a run meets them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Name in the operator's own state.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// The reason of a run that ends here.
            pub fn reason(self) -> Reason {
                match self { $(Self::$name => Reason::$reason,)+ }
            }

            /// Response of the run.
            pub fn response(self) -> Response {
                match self { $(Self::$name => Response::$response,)+ }
            }

            /// Time in which it may pass on its own; the status shows it from the beginning.
            pub fn patience(self) -> Duration {
                match self { $(Self::$name => Duration::from_secs($patience),)+ }
            }

            /// Signs in the cluster.
            pub fn seen(self) -> &'static str {
                match self { $(Self::$name => $seen,)+ }
            }

            /// Explanation of the obstacle.
            pub fn why(self) -> &'static str {
                match self { $(Self::$name => concat!($($why,)+).trim_ascii(),)+ }
            }

            /// Remedy.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)+ }
            }
        }
    };
}

mod table;

pub use table::{Obstacle, Response};

impl Obstacle {
    /// Word in `status.diagnosis`. Obstacles with one word have remedies of their own.
    pub fn as_str(self) -> &'static str {
        self.reason().as_str()
    }

    /// Obstacle of a finding: its word and its remedy.
    pub fn from_finding(finding: &Finding) -> Option<Self> {
        let is_meant = |known: &Self| known.as_str() == finding.cause && known.remedy() == finding.remedy;
        Self::ALL.iter().copied().find(is_meant)
    }

    /// The obstacle behind a reason with which a run ends.
    pub fn behind(reason: Reason) -> Option<Self> {
        match reason {
            // The scheduler's words have several explanations, and a cache that is not full in time is no obstacle.
            Reason::Unschedulable | Reason::ModelCacheFailed => None,
            other => Self::ALL.iter().copied().find(|obstacle| obstacle.reason() == other),
        }
    }

    /// Consequence for the run, and its time.
    pub fn effect(self) -> String {
        let what = self.response().explanation();
        match (self.response(), self.patience().as_secs()) {
            (Response::Wait, _) => what.to_owned(),
            (_, 0) => format!("{what} at once"),
            (_, seconds) => format!("after {seconds} s {what}"),
        }
    }

    /// The finding that status shows.
    pub fn finding(self, evidence: &str) -> Finding {
        Finding {
            cause: self.as_str().into(),
            severity: match self.response() {
                Response::GiveUp => Severity::Error,
                Response::SizeAgain | Response::SizeOnceMore | Response::Wait => Severity::Warning,
            },
            evidence: perfval_api::text::cut(evidence, EVIDENCE),
            remedy: self.remedy().into(),
        }
    }
}
