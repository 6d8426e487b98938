//! Taints of devices, from their slices and from `DeviceTaintRule`s, and taints of nodes.

use k8s_openapi::api::core::v1::{Taint, Toleration};
use serde_json::Value;

use super::pools::DeviceId;
use crate::inventory::Device;

/// Effects that keep a pod away; `None`, `PreferNoSchedule` and anything newer do not.
const KEEPS_AWAY: [&str; 2] = ["NoSchedule", "NoExecute"];

/// Why a device is tainted for workers, whose claims tolerate nothing.
pub fn device_taint(id: &DeviceId<'_>, device: &Device, rules: &[Value]) -> Option<String> {
    let own = device.taints.iter().find(|taint| KEEPS_AWAY.contains(&&*taint.effect));
    if let Some(taint) = own {
        return Some(taint.key.to_string());
    }
    let rule = rules.iter().find(|rule| rule_applies(rule, id))?;
    let name = rule
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some(format!("DeviceTaintRule {name}"))
}

/// An empty selector is for all devices, a missing one for none. A field of the selector that is not known here (a class,
/// an expression) is taken to match: then too few devices are counted, never too many.
fn rule_applies(rule: &Value, id: &DeviceId<'_>) -> bool {
    let text = |pointer: &str| rule.pointer(pointer).and_then(Value::as_str);
    let is_or_any =
        |field: &str, value: &str| text(&format!("/spec/deviceSelector/{field}")).is_none_or(|want| want == value);
    rule.pointer("/spec/deviceSelector").is_some_and(Value::is_object)
        && text("/spec/taint/effect").is_some_and(|effect| KEEPS_AWAY.contains(&effect))
        && is_or_any("driver", id.driver)
        && is_or_any("pool", id.pool)
        && is_or_any("device", id.device)
}

/// The taints of a node that keep pods away.
pub fn strict(taints: &[Taint]) -> impl Iterator<Item = &Taint> {
    taints
        .iter()
        .filter(|taint| KEEPS_AWAY.contains(&taint.effect.as_str()))
}

/// Whether any toleration covers a taint.
pub fn tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    tolerations.iter().any(|toleration| {
        let key = toleration.key.as_deref().unwrap_or_default();
        let effect = toleration.effect.as_deref().unwrap_or_default();
        let covers = match toleration.operator.as_deref().unwrap_or("Equal") {
            "Exists" => key.is_empty() || key == taint.key,
            "Equal" | "" => {
                key == taint.key
                    && toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
            }
            _ => false,
        };
        covers && (effect.is_empty() || effect == taint.effect)
    })
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
