//! A cluster from saved objects.

use std::fmt::Display;
use std::path::Path;

use perfval_api::PerfValidation;
use perfval_run::build;
use perfval_sizing::inventory::{Dump, DumpError, Saved};
use serde_json::Value;

use crate::error::{Error, fault};
use crate::input;

/// A cluster of 5,000 GPU nodes lists half a gigabyte of JSON.
const FILE_BYTES: u64 = 1 << 30;

/// The cluster that a file describes; `-` is standard input.
pub fn read(path: &Path, object: &PerfValidation) -> Result<Saved, Error> {
    let text = input::text(path, FILE_BYTES, |why| syntax(path, why))?;
    cluster_in(path, &text, object)
}

/// The cluster that a text describes: YAML of any number of documents, or JSON. `path` is where it came from.
pub fn cluster_in(path: &Path, text: &str, object: &PerfValidation) -> Result<Saved, Error> {
    let unusable = |error: DumpError| Error::BadInput(format!("{}: {error}", path.display()));
    let mut dump = Dump::default();
    for document in documents(text).map_err(|why| syntax(path, &why))? {
        dump.add(document).map_err(unusable)?;
    }
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let cache = build::cache_claim_name(name, &object.spec);
    dump.finish(&object.spec.placement.device_class_name, namespace, cache.as_deref())
        .map_err(unusable)
}

fn syntax(path: &Path, why: &dyn Display) -> Error {
    Error::BadInput(format!("{} is neither YAML nor JSON: {why}", path.display()))
}

/// JSON is YAML too, but its own parser is faster, and dumps of large clusters have hundreds of megabytes.
fn documents(text: &str) -> Result<Vec<Value>, String> {
    if text.trim_start().starts_with('{') {
        let documents = serde_json::Deserializer::from_str(text).into_iter();
        if let Ok(documents) = documents.collect::<Result<_, _>>() {
            return Ok(documents);
        }
    }
    // As long as a cluster needs. But `kubectl` writes no alias, and a few of them make gigabytes of a small file.
    let budget = serde_saphyr::budget! {
        max_aliases: 0,
        max_events: usize::MAX,
        max_nodes: usize::MAX,
        max_documents: usize::MAX,
        max_total_scalar_bytes: usize::MAX,
        max_total_comment_bytes: usize::MAX,
    };
    let options = serde_saphyr::options! { budget: budget };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| fault(&error))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}
