//! Somebody else has an object of their own under a name that the operator uses.

use serde_json::{Value, json};

use super::ApiServer;
use super::call::Call;

/// What marks an object that somebody else made, as an annotation, and what comes of it, as a label.
const STRANGERS: &str = "world/stranger";
/// What marks the last state of an object that somebody took the finalizers off.
const FORCED: &str = "world/forced";

/// Whether somebody else made an object, or its maker was somebody else's.
pub fn is_a_strangers(object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata["annotations"][STRANGERS] == "true" || metadata["labels"][STRANGERS] == "true"
}

/// Whether somebody removed an object by force.
pub fn is_forced(object: &Value) -> bool {
    object["metadata"]["annotations"][FORCED] == "true"
}

impl ApiServer {
    /// Somebody puts an object of their own in the place of another, or where it would come: the same name, labels and
    /// content, but another uid and no owner. A Job's pod runs as ours would; a deployment has no pods.
    pub fn usurp(&self, plural: &str, namespace: &str, like: &Value) {
        let mut object = like.clone();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if self.get(plural, namespace, &name).is_some() {
            self.edit(plural, namespace, &name, |object| {
                object["metadata"]["annotations"] = json!({FORCED: "true"});
                object["metadata"]["finalizers"] = json!([]);
            });
            self.delete(plural, namespace, &name);
        }
        let metadata = &mut object["metadata"];
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.retain(|field, _| matches!(field.as_str(), "name" | "labels"));
        }
        metadata["namespace"] = namespace.into();
        metadata["annotations"] = json!({STRANGERS: "true"});
        match plural {
            "dynamographdeployments" => object["spec"] = json!({}),
            "jobs" => object["spec"]["template"]["metadata"]["labels"][STRANGERS] = "true".into(),
            _ => {}
        }
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
        }
        self.put(object);
    }

    /// Somebody was quicker than a write: what it is about is theirs by now.
    pub(super) fn usurp_first(&self, call: &Call, body: &[u8]) {
        let plural = call.resource.split('/').next().unwrap_or_default();
        if !self.serves(plural) {
            return;
        }
        let namespace = call.namespace.clone().unwrap_or_default();
        let name = call.name.clone().unwrap_or_default();
        let there = self.get(plural, &namespace, &name);
        let asked_for = || serde_json::from_slice(body).ok();
        if let Some(like) = there.or_else(asked_for) {
            self.usurp(plural, &namespace, &like);
        }
    }
}
