use perfval_api::PerfValidation;

use crate::session::Session;

/// Subject of the checks.
pub struct Asked<'a> {
    pub session: &'a Session,
    /// Validation that is to be run.
    pub object: &'a PerfValidation,
    /// True if that is a manifest of the user's.
    pub given: bool,
    pub operator_namespace: &'a str,
}
