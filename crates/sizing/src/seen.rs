//! Result of a read.

/// The answer of a read. Only a `NotFound` of the API server is [`Seen::Absent`]; a refusal, a time-out or a server
/// error is [`Seen::Unknown`], and nothing is ever concluded from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Seen<T> {
    /// It is there.
    Present(T),
    /// The API server reported that the object does not exist.
    Absent,
    /// No read was made.
    #[default]
    NotAsked,
    /// The read failed; the text contains the call and the answer.
    Unknown(String),
}

impl<T> Seen<T> {
    /// The value, if it exists and was read.
    pub fn present(&self) -> Option<&T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Absent | Self::NotAsked | Self::Unknown(_) => None,
        }
    }

    /// Returns the same answer with another value.
    pub fn map<U>(&self, f: impl FnOnce(&T) -> U) -> Seen<U> {
        match self {
            Self::Present(value) => Seen::Present(f(value)),
            Self::Absent => Seen::Absent,
            Self::NotAsked => Seen::NotAsked,
            Self::Unknown(why) => Seen::Unknown(why.clone()),
        }
    }

    /// Returns true if the API server reported that the object does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Reason of a failed read.
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Unknown(why) => Some(why),
            Self::NotAsked => Some("not read in this pass"),
            Self::Present(_) | Self::Absent => None,
        }
    }
}

/// Fails with the first part that was not read, and the reason.
pub fn first_unread<const PARTS: usize>(parts: [(&str, Option<&str>); PARTS]) -> Result<(), String> {
    let unread = parts.into_iter().find_map(|(what, why)| Some((what, why?)));
    unread.map_or(Ok(()), |(what, why)| Err(format!("{what}: {why}")))
}
