use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use super::export::error_kind;
use super::object::JsonObject;
use super::record::RequestRecord;
use super::{ErrorKind, ReportError, most_frequent};

/// Distinct errors that are counted separately: messages may carry ports and ids.
const DISTINCT: usize = 500;

/// Failed requests in `profile_export.jsonl`. It is the only account of a run in which all requests failed: then
/// AIPerf exits 1 and writes no export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedRequests {
    /// Measured requests that ended well.
    pub succeeded: i64,
    /// Measured requests that failed.
    pub failed: i64,
    kinds: BTreeMap<ErrorKind, i64>,
}

impl FailedRequests {
    /// Adds one line of the file; warm-up requests are passed over.
    pub fn add(&mut self, line: &str) -> Result<(), ReportError> {
        let record: RequestRecord<'_, IgnoredAny> =
            serde_json::from_str(line).map_err(|e| ReportError::Json(e.to_string()))?;
        if !record.is_measured() {
            return Ok(());
        }
        let Some(error) = record.error else {
            self.succeeded += 1;
            return Ok(());
        };
        self.failed += 1;
        let kind = error_kind(&JsonObject::document(error.get())?, 0)?;
        if self.kinds.len() < DISTINCT || self.kinds.contains_key(&kind) {
            *self.kinds.entry(kind).or_default() += 1;
        }
        Ok(())
    }

    /// The most frequent errors, at most [`super::ERROR_KINDS`].
    pub fn errors(&self) -> Vec<ErrorKind> {
        let counted = |(kind, count): (&ErrorKind, &i64)| ErrorKind {
            count: *count,
            ..kind.clone()
        };
        most_frequent(self.kinds.iter().map(counted).collect())
    }
}
