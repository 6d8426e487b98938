//! One `PerfValidation` under test.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use perfval_api::{PerfValidation, PerfValidationStatus, Phase, Verdict};
use serde_json::{Value, json};

use crate::lab::{Lab, eventually};
use crate::leftovers::leftovers;

/// Longest a run of the lab may take: a cold one on two busy cores took under two minutes.
const RUN: Duration = Duration::from_mins(10);

/// One `PerfValidation` in the cluster.
pub struct Validation {
    lab: Lab,
    api: Api<PerfValidation>,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Validation {
    /// Creates it from a manifest.
    ///
    /// # Panics
    /// If the manifest is malformed or refused.
    pub async fn create(lab: &Lab, manifest: Value) -> Self {
        let object: PerfValidation = serde_json::from_value(manifest).expect("a PerfValidation");
        let (namespace, name) = (object.namespace().expect("a namespace"), object.name_any());
        let api: Api<PerfValidation> = Api::namespaced(lab.client.clone(), &namespace);
        api.create(&PostParams::default(), &object)
            .await
            .unwrap_or_else(|error| panic!("create {name}: {error}"));
        Self {
            lab: lab.clone(),
            api,
            namespace,
            name,
        }
    }

    /// An existing one.
    pub fn existing(lab: &Lab, namespace: &str, name: &str) -> Self {
        let api = Api::namespaced(lab.client.clone(), namespace);
        Self {
            lab: lab.clone(),
            api,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Its present state.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn get(&self) -> Result<PerfValidation, kube::Error> {
        self.api.get(&self.name).await
    }

    /// Its present status.
    ///
    /// # Errors
    /// If it cannot be read, or was not yet looked at.
    pub async fn status(&self) -> Result<PerfValidationStatus, String> {
        let object = self.get().await.map_err(|error| error.to_string())?;
        object.status.ok_or_else(|| "no status yet".to_owned())
    }

    /// Waits until its status is as wanted; the status then.
    ///
    /// # Panics
    /// If it does not become so in time.
    pub async fn until(&self, what: &str, wanted: impl Fn(&PerfValidationStatus) -> bool) -> PerfValidationStatus {
        eventually(&format!("{}: {what}", self.name), RUN, || async {
            let status = self.status().await?;
            if wanted(&status) {
                Ok(status)
            } else {
                Err(brief(&status))
            }
        })
        .await
    }

    /// Waits until it is in a phase.
    ///
    /// # Panics
    /// If it does not come there, or its run ends before.
    pub async fn phase(&self, phase: Phase) -> PerfValidationStatus {
        let status = self
            .until(phase.as_str(), |status| {
                status.phase == Some(phase) || (phase != Phase::Completed && status.phase == Some(Phase::Completed))
            })
            .await;
        assert_eq!(
            status.phase,
            Some(phase),
            "{}: the run ended before: {}",
            self.name,
            brief(&status)
        );
        status
    }

    /// Waits for the end of its run and checks its verdict.
    ///
    /// # Panics
    /// If the verdict is another one, or does not come in time.
    pub async fn ends(&self, verdict: Verdict) -> PerfValidationStatus {
        let status = self.phase(Phase::Completed).await;
        assert_eq!(status.verdict, Some(verdict), "{}: {}", self.name, brief(&status));
        status
    }

    /// Changes it by a merge patch.
    ///
    /// # Panics
    /// If the API server refuses.
    pub async fn patch(&self, patch: Value) {
        let done = self
            .api
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(&patch))
            .await;
        done.unwrap_or_else(|error| panic!("patch {}: {error}", self.name));
    }

    /// Sets an annotation; `None` removes it.
    ///
    /// # Panics
    /// If the API server refuses.
    pub async fn annotate(&self, key: &str, value: Option<&str>) {
        self.patch(json!({"metadata": {"annotations": {key: value}}})).await;
    }

    /// Deletes it, waits until it is gone, and checks that it left nothing.
    ///
    /// # Panics
    /// If it stays, or leaves something.
    pub async fn delete(self) {
        self.api
            .delete(&self.name, &DeleteParams::default())
            .await
            .expect("delete");
        eventually(&format!("{} is gone", self.name), RUN, || async {
            match self.api.get_opt(&self.name).await {
                Ok(None) => Ok(()),
                Ok(Some(object)) => Err(object.status.as_ref().map_or_else(String::new, brief)),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
        self.left_nothing().await;
    }

    /// Checks that no object, pod or claim of its runs exists.
    ///
    /// # Panics
    /// If something is left.
    pub async fn left_nothing(&self) {
        let left = leftovers(&self.lab, &self.namespace, &self.name).await;
        assert!(left.is_empty(), "{} left {left:?}", self.name);
    }
}

/// A status in one line.
fn brief(status: &PerfValidationStatus) -> String {
    format!(
        "{:?} {:?} {}: {}",
        status.phase,
        status.verdict,
        status.reason.as_deref().unwrap_or("-"),
        status.message.as_deref().unwrap_or("-")
    )
}
