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

    /// True if a person has approved a revision, also while the operator has not read a newer approval.
    pub fn is_approved(&self) -> bool {
        let known = self.status.as_ref().and_then(|status| status.approved.as_ref());
        self.spec.approved_revision.is_some() && known.is_some()
    }
}

/// The baseline of each environment that counts, by digest: the oldest approved one. If none is approved, it is the oldest. Of
/// equally old ones it is the first by name.
pub fn baselines_in_use<'a>(
    baselines: impl IntoIterator<Item = &'a PerfBaseline>,
) -> BTreeMap<&'a str, &'a PerfBaseline> {
    let rank = |baseline: &PerfBaseline| {
        let created = baseline.creation_timestamp().map(|created| created.0);
        (!baseline.is_approved(), created.is_none(), created, baseline.name_any())
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
