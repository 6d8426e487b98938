use std::io::Read as _;
use std::path::Path;

use perfval_api::PerfValidation;
use perfval_run::build;
use perfval_sizing::inventory::{Dump, Saved};
use serde_json::Value;

use super::error::Error;
use crate::input;

/// The cluster that a file describes: YAML of any number of documents, or JSON.
pub fn read(path: &Path, object: &PerfValidation) -> Result<Saved, Error> {
    let unusable = |source| Error::Dump {
        path: path.to_owned(),
        source,
    };
    let mut dump = Dump::default();
    for document in documents_of(path)? {
        dump.add(document).map_err(unusable)?;
    }
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let cache = build::cache_claim_name(name, &object.spec);
    dump.finish(&object.spec.placement.device_class_name, namespace, cache.as_deref())
        .map_err(unusable)
}

/// The documents of a file; `-` is standard input.
fn documents_of(path: &Path) -> Result<Vec<Value>, Error> {
    let mut text = String::new();
    let read = input::open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })?;
    documents(&text).map_err(|why| Error::Syntax {
        path: path.to_owned(),
        why,
    })
}

/// JSON is YAML too, but its own parser is faster, and dumps of large clusters have hundreds of megabytes.
fn documents(text: &str) -> Result<Vec<Value>, String> {
    if text.trim_start().starts_with('{') {
        let documents = serde_json::Deserializer::from_str(text).into_iter();
        if let Ok(documents) = documents.collect::<Result<_, _>>() {
            return Ok(documents);
        }
    }
    // The parser's limits are for manifests from others; this file is the user's own.
    let options = serde_saphyr::options! { budget: None };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| error.to_string())?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}
