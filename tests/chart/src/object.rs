//! Rendered objects: their names, and what of them is compared.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Service, ServiceAccount};
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Labels that name the tool and the release, not the operator.
const OF_THE_TOOL: [&str; 5] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/version",
    "helm.sh/chart",
];

/// Its kind, namespace and name.
pub fn id(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    format!(
        "{} {}/{}",
        text(&object["kind"]),
        text(&metadata["namespace"]),
        text(&metadata["name"])
    )
}

/// Objects by their ids.
///
/// # Panics
/// If two have the same id: an installation of both fails.
pub fn by_id(objects: impl IntoIterator<Item = Value>) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for object in objects {
        let id = id(&object);
        let before = all.insert(id.clone(), object);
        assert!(before.is_none(), "{id} is rendered twice");
    }
    all
}

/// The objects of an installation by their names, without what Helm and kustomize differ in by their nature: labels of the
/// tool, the annotation that keeps the CRD, hooks, and the namespace, which Helm is given.
pub fn comparable(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let is_installed =
        |object: &Value| object["kind"] != "Namespace" && object["metadata"]["annotations"]["helm.sh/hook"].is_null();
    let installed = objects.into_iter().filter(is_installed);
    by_id(installed.map(|mut object| {
        strip(&mut object);
        object
    }))
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for key in OF_THE_TOOL.iter().chain(&["helm.sh/resource-policy"]) {
                fields.remove(*key);
            }
            fields.values_mut().for_each(strip);
            fields.retain(|key, value| {
                !["labels", "annotations"].contains(&key.as_str())
                    || value.as_object().is_none_or(|map| !map.is_empty())
            });
            if let Some(Value::Array(variables)) = fields.get_mut("env") {
                variables.sort_by_key(|variable| variable["name"].to_string());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Paths of fields that the Kubernetes type of the object does not have: the API server would refuse or drop them.
///
/// # Panics
/// If the object does not fit its type at all.
pub fn unknown_fields(object: &Value) -> Vec<String> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let known = match kind {
        "ClusterRole" => through::<ClusterRole>(object),
        "ClusterRoleBinding" => through::<ClusterRoleBinding>(object),
        "ConfigMap" => through::<ConfigMap>(object),
        "CustomResourceDefinition" => through::<CustomResourceDefinition>(object),
        "Deployment" => through::<Deployment>(object),
        "FlowSchema" => through::<FlowSchema>(object),
        "Namespace" => through::<Namespace>(object),
        "NetworkPolicy" => through::<NetworkPolicy>(object),
        "Pod" => through::<Pod>(object),
        "PodDisruptionBudget" => through::<PodDisruptionBudget>(object),
        "PriorityLevelConfiguration" => through::<PriorityLevelConfiguration>(object),
        "Role" => through::<Role>(object),
        "RoleBinding" => through::<RoleBinding>(object),
        "Service" => through::<Service>(object),
        "ServiceAccount" => through::<ServiceAccount>(object),
        "ValidatingAdmissionPolicy" => through::<ValidatingAdmissionPolicy>(object),
        "ValidatingAdmissionPolicyBinding" => through::<ValidatingAdmissionPolicyBinding>(object),
        // Of Prometheus' operator, whose types are not ours.
        "PodMonitor" | "PrometheusRule" | "ServiceMonitor" => return Vec::new(),
        other => panic!("no type for {other}"),
    };
    let mut unknown = Vec::new();
    compare(object, &known, kind, &mut unknown);
    unknown
}

fn through<T: DeserializeOwned + Serialize>(object: &Value) -> Value {
    let typed: T = serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{}: {error}", id(object)));
    serde_json::to_value(typed).expect("an object is JSON")
}

fn compare(given: &Value, known: &Value, path: &str, unknown: &mut Vec<String>) {
    match (given, known) {
        (Value::Object(given), _) => {
            for (key, value) in given {
                match known.get(key) {
                    Some(known) => compare(value, known, &format!("{path}.{key}"), unknown),
                    None => unknown.push(format!("{path}.{key}")),
                }
            }
        }
        (Value::Array(given), _) => {
            for (number, value) in given.iter().enumerate() {
                compare(value, &known[number], &format!("{path}[{number}]"), unknown);
            }
        }
        _ => {}
    }
}
