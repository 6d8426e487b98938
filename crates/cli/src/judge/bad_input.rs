//! Reasons why `judge` cannot judge.

use std::path::PathBuf;

use crate::manifest;

/// Input that cannot be judged. A result that proves nothing is no such error: it is an Invalid trial.
#[derive(Debug, thiserror::Error)]
pub enum BadInput {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        source: std::io::Error,
    },
    /// The manifest.
    #[error(transparent)]
    Manifest(#[from] manifest::Error),
    /// A saved ConfigMap without all trials.
    #[error("{}: {why}", path.display())]
    Results {
        /// Path of the file.
        path: PathBuf,
        /// The missing part.
        why: String,
    },
    /// One trial twice.
    #[error("{first} and {second} hold the same trial: give each one once")]
    GivenTwice {
        /// First place.
        first: String,
        /// Second place.
        second: String,
    },
    /// A threshold that scales, and no number to scale by.
    #[error("gate {gate} scales with the GPUs in use: give {missing}")]
    Share {
        /// Gate as the manifest contains it.
        gate: String,
        /// The flags.
        missing: &'static str,
    },
    /// More GPUs in use than there are.
    #[error("--gpus {gpus} is more than --node-gpus {node_gpus}")]
    TooMany {
        /// In use.
        gpus: i64,
        /// Of the node.
        node_gpus: i64,
    },
}
