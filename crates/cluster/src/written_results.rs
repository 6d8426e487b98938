//! Results that this process has just written: the pass that finds them need not read every trial's log again, of up to 10 MiB each.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::core::ResourceExt as _;
use parking_lot::{Mutex, MutexGuard};
use perfval_run::Run;
use tokio::time::Instant;

/// Time in which that pass comes, 200 ms after the write.
const RECENT: Duration = Duration::from_secs(10);

/// Results that were written a moment ago, by uid of the object.
#[derive(Clone, Default)]
pub(crate) struct WrittenResults(Arc<Mutex<HashMap<String, WrittenResult>>>);

struct WrittenResult {
    at: Instant,
    /// Version of the object for which they were made.
    version: Option<String>,
    sha256: String,
}

impl WrittenResults {
    /// Takes note of results that were made for an object as it is.
    pub(crate) fn add(&self, run: &Run<'_>, sha256: String) {
        let written = WrittenResult {
            at: Instant::now(),
            version: run.object.resource_version(),
            sha256,
        };
        self.lock().insert(run.uid().to_owned(), written);
    }

    /// Digest of the results that were written for this object as it is; given once.
    pub(crate) fn take(&self, run: &Run<'_>) -> Option<String> {
        let written = self.lock().remove(run.uid())?;
        let is_same = written.version.is_some() && written.version == run.object.resource_version();
        is_same.then_some(written.sha256)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, WrittenResult>> {
        let mut all = self.0.lock();
        all.retain(|_, written| written.at.elapsed() < RECENT);
        all
    }
}

#[cfg(test)]
mod tests {
    use perfval_api::PerfValidation;
    use perfval_run::Settings;
    use serde_json::json;
    use tokio::time::advance;

    use super::*;

    fn object(version: &str) -> PerfValidation {
        serde_json::from_value(json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
            "metadata": {"name": "h100", "namespace": "perf", "uid": "a", "resourceVersion": version},
            "spec": {"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}}},
        }))
        .unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_next_pass_over_the_same_object_relies_on_a_write() {
        let (first, changed, settings) = (object("1"), object("2"), Settings::default());
        let (run, changed) = (Run::new(&first, &settings), Run::new(&changed, &settings));
        let written = WrittenResults::default();
        written.add(&run, "digest".to_owned());
        assert_eq!(written.take(&run).as_deref(), Some("digest"));
        assert_eq!(written.take(&run), None, "given once");
        written.add(&run, "digest".to_owned());
        assert_eq!(written.take(&changed), None, "the object changed");
        written.add(&run, "digest".to_owned());
        advance(RECENT).await;
        assert_eq!(written.take(&run), None, "long ago");
    }
}
