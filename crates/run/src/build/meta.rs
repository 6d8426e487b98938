//! Metadata of an object: name, owner and labels.

use std::collections::BTreeMap;

use kube::core::ObjectMeta;
use perfval_api::meta::{NAME_LABEL, RUN_LABEL};

use crate::Run;
use crate::names::{COMPONENT_LABEL, QUEUE_LABEL};

/// Kueue's labels that a Job has as well as a pod.
const QUEUE: [&str; 2] = [QUEUE_LABEL, "kueue.x-k8s.io/priority-class"];

/// Metadata of a child: its name, the object's namespace and ownership, all labels.
pub fn metadata(run: &Run<'_>, name: String, component: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: Some(run.namespace().to_owned()),
        labels: Some(labels(run, component)),
        owner_references: run.owner().map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// All labels of a child.
pub fn labels(run: &Run<'_>, component: &str) -> BTreeMap<String, String> {
    let mut labels = own_labels(run, component);
    labels.extend(
        [
            ("name", "perfvalidation".to_owned()),
            ("instance", run.name().to_owned()),
            ("version", run.settings.version.clone()),
            ("component", component.to_owned()),
            ("part-of", "perfvalidation".to_owned()),
            ("managed-by", "perfvalidation-operator".to_owned()),
        ]
        .map(|(key, value)| (format!("app.kubernetes.io/{key}"), value)),
    );
    labels
}

/// Metadata of a pod: what the spec's `podTemplate` contains, and `ours`, which win.
pub fn pod_metadata(run: &Run<'_>, ours: BTreeMap<String, String>) -> ObjectMeta {
    let template = run.spec().pod_template.metadata.clone();
    let mut labels = template.labels;
    labels.extend(ours);
    ObjectMeta {
        labels: Some(labels),
        annotations: Some(template.annotations).filter(|annotations| !annotations.is_empty()),
        ..ObjectMeta::default()
    }
}

/// Metadata of a Job. Kueue reads the queue of a Job there.
pub fn job_metadata(run: &Run<'_>, name: String, component: &str) -> ObjectMeta {
    let template = &run.spec().pod_template.metadata.labels;
    let queue = template.iter().filter(|(key, _)| QUEUE.contains(&key.as_str()));
    let mut metadata = metadata(run, name, component);
    let labels = metadata.labels.get_or_insert_default();
    labels.extend(queue.map(|(key, value)| (key.clone(), value.clone())));
    metadata
}

/// Our own labels alone, for pods that another operator makes: Grove selects its pods by
/// `app.kubernetes.io/managed-by` and `part-of`, so those stay its own.
pub fn own_labels(run: &Run<'_>, component: &str) -> BTreeMap<String, String> {
    [
        (NAME_LABEL, run.name().to_owned()),
        (RUN_LABEL, run.id()),
        (COMPONENT_LABEL, component.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}
