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

/// The baseline of each environment that counts, by digest: the oldest one with an approved revision, or without such a one
/// the oldest. Of equally old ones it is the first by name.
pub fn baselines_in_use<'a>(
    baselines: impl IntoIterator<Item = &'a PerfBaseline>,
) -> BTreeMap<&'a str, &'a PerfBaseline> {
    let rank = |baseline: &PerfBaseline| {
        let created = baseline.creation_timestamp().map(|created| created.0);
        let is_unapproved = baseline.approved().is_none();
        (is_unapproved, created.is_none(), created, baseline.name_any())
    };
    let mut found: BTreeMap<&str, &PerfBaseline> = BTreeMap::new();
    for baseline in baselines {
        let first = found.entry(&baseline.spec.environment.digest).or_insert(baseline);
        if rank(baseline) < rank(first) {
            *first = baseline;
        }
    }
    found
}
