//! Identity of this build.

use std::sync::LazyLock;

/// Version of the release.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit that it was built from, as `PERFVAL_REVISION` gives it at build time (`just binaries` reads it from git).
pub const REVISION: &str = match option_env!("PERFVAL_REVISION") {
    Some(revision) if !revision.is_empty() => revision,
    _ => "unknown",
};

/// Both, as `--version` prints them.
pub fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| format!("{VERSION} ({REVISION})"));
    &LONG
}
