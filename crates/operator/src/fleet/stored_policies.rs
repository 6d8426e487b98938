//! Policies as the watch holds them. A policy that this version cannot parse does not hide the others.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::Store;
use kube::runtime::watcher::Event;
use perfval_api::Reason;
use perfval_api::fleet::PerfValidationPolicy;
use perfval_run::diagnosis::secret::Redactor;
use tracing::error;

use crate::metrics::OperatorMetrics;

/// A policy, or the reason why it cannot be parsed.
pub(super) type StoredPolicy = DeserializeGuard<PerfValidationPolicy>;

/// Returns the policies that are not being deleted, sorted by name, and the names of those that cannot be parsed.
pub(super) fn read(store: &Store<StoredPolicy>) -> (Vec<Arc<PerfValidationPolicy>>, Vec<String>) {
    let (mut policies, mut unreadable) = (Vec::new(), Vec::new());
    for stored in store.state() {
        match &stored.0 {
            Ok(policy) if policy.metadata.deletion_timestamp.is_none() => policies.push(Arc::new(policy.clone())),
            Ok(_) => {}
            Err(_) => unreadable.push(stored.name_any()),
        }
    }
    policies.sort_by_key(|policy| policy.name_any());
    (policies, unreadable)
}

/// Reports a new or changed policy that cannot be parsed.
pub(super) fn report_unreadable(event: &Event<StoredPolicy>, metrics: &OperatorMetrics) {
    let (Event::Apply(stored) | Event::InitApply(stored)) = event else {
        return;
    };
    if let Err(invalid) = &stored.0 {
        // A parser quotes what it does not expect.
        let why = Redactor::default().redact(&invalid.error);
        error!(policy = stored.name_any(), why, "this version cannot parse the policy");
        metrics.failed(Reason::SpecUnreadable.as_str());
    }
}
