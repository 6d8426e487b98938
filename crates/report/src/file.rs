//! A file of a report.

/// Name and content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name in the folder of the report.
    pub name: &'static str,
    /// All of it.
    pub content: String,
}
