//! The kinds that a dump should hold.

use std::collections::BTreeMap;

/// Kinds that sizing reads, and how `kubectl get` calls them. Those of the second list may well be missing in a cluster.
pub const NEEDED: [(&str, &str); 2] = [("Node", "nodes"), ("Pod", "pods")];
const OPTIONAL: [(&str, &str); 8] = [
    ("ResourceSlice", "resourceslices"),
    ("ResourceClaim", "resourceclaims"),
    ("DeviceClass", "deviceclasses"),
    ("DeviceTaintRule", "devicetaintrules"),
    ("PerfValidation", "perfvalidations"),
    ("ResourceQuota", "resourcequotas"),
    ("LimitRange", "limitranges"),
    ("BindRequest", "bindrequests.scheduling.run.ai"),
];
/// Kinds that matter only to a run with a model cache.
const OF_CACHE: [(&str, &str); 2] = [
    ("PersistentVolumeClaim", "persistentvolumeclaims"),
    ("PersistentVolume", "persistentvolumes"),
];

/// Arguments of `kubectl get` for everything that sizing reads and every cluster serves.
pub fn all() -> String {
    let kinds: Vec<&str> = NEEDED.iter().chain(&OPTIONAL[..3]).map(|(_, plural)| *plural).collect();
    format!("{} -A -o yaml", kinds.join(","))
}

/// Notes for people on the kinds that were found and those that were missing.
pub fn notes(found: &BTreeMap<String, usize>) -> Vec<String> {
    let absent: Vec<&str> = OPTIONAL
        .iter()
        .filter(|(kind, _)| !found.contains_key(*kind))
        .map(|(_, plural)| *plural)
        .collect();
    let known = |kind: &str| {
        let mut kinds = NEEDED.iter().chain(&OPTIONAL).chain(&OF_CACHE);
        kinds.any(|(known, _)| *known == kind)
    };
    let ignored: Vec<String> = found
        .iter()
        .filter(|(kind, _)| !known(kind))
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let absent = (!absent.is_empty()).then(|| {
        format!(
            "the dump lacks these kinds, and counts as a cluster without them: {}",
            absent.join(", ")
        )
    });
    let ignored = (!ignored.is_empty()).then(|| format!("not needed and left alone: {}", ignored.join(", ")));
    absent.into_iter().chain(ignored).collect()
}
