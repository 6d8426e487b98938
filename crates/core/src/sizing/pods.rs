//! What pods ask of their node.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use rust_decimal::Decimal;

use crate::quantity;

/// Amounts by resource name.
pub type Amounts = BTreeMap<String, Decimal>;

/// Pods that take room on a node: bound to it and not over; terminating ones still do.
pub fn on_node<'a>(pods: &'a [Pod], node: &'a str) -> impl Iterator<Item = &'a Pod> {
    pods.iter().filter(move |pod| {
        let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        bound && !matches!(phase, Some("Succeeded" | "Failed"))
    })
}

/// What the scheduler counts for a pod: containers and sidecars together, or the largest moment of its start, plus the
/// overhead of its runtime class. A request for the whole pod stands for the sum.
pub fn effective_request(pod: &Pod) -> Amounts {
    let Some(spec) = &pod.spec else {
        return Amounts::new();
    };
    let mut sidecars = Amounts::new();
    let mut start = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let mut moment = requests(container.resources.as_ref());
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sidecars, &moment);
            moment.clone_from(&sidecars);
        } else {
            add(&mut moment, &sidecars);
        }
        raise(&mut start, &moment);
    }
    let mut total = sidecars;
    for Container { resources, .. } in &spec.containers {
        add(&mut total, &requests(resources.as_ref()));
    }
    raise(&mut total, &start);
    total.extend(requests(spec.resources.as_ref()));
    add(&mut total, &amounts(spec.overhead.as_ref()));
    total
}

/// The requests of a container; a limit stands in where there is no request.
pub fn requests(resources: Option<&ResourceRequirements>) -> Amounts {
    let mut all = amounts(resources.and_then(|resources| resources.limits.as_ref()));
    all.extend(amounts(resources.and_then(|resources| resources.requests.as_ref())));
    all
}

/// Quantities as numbers. One that cannot be read counts as more than any node has, never as nothing.
pub fn amounts(quantities: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    quantities
        .into_iter()
        .flatten()
        .map(|(name, Quantity(text))| (name.clone(), quantity::parse(text).unwrap_or(Decimal::MAX)))
        .collect()
}

/// Adds amounts, saturating.
pub fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = total.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

/// Raises amounts to at least others.
pub fn raise(total: &mut Amounts, others: &Amounts) {
    for (name, amount) in others {
        let highest = total.entry(name.clone()).or_default();
        *highest = (*highest).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_pod_counts_as_the_scheduler_counts_it() {
        let cpu = |amount: &str| json!({ "requests": { "cpu": amount } });
        let cases = [
            (
                json!({ "containers": [{ "name": "a", "resources": cpu("1") }, { "name": "b", "resources": cpu("500m") }] }),
                "1.5",
            ),
            (
                json!({ "containers": [{ "name": "a", "resources": { "limits": { "cpu": "2" } } }] }),
                "2",
            ),
            (
                json!({ "initContainers": [{ "name": "i", "resources": cpu("4") }], "containers": [{ "name": "a", "resources": cpu("1") }] }),
                "4",
            ),
            (
                json!({
                    "initContainers": [
                        { "name": "s", "restartPolicy": "Always", "resources": cpu("2") },
                        { "name": "i", "resources": cpu("3") },
                    ],
                    "containers": [{ "name": "a", "resources": cpu("1") }],
                }),
                "5",
            ),
            (
                json!({ "overhead": { "cpu": "250m" }, "containers": [{ "name": "a", "resources": cpu("1") }] }),
                "1.25",
            ),
            (
                json!({ "resources": cpu("8"), "containers": [{ "name": "a", "resources": cpu("1") }] }),
                "8",
            ),
        ];
        for (spec, expected) in cases {
            let pod: Pod = from_value(json!({ "metadata": {}, "spec": spec })).unwrap();
            assert_eq!(
                effective_request(&pod)["cpu"],
                quantity::parse(expected).unwrap(),
                "{spec}"
            );
        }
    }

    #[test]
    fn an_unreadable_amount_is_never_nothing() {
        let quantities = BTreeMap::from([("cpu".to_owned(), Quantity("12 cores".to_owned()))]);
        let mut total = amounts(Some(&quantities));
        add(&mut total, &amounts(Some(&quantities)));
        assert_eq!(total["cpu"], Decimal::MAX);
    }
}
