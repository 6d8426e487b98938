//! The manifest of one `PerfValidation`.

use std::fmt::Display;
use std::path::Path;

use perfval_api::PerfValidation;
use perfval_api::admission::Admission;
use serde_json::Value;

use crate::error::{Error, fault};
use crate::input;

/// Larger than any object that the API server takes (bytes).
const MANIFEST_BYTES: u64 = 3 << 20;

/// The one `PerfValidation` of a file, as the API server would store it.
pub fn read(path: &Path) -> Result<PerfValidation, Error> {
    parse(&text(path)?, &path.display().to_string())
}

pub fn text(path: &Path) -> Result<String, Error> {
    input::text(path, MANIFEST_BYTES, |why| no_yaml(&path.display().to_string(), why))
}

/// Error of a text that is no YAML. `from`: its source.
fn no_yaml(from: &str, why: &dyn Display) -> Error {
    Error::BadInput(format!("{from} is no YAML: {why}"))
}

pub fn documents(text: &str, from: &str) -> Result<Vec<Value>, Error> {
    serde_saphyr::from_multiple(text).map_err(|error| no_yaml(from, &fault(&error)))
}

/// The one `PerfValidation` of a manifest, with its defaults, as the API server would store it. `from`: source of the
/// text, for people.
pub fn parse(text: &str, from: &str) -> Result<PerfValidation, Error> {
    parse_as(text, from, None)
}

/// Same as [`parse`], with `name` instead of the manifest's.
pub fn parse_as(text: &str, from: &str, name: Option<&str>) -> Result<PerfValidation, Error> {
    let documents = documents(text, from)?;
    let (mut found, others): (Vec<Value>, Vec<Value>) = documents
        .into_iter()
        .partition(|document| document["kind"] == "PerfValidation");
    let Some(mut manifest) = found.pop().filter(|_| found.is_empty()) else {
        let count = if found.is_empty() { 0 } else { found.len() + 1 };
        let other = others.iter().find_map(|document| document["kind"].as_str());
        let other = other.map_or(String::new(), |kind| format!(" and a {kind}"));
        return Err(Error::BadInput(format!(
            "{from} holds {count} PerfValidations{other}: give a manifest with one PerfValidation"
        )));
    };
    // `kubectl get -o yaml` prints a status, but results of an earlier run decide nothing here.
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.remove("status");
    }
    if let Some(name) = name
        && matches!(manifest["metadata"], Value::Null | Value::Object(_))
    {
        manifest["metadata"]["name"] = name.into();
    }
    Admission::new()?.admit(&manifest).map_err(|refusals| {
        let all = refusals.iter().map(|refusal| match &*refusal.path {
            // The message contains the field.
            "" => format!("\n  {}", refusal.message),
            path => format!("\n  {path}: {}", refusal.message),
        });
        let all: Vec<String> = all.collect();
        Error::BadInput(format!("{from} would be refused:{}", all.concat()))
    })
}
