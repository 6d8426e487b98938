//! Reasons why `size` has no answer.

use std::path::PathBuf;

use perfval_sizing::inventory::DumpError;

use crate::manifest;

/// No answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        source: std::io::Error,
    },
    /// A file is neither YAML nor JSON.
    #[error("{} is neither YAML nor JSON: {why}", path.display())]
    Syntax {
        /// Path of the file.
        path: PathBuf,
        /// Position and text of the error.
        why: String,
    },
    /// The manifest.
    #[error(transparent)]
    Manifest(#[from] manifest::Error),
    /// The CRD has no defaults for everything.
    #[error("the CRD leaves fields without a default")]
    Defaults(#[source] serde_json::Error),
    /// Saved objects cannot be used.
    #[error("{}", path.display())]
    Dump {
        /// The file.
        path: PathBuf,
        /// Error in the saved objects.
        source: DumpError,
    },
    /// The requested node does not exist.
    #[error("there is no node {name}: {}", known(nodes))]
    NoSuchNode {
        /// Its name.
        name: String,
        /// Those that are.
        nodes: Vec<String>,
    },
    /// The cluster could not be read.
    #[error("the cluster cannot be read: {0}")]
    Unreadable(String),
}

impl Error {
    /// 2 for bad input, 4 for a cluster that could not be read.
    pub fn code(&self) -> u8 {
        match self {
            Self::Unreadable(_) => 4,
            _ => 2,
        }
    }
}

fn known(nodes: &[String]) -> String {
    const NAMED: usize = 5;
    let more = match nodes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("there are {}{more}", nodes[..nodes.len().min(NAMED)].join(", "))
}
