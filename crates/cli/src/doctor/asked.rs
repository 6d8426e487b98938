use perfval_api::PerfValidation;

use crate::session::Session;

/// What is asked about.
pub struct Asked<'a> {
    pub session: &'a Session,
    /// What is to be run.
    pub object: &'a PerfValidation,
    /// Whether that is a manifest of the user's.
    pub given: bool,
    pub operator_namespace: &'a str,
}
