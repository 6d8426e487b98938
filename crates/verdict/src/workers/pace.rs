use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::Reading;

/// Growth of a worker's answers per time.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Unit that is counted.
    pub unit: Unit,
    /// Per second, over the whole phase.
    #[serde(deserialize_with = "crate::number::bounded")]
    pub mean: Decimal,
    /// Per second, in its best step between two samples.
    #[serde(deserialize_with = "crate::number::bounded")]
    pub best: Decimal,
}

/// Unit that shows a worker's progress, finest first.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Unit {
    /// Generated tokens.
    Tokens,
    /// Bytes of answers.
    Bytes,
    /// Finished requests.
    Requests,
}

impl Unit {
    /// The finest that a reading holds.
    pub(super) fn finest(reading: &Reading) -> Self {
        match (reading.tokens, reading.bytes) {
            (Some(_), _) => Self::Tokens,
            (None, Some(_)) => Self::Bytes,
            (None, None) => Self::Requests,
        }
    }

    /// Number of units in a reading.
    pub(super) fn count(self, reading: &Reading) -> Option<i64> {
        match self {
            Self::Tokens => reading.tokens,
            Self::Bytes => reading.bytes,
            Self::Requests => Some(reading.finished),
        }
    }
}
