use std::path::Path;

use perfval_api::PerfValidation;
use perfval_api::admission::Admission;
use serde_json::Value;

use super::BadInput;

/// Larger than any object that the API server takes (bytes).
const MANIFEST_BYTES: u64 = 3 << 20;

/// The one `PerfValidation` of a manifest, with its defaults, as the API server would store it.
pub fn read(path: &Path) -> Result<PerfValidation, BadInput> {
    let yaml = |why: String| BadInput::Yaml {
        path: path.to_owned(),
        why,
    };
    let bytes = super::bytes(path, MANIFEST_BYTES)?;
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
        return Err(BadInput::NotOne {
            path: path.to_owned(),
            found,
        });
    };
    // `kubectl get -o yaml` prints it; whatever an earlier run said judges nothing here.
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.remove("status");
    }
    Admission::new()?
        .admit(&manifest)
        .map_err(|refusals| BadInput::Refused {
            path: path.to_owned(),
            refusals,
        })
}
