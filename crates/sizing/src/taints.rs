//! Taints of devices, from their slices and from `DeviceTaintRule`s, and taints of nodes.

use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::{Taint, Toleration};
use k8s_openapi::api::resource::v1::{DeviceToleration, ResourceSlice};
use serde_json::Value;

use super::pools::DeviceId;
use crate::inventory::Device;

/// Effects that keep a pod away; `None`, `PreferNoSchedule` and anything newer do not.
const KEEPS_AWAY: [&str; 2] = ["NoSchedule", "NoExecute"];

/// Reason why a device is tainted for workers whose claims carry these tolerations.
pub fn device_taint(
    id: &DeviceId<'_>,
    device: &Device,
    rules: &[Value],
    tolerations: &[DeviceToleration],
) -> Option<String> {
    let keeps_away = |key: &str, value: &str, effect: &str| {
        let covered = |own: &DeviceToleration| {
            let own = [&own.key, &own.value, &own.effect, &own.operator];
            covers(own.map(Option::as_deref), key, value, effect)
        };
        KEEPS_AWAY.contains(&effect) && !tolerations.iter().any(covered)
    };
    let own = device
        .taints
        .iter()
        .find(|taint| keeps_away(&taint.key, taint.value.as_deref().unwrap_or_default(), &taint.effect));
    if let Some(taint) = own {
        return Some(taint.key.to_string());
    }
    let rule = rules.iter().filter(|rule| rule_selects(rule, id)).find(|rule| {
        let field = |name: &str| rule["spec"]["taint"][name].as_str().unwrap_or_default();
        keeps_away(field("key"), field("value"), field("effect"))
    })?;
    let all = if selector_of(rule).is_some() {
        ""
    } else {
        ", which has no deviceSelector and so is for every device before Kubernetes 1.37"
    };
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let (key, name) = (text(&rule["spec"]["taint"]["key"]), text(&rule["metadata"]["name"]));
    Some(format!("{key} (DeviceTaintRule {name}{all})"))
}

/// An empty selector is for all devices. So is a missing one for the schedulers of Kubernetes 1.34 to 1.36, in spite
/// of the API reference (kubernetes#141620); mended in a patch release of 1.37, the first with the kind in v1. A
/// field of the selector that is unknown here (a class, an expression) is taken to match: then too few devices are
/// counted, never too many.
fn rule_selects(rule: &Value, id: &DeviceId<'_>) -> bool {
    let Some(selector) = selector_of(rule) else {
        return rule["apiVersion"] != ResourceSlice::API_VERSION;
    };
    [("driver", id.driver), ("pool", id.pool), ("device", id.device)]
        .into_iter()
        .all(|(field, value)| selector[field].as_str().is_none_or(|wanted| wanted == value))
}

fn selector_of(rule: &Value) -> Option<&Value> {
    Some(&rule["spec"]["deviceSelector"]).filter(|selector| selector.is_object())
}

/// The taints of a node that keep pods away.
pub fn strict(taints: &[Taint]) -> impl Iterator<Item = &Taint> {
    taints
        .iter()
        .filter(|taint| KEEPS_AWAY.contains(&taint.effect.as_str()))
}

/// Returns true if any toleration covers a taint of a node.
pub fn tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    let value = taint.value.as_deref().unwrap_or_default();
    tolerations.iter().any(|own| {
        let own = [&own.key, &own.value, &own.effect, &own.operator];
        covers(own.map(Option::as_deref), &taint.key, value, &taint.effect)
    })
}

/// Returns true if a toleration of a node or a device, given as its key, value, effect and operator, covers a taint.
fn covers([own_key, own_value, own_effect, operator]: [Option<&str>; 4], key: &str, value: &str, effect: &str) -> bool {
    let any_or = |own: Option<&str>, wanted: &str| own.is_none_or(|own| own.is_empty() || own == wanted);
    let covered = match operator.unwrap_or("Equal") {
        "Exists" => any_or(own_key, key),
        "Equal" | "" => own_key.unwrap_or_default() == key && own_value.unwrap_or_default() == value,
        _ => false,
    };
    covered && any_or(own_effect, effect)
}

/// The toleration for exactly one taint.
pub fn toleration(taint: &Taint) -> Toleration {
    let value = taint.value.clone().filter(|value| !value.is_empty());
    Toleration {
        key: Some(taint.key.clone()),
        operator: Some(if value.is_some() { "Equal" } else { "Exists" }.to_owned()),
        value,
        effect: Some(taint.effect.clone()),
        toleration_seconds: None,
    }
}

/// A toleration as a manifest writes it, on one line. Quoted, as a value such as `true` would be no text without.
pub fn as_yaml(toleration: &Toleration) -> String {
    let value = toleration.value.as_deref();
    let value = value.map(|value| format!(", value: {value:?}")).unwrap_or_default();
    format!(
        "{{key: {:?}, operator: {}{value}, effect: {}}}",
        toleration.key.as_deref().unwrap_or_default(),
        toleration.operator.as_deref().unwrap_or_default(),
        toleration.effect.as_deref().unwrap_or_default()
    )
}
