//! `resource.k8s.io` in the versions that clusters serve: everything here is thought of as `v1`.

use k8s_openapi::api::resource::v1::ResourceClaimTemplate;
use kube::core::{ApiResource, DynamicObject};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The API group.
pub const GROUP: &str = "resource.k8s.io";
/// Supported versions, the newest first.
pub const VERSIONS: [&str; 3] = [NEWEST, "v1beta2", V1BETA1];
/// The version whose shapes we use.
pub const NEWEST: &str = "v1";
/// The version of Kubernetes 1.32, with shapes of its own; those of `v1beta2` are those of `v1`.
pub const V1BETA1: &str = "v1beta1";

/// A kind of the group at a version.
pub fn resource(version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: version.to_owned(),
        api_version: format!("{GROUP}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// An object of any version, read as one of `v1`; its type does not take another apiVersion.
#[derive(Clone, Debug)]
pub struct AsV1<K>(pub K);

impl<'de, K: DeserializeOwned> Deserialize<'de> for AsV1<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        if let Some(fields) = object.as_object_mut() {
            fields.remove("apiVersion");
        }
        let devices = object.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
        for device in devices.into_iter().flatten() {
            lift(device, "basic");
        }
        serde_json::from_value(object).map(Self).map_err(D::Error::custom)
    }
}

/// The claim template as an object of a version.
pub fn claim_template(template: &ResourceClaimTemplate, version: &str) -> Result<DynamicObject, serde_json::Error> {
    let mut object = serde_json::to_value(template)?;
    object["apiVersion"] = format!("{GROUP}/{version}").into();
    if version == V1BETA1 {
        let requests = object
            .pointer_mut("/spec/spec/devices/requests")
            .and_then(Value::as_array_mut);
        for request in requests.into_iter().flatten() {
            lift(request, "exactly");
        }
    }
    serde_json::from_value(object)
}

/// Moves the fields of an inner object to the outer one, whose own fields stay.
fn lift(outer: &mut Value, inner: &str) {
    let Some(outer) = outer.as_object_mut() else { return };
    if let Some(Value::Object(fields)) = outer.remove(inner) {
        for (name, value) in fields {
            outer.entry(name).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::resource::v1::ResourceSlice;
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_slice_of_v1beta1_is_one_of_v1() {
        let fields = json!({
            "attributes": { "type": { "string": "gpu" } },
            "capacity": { "memory": { "value": "80Gi" } },
            "taints": [{ "key": "k", "effect": "NoSchedule" }],
        });
        let mut flat = fields.clone();
        flat["name"] = json!("gpu-0");
        let slice = |device: Value| {
            json!({
                "metadata": { "name": "s" },
                "spec": { "driver": "d", "nodeName": "n1", "pool": { "name": "n1", "generation": 1, "resourceSliceCount": 1 }, "devices": [device] },
            })
        };
        let of_v1: ResourceSlice = from_value(slice(flat.clone())).unwrap();
        for device in [flat, json!({ "name": "gpu-0", "basic": fields })] {
            let mut older = slice(device);
            older["apiVersion"] = json!("resource.k8s.io/v1beta1");
            assert_eq!(from_value::<AsV1<ResourceSlice>>(older).unwrap().0, of_v1);
        }
        assert_eq!(of_v1.spec.devices.unwrap()[0].attributes.as_ref().unwrap().len(), 1);
    }

    #[test]
    fn a_template_of_v1beta1_is_flat() {
        let exactly = json!({ "deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 1 });
        let template = from_value(json!({
            "metadata": { "name": "t" },
            "spec": { "spec": { "devices": { "requests": [{ "name": "gpu", "exactly": exactly }] } } },
        }))
        .unwrap();
        for version in VERSIONS {
            let object = claim_template(&template, version).unwrap();
            assert_eq!(object.types.as_ref().unwrap().api_version, format!("{GROUP}/{version}"));
            let request = &object.data["spec"]["spec"]["devices"]["requests"][0];
            let mut expected = json!({ "name": "gpu", "exactly": exactly });
            if version == V1BETA1 {
                lift(&mut expected, "exactly");
                assert_eq!(expected["deviceClassName"], "gpu.nvidia.com");
            }
            assert_eq!(*request, expected, "{version}");
        }
    }
}
