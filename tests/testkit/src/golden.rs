//! Files that hold what a test makes.

use std::path::Path;

/// Asserts that a file holds this text. `UPDATE_GOLDEN=1` writes it first. `how`: what a developer does about a difference.
///
/// # Panics
///
/// If it holds another text, or cannot be written.
#[track_caller]
pub fn assert_recorded(path: impl AsRef<Path>, text: &str, how: &str) {
    let path = path.as_ref();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, text).expect("a file");
    }
    let recorded = std::fs::read_to_string(path).unwrap_or_default();
    assert!(recorded == text, "{} is stale: {how}", path.display());
}
