//! What a container printed, before it is quoted, kept or shown: no secret of the spec gets through, and no line is endless.

use std::sync::LazyLock;

use perfval_api::PerfValidation;
use perfval_api::text::reorders;
use perfval_run::diagnosis::log::clean;
use perfval_run::secret::{HIDDEN, Redactor};
use perfval_run::{Run, Settings};
use serde_json::{Value, json};

/// A value that the spec gives to a variable with a secret name.
pub const VALUE: &str = "s3cr3t-of-the-spec";
/// Hiding makes a text longer by this at most, for each character that it hides.
const LONGER: usize = HIDDEN.len();

static OBJECT: LazyLock<PerfValidation> = LazyLock::new(|| {
    let object = json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "metadata": {"name": "fuzz", "namespace": "perf"},
        "spec": {
            "model": {"name": "m"},
            "workload": {"dynamo": {"image": "i:1.4.2", "env": [{"name": "HF_TOKEN", "value": VALUE}]}},
        },
    });
    serde_json::from_value(object).expect("well-formed")
});

pub fn run(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let settings = Settings::default();
    let cleaned = clean(&Run::new(&OBJECT, &settings), &text);
    is_clean(&cleaned);
    assert!(
        cleaned.lines().all(|line| line.len() <= LONGER * (8 << 10)),
        "an endless line"
    );
    let redactor = Redactor::new(&OBJECT.spec);
    let redacted = redactor.redact(&text);
    is_clean(&redacted);
    assert!(
        redacted.len() <= LONGER * text.len(),
        "{} of {} bytes",
        redacted.len(),
        text.len()
    );
    if let Ok(mut object) = serde_json::from_str::<Value>(&text) {
        redactor.redact_object(&mut object);
        texts(&object);
    }
    redacted.contains(HIDDEN)
}

/// Names of fields stay, whatever they are.
fn texts(object: &Value) {
    match object {
        Value::String(text) => is_clean(text),
        Value::Array(items) => items.iter().for_each(texts),
        Value::Object(fields) => fields.values().for_each(texts),
        _ => {}
    }
}

fn is_clean(text: &str) {
    assert!(!text.contains(VALUE), "{text}");
    assert!(!text.contains(reorders), "{text:?}");
}
