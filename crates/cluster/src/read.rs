//! Result of a read, and how decisions see it.

use perfval_sizing::Seen;

use crate::error::CallFailure;

/// Result of a read inside this crate: `?` hands a failed one on.
pub(crate) type Read<T> = Result<T, Unread>;

/// Reason why a read gave no result.
#[derive(Clone, Debug)]
pub(crate) enum Unread {
    /// The API server reported that the object does not exist.
    Absent,
    /// The result is unknown; the text contains the call and the answer.
    Unknown(String),
}

/// Reads the answer of a call: only a 404 means "not there".
pub(crate) fn read<T>(call: &str, answer: Result<T, CallFailure>) -> Read<T> {
    answer.map_err(|failure| {
        if failure.is_not_found() {
            Unread::Absent
        } else {
            Unread::Unknown(format!("{call}: {failure}"))
        }
    })
}

/// Returns `None` if the object does not exist.
pub(crate) fn unless_absent<T>(read: Read<T>) -> Read<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Unread::Absent) => Ok(None),
        Err(unknown) => Err(unknown),
    }
}

/// A read, as decisions see it.
pub(crate) fn seen<T>(read: Read<T>) -> Seen<T> {
    match read {
        Ok(value) => Seen::Present(value),
        Err(Unread::Absent) => Seen::Absent,
        Err(Unread::Unknown(why)) => Seen::Unknown(why),
    }
}
