//! Obstacles that keep a deployment from being measured: the stable names in status, each with its signs, its reason,
//! its remedy and the response of the run.

use perfval_api::{Finding, Reason, Severity};

/// Longest evidence (bytes): it must fit into a condition together with its remedy.
pub(super) const EVIDENCE: usize = 400;

/// A first completion that takes this long (s) is a cold start.
pub const COLD_SECONDS: u64 = 20;

/// Declares the obstacles with their documentation, so that the enum, its words and the page are one list.
macro_rules! obstacles {
    ($($(#[doc = $why:literal])+ $name:ident {
        reason: $reason:ident, response: $response:ident, patience: $patience:literal,
        seen: $seen:literal, remedy: $remedy:literal $(,)?
    })+) => {
        /// Obstacles that keep a deployment from being measured. Never reworded once released.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Obstacle { $($(#[doc = $why])+ $name,)+ }

        impl Obstacle {
            /// Every obstacle, in the order in which a run meets them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The word in `status.diagnosis`.
            pub fn as_str(self) -> &'static str {
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

mod response;
mod table;

pub use response::Response;
pub use table::Obstacle;

impl Obstacle {
    /// The obstacle that a status recorded.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|obstacle| obstacle.as_str() == word)
    }

    /// The obstacle behind a reason with which a run ends.
    pub fn behind(reason: Reason) -> Option<Self> {
        match reason {
            Reason::Saturated => Some(Self::InsufficientGPUs),
            // These have more than one, or are no obstacle.
            Reason::Unschedulable | Reason::ModelCacheFailed | Reason::CompletionReceived => None,
            Reason::DeploymentFailed => Some(Self::DeploymentFailed),
            other => Self::ALL.iter().copied().find(|obstacle| obstacle.reason() == other),
        }
    }

    /// Consequence for the run, and its time.
    pub fn effect(self) -> String {
        let what = self.response().explanation();
        match (self.response(), self.patience().as_secs()) {
            (Response::Wait | Response::Report, _) => what.to_owned(),
            (_, 0) => format!("at once {what}"),
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
                Response::Report => Severity::Info,
            },
            evidence: perfval_api::text::cut(evidence, EVIDENCE),
            remedy: self.remedy().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COLD_SECONDS, Obstacle};

    #[test]
    fn the_page_has_the_figures_of_the_code() {
        let seen = Obstacle::ColdStart.seen();
        assert!(seen.contains(&format!("{COLD_SECONDS} s")), "{seen}");
    }
}
