//! Where things lie: the cache, which survives `down`, and the state folder, which does not.

use std::path::{Path, PathBuf};

/// Built programs and image archives, keyed by what they are made of: `${XDG_CACHE_HOME:-$HOME/.cache}/perfval-lab`.
pub fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || set("HOME").map_or_else(|| "/var/cache".into(), |home| PathBuf::from(home).join(".cache"));
    set("XDG_CACHE_HOME")
        .map_or_else(home, PathBuf::from)
        .join("perfval-lab")
}

/// Everything one running lab owns. The folder exists from `up` to `down`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// `$PERFVAL_LAB_DIR`, else `/var/lib/perfval-lab`.
    pub fn from_env() -> Self {
        Self::at(std::env::var_os("PERFVAL_LAB_DIR").unwrap_or_else(|| "/var/lib/perfval-lab".into()))
    }

    /// A state folder at a path of the caller's.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// A file or folder inside it.
    pub fn join(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    /// The log of a supervised process, or of the supervisor itself (`supervisor`).
    pub fn log(&self, process: &str) -> PathBuf {
        self.0.join("logs").join(format!("{process}.log"))
    }

    /// The kubeconfig of a user, e.g. `admin`.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.0.join("kubeconfig").join(format!("{user}.yaml"))
    }

    /// Links to all programs of this lab, for `PATH`.
    pub fn bin(&self) -> PathBuf {
        self.0.join("bin")
    }

    /// Where the supervisor takes requests.
    pub fn socket(&self) -> PathBuf {
        self.0.join("supervisor.sock")
    }

    /// The process that takes the lab down again.
    pub fn holder(&self) -> PathBuf {
        self.0.join("holder")
    }

    /// What the supervisor runs.
    pub fn plan(&self) -> PathBuf {
        self.0.join("plan.json")
    }

    /// What the supervisor last knew, readable after its death.
    pub fn status(&self) -> PathBuf {
        self.0.join("state.json")
    }

    /// The API server's audit log: one JSON object per line, level Metadata.
    pub fn audit_log(&self) -> PathBuf {
        self.0.join("audit.log")
    }
}
