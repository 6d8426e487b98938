//! Baselines in use.

use std::collections::BTreeMap;

use kube::core::ResourceExt as _;

use super::{BaselineRevision, PerfBaseline};

impl PerfBaseline {
    /// Revision in use; `None` until the operator has read an approval.
    pub fn approved(&self) -> Option<&BaselineRevision> {
        let approved = self.status.as_ref()?.approved.as_ref()?;
        (self.spec.approved_revision == Some(approved.revision)).then_some(approved)
    }
}

/// Oldest baseline of each environment, by digest; of equally old ones the first by name. The others do not count.
pub fn oldest_baselines<'a>(
    baselines: impl IntoIterator<Item = &'a PerfBaseline>,
) -> BTreeMap<&'a str, &'a PerfBaseline> {
    let age = |baseline: &PerfBaseline| {
        let created = baseline.creation_timestamp().map(|created| created.0);
        (created.is_none(), created, baseline.name_any())
    };
    let mut found: BTreeMap<&str, &PerfBaseline> = BTreeMap::new();
    for baseline in baselines {
        let first = found.entry(&baseline.spec.environment.digest).or_insert(baseline);
        if age(baseline) < age(first) {
            *first = baseline;
        }
    }
    found
}
