//! The manifest of one `PerfValidation`, as `judge` and `size` take it.

use std::fmt;
use std::path::{Path, PathBuf};

use perfval_api::PerfValidation;
use perfval_api::admission::{Admission, Refusal, SchemaError};
use serde_json::Value;

use crate::input;

/// The manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        source: std::io::Error,
    },
    /// The manifest is no YAML.
    #[error("{} is no YAML: {why}", path.display())]
    Yaml {
        /// Path of the file.
        path: PathBuf,
        /// Position and text of the error.
        why: String,
    },
    /// The manifest holds another number of them than one.
    #[error("{} holds {found} PerfValidations: give a manifest with one", path.display())]
    NotOne {
        /// Path of the file.
        path: PathBuf,
        /// Number of `PerfValidation`s in it.
        found: usize,
    },
    /// The API server would refuse the manifest.
    #[error("{} would be refused:{}", path.display(), Refusals(refusals))]
    Refused {
        /// Path of the file.
        path: PathBuf,
        /// Every reason.
        refusals: Vec<Refusal>,
    },
    /// The CRD's own schema is broken.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

struct Refusals<'a>(&'a [Refusal]);

impl fmt::Display for Refusals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|refusal| write!(f, "\n  {}: {}", refusal.path, refusal.message))
    }
}

/// Larger than any object that the API server takes (bytes).
const MANIFEST_BYTES: u64 = 3 << 20;

/// The one `PerfValidation` of a manifest, with its defaults, as the API server would store it.
pub fn read(path: &Path) -> Result<PerfValidation, Error> {
    let yaml = |why: String| Error::Yaml {
        path: path.to_owned(),
        why,
    };
    let bytes = input::bytes(path, MANIFEST_BYTES).map_err(|source| Error::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > MANIFEST_BYTES {
        return Err(yaml(format!("larger than {MANIFEST_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| yaml(error.to_string()))?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| yaml(error.to_string()))?;
    let mut found: Vec<Value> = documents
        .into_iter()
        .filter(|document| document["kind"] == "PerfValidation")
        .collect();
    let Some(mut manifest) = found.pop().filter(|_| found.is_empty()) else {
        let found = if found.is_empty() { 0 } else { found.len() + 1 };
        return Err(Error::NotOne {
            path: path.to_owned(),
            found,
        });
    };
    // `kubectl get -o yaml` prints a status, but results of an earlier run decide nothing here.
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.remove("status");
    }
    Admission::new()?.admit(&manifest).map_err(|refusals| Error::Refused {
        path: path.to_owned(),
        refusals,
    })
}
