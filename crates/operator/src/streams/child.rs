//! A child as its watch parses it.

use std::borrow::Cow;

use kube::Resource;
use kube::api::{DynamicObject, ObjectMeta, PartialObjectMeta, PartialObjectMetaExt as _};
use kube::runtime::watcher::Event;
use perfval_api::meta::NAME_LABEL;
use serde::{Deserialize, Deserializer};

/// The metadata of a child that is read. The rest is dropped before the next child of a page is parsed: 1.4 MB of short finalizers
/// take 8 MB.
#[derive(Clone, Debug)]
pub(super) struct ChildMetadata<K>(PartialObjectMeta<K>);

impl<K> ChildMetadata<K> {
    /// The event with metadata of kube's type.
    pub(super) fn unwrap_event(event: Event<Self>) -> Event<PartialObjectMeta<K>> {
        match event {
            Event::Apply(child) => Event::Apply(child.0),
            Event::Delete(child) => Event::Delete(child.0),
            Event::Init => Event::Init,
            Event::InitApply(child) => Event::InitApply(child.0),
            Event::InitDone => Event::InitDone,
        }
    }
}

impl<'de, K> Deserialize<'de> for ChildMetadata<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut whole = PartialObjectMeta::<DynamicObject>::deserialize(deserializer)?.metadata;
        if let Some(labels) = &mut whole.labels {
            labels.retain(|key, _| key == NAME_LABEL);
        }
        let metadata = ObjectMeta {
            name: whole.name,
            namespace: whole.namespace,
            resource_version: whole.resource_version,
            labels: whole.labels,
            ..ObjectMeta::default()
        };
        Ok(Self(metadata.into_response_partial()))
    }
}

impl<K: Resource> Resource for ChildMetadata<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn metadata_api() -> bool {
        true
    }

    fn kind(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.metadata
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_child_keeps_its_identity_and_the_label_of_its_object() {
        let read = json!({"name": "p", "namespace": "perf", "resourceVersion": "7", "labels": {(NAME_LABEL): "h100"}});
        let mut whole = read.clone();
        json_patch::merge(
            &mut whole,
            &json!({
                "uid": "1", "labels": {"team": "a"}, "annotations": {"note": "n"}, "finalizers": ["a/b"],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "2"}],
                "managedFields": [{"manager": "kubectl"}],
            }),
        );
        let child: ChildMetadata<Pod> = serde_json::from_value(json!({"metadata": whole})).expect("metadata");
        assert_eq!(serde_json::to_value(child.meta()).expect("JSON"), read);
        assert!(ChildMetadata::<Pod>::metadata_api());
    }
}
