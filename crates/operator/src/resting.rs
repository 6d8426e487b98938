//! Objects in the watch's store: what a decision needs, and no more than a bound.
//!
//! With ten runs of history and eight workers a finished object took 25 KB, and 5,000 of them did not fit into 128 MiB. A pass
//! that changes anything reads the whole object first. The API server admits objects of 1.5 MB: a hundred of those would not fit
//! either, so an object that is too large is kept by its name alone.

use std::io;
use std::mem::take;

use kube::api::ObjectMeta;
use kube::core::error_boundary::InvalidObject;
use perfval_api::{HistoryEntry, PerfValidation, PerfValidationStatus, Phase, TrialStatus};
use perfval_verdict::diagnosis::cause::Cause;

use crate::objects::Guarded;

/// Prefix of the annotations that are read.
const OURS: &str = "perfvalidation.dev/";
/// Longest spec (bytes of JSON).
const SPEC_BYTES: usize = 16 << 10;
/// Longest value of an annotation of ours (bytes).
const ANNOTATION_BYTES: usize = 1 << 10;

/// Reduces an object to what the store keeps. An object that is too large counts as one that cannot be read.
pub fn keep(object: &mut Guarded) {
    let reduced = match &mut object.0 {
        Ok(object) => {
            reduce(object);
            too_large(object).map(|error| InvalidObject {
                error,
                metadata: take(&mut object.metadata),
            })
        }
        Err(invalid) => {
            strip(&mut invalid.metadata);
            None
        }
    };
    if let Some(mut invalid) = reduced {
        invalid.metadata.annotations = None;
        object.0 = Err(invalid);
    }
}

/// Returns the reason and the remedy, if an object is too large.
fn too_large(object: &PerfValidation) -> Option<String> {
    let annotations = object.metadata.annotations.iter().flatten();
    let long = annotations
        .map(|(key, value)| (key, value.len()))
        .find(|(_, length)| *length > ANNOTATION_BYTES);
    if let Some((key, length)) = long {
        return Some(format!(
            "the annotation {key} has {length} bytes; write at most {ANNOTATION_BYTES}"
        ));
    }
    let mut spec = Length(0);
    // Counting does not fail, and a spec has a JSON form.
    serde_json::to_writer(&mut spec, &object.spec).ok()?;
    let Length(length) = spec;
    (length > SPEC_BYTES).then(|| {
        format!("the spec has {length} bytes of JSON; write at most {SPEC_BYTES}, and put long values into a ConfigMap (env.valueFrom)")
    })
}

/// Counts what is written to it.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Drops metadata that nothing here reads, such as the manifest that `kubectl apply` keeps.
fn strip(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    metadata.labels = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|key, _| key.starts_with(OURS));
    }
}

/// Drops what no decision needs; of a finished object also what only a change of it needs.
pub fn reduce(object: &mut PerfValidation) {
    strip(&mut object.metadata);
    if !is_reduced(object) {
        return;
    }
    let Some(status) = &mut object.status else { return };
    // The metrics show the last run that measured something.
    let measured = |entry: &HistoryEntry| entry.throughput.is_some() || entry.verdict.is_some();
    let last = take(&mut status.history).into_iter().find(measured);
    status.history = last.into_iter().collect();
    status.gates = Vec::new();
    status.workers = Vec::new();
    keep_slow_gpus(status);
    status.progress = None;
    status.timeline = Vec::new();
    status.comparison = None;
}

/// Keeps of trials and findings which GPUs the run found slow; most runs find none.
fn keep_slow_gpus(status: &mut PerfValidationStatus) {
    status.trials.retain(|trial| !trial.slow_gpus.is_empty());
    for trial in &mut status.trials {
        *trial = TrialStatus {
            number: trial.number,
            slow_gpus: take(&mut trial.slow_gpus),
            ..TrialStatus::default()
        };
    }
    status.trials.shrink_to_fit();
    status
        .diagnosis
        .retain(|finding| finding.cause == Cause::SlowWorker.as_str());
    for finding in &mut status.diagnosis {
        (finding.evidence, finding.remedy) = (String::new(), String::new());
    }
    status.diagnosis.shrink_to_fit();
}

/// Whether the store has only a part of this object.
pub fn is_reduced(object: &PerfValidation) -> bool {
    let phase = object.status.as_ref().and_then(|status| status.phase);
    phase == Some(Phase::Completed)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kept(change: impl FnOnce(&mut Value)) -> Guarded {
        let mut object = json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
            "metadata": {
                "name": "run", "namespace": "perf", "uid": "1", "labels": {"team": "a"},
                "annotations": {"note": "n".repeat(9_000), "perfvalidation.dev/rerun": "1"},
            },
            "spec": {"model": {"name": "m"}, "workload": {"image": "i:1.4.2"}},
        });
        change(&mut object);
        let mut object = serde_json::from_value(object).expect("well-formed");
        keep(&mut object);
        object
    }

    fn refused(change: impl FnOnce(&mut Value)) -> String {
        let invalid = kept(change).0.expect_err("it is too large");
        assert_eq!(
            (invalid.metadata.name.as_deref(), invalid.metadata.uid.as_deref()),
            (Some("run"), Some("1"))
        );
        assert_eq!(invalid.metadata.annotations, None);
        invalid.error
    }

    #[test]
    fn keeps_annotations_of_its_own_and_drops_other_metadata() {
        let object = kept(|_| ()).0.expect("it is small");
        let annotations: Vec<_> = object.metadata.annotations.iter().flatten().collect();
        assert_eq!(annotations, [(&"perfvalidation.dev/rerun".to_owned(), &"1".to_owned())]);
        assert_eq!(object.metadata.labels, None);
    }

    #[test]
    fn keeps_only_the_name_of_an_object_that_is_too_large() {
        let long = "a".repeat(1_024);
        let error = refused(|object| object["spec"]["workload"]["args"] = json!(vec![&long; 20]));
        assert!(error.contains("at most 16384"), "{error}");
        let error = refused(|object| object["metadata"]["annotations"]["perfvalidation.dev/rerun"] = json!(long + "a"));
        assert!(error.contains("rerun has 1025 bytes; write at most 1024"), "{error}");
        assert!(
            kept(|object| object["spec"]["workload"]["args"] = json!(vec!["a".repeat(1_024); 14]))
                .0
                .is_ok()
        );
    }
}
