//! Refusals of the API server's `LimitRanger`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use perfval_api::quantity;
use rust_decimal::Decimal;

use crate::our_pods::{OurPod, OurPods, Resources};

/// The first of our pods that a `LimitRange` refuses, with the numbers.
pub fn refusal(limit_ranges: &[LimitRange], pods: &OurPods) -> Option<String> {
    limit_ranges.iter().find_map(|range| {
        let name = range.metadata.name.as_deref().unwrap_or_default();
        let items = range.spec.iter().flat_map(|spec| &spec.limits);
        let mut wrongs = items.flat_map(|item| pods.each().into_iter().filter_map(move |pod| wrong(item, pod)));
        let wrong = wrongs.next()?;
        Some(format!("LimitRange {name} refuses a pod of the run: {wrong}"))
    })
}

/// A limit below the request of a pod, such as a namespace's default: the API server refuses the pod. `field`: its resources in the
/// spec.
pub fn tight(pod: &OurPod, field: &str) -> Option<String> {
    pod.containers().find_map(|(what, resources)| {
        resources.requests.iter().find_map(|(name, request)| {
            let limit = resources.limits.listed(name).filter(|limit| *limit < request)?;
            let (request, limit) = (request.normalize(), limit.normalize());
            Some(format!(
                "the {what} asks for {name} {request}, and its limit is {limit}: raise the limit in {field} or in the \
                 LimitRange of the namespace"
            ))
        })
    })
}

fn wrong(item: &LimitRangeItem, pod: &OurPod) -> Option<String> {
    let total = pod.total();
    let measured: Vec<(&str, &Resources)> = match item.type_.as_str() {
        "Container" => pod.containers().collect(),
        "Pod" => vec![(pod.what, &total)],
        _ => Vec::new(),
    };
    measured.into_iter().find_map(|(what, resources)| {
        let wrong = too_much(item.max.as_ref(), resources)
            .or_else(|| too_little(item.min.as_ref(), resources))
            .or_else(|| too_elastic(item.max_limit_request_ratio.as_ref(), resources))?;
        Some(format!("{what} of type {}: {wrong}", item.type_))
    })
}

type Bounds<'a> = Option<&'a BTreeMap<String, Quantity>>;

fn bounds(bounds: Bounds<'_>) -> impl Iterator<Item = (&str, &str, Decimal)> {
    bounds
        .into_iter()
        .flatten()
        .map(|(name, Quantity(text))| (name.as_str(), text.as_str(), quantity::parse(text).unwrap_or_default()))
}

/// Every bound on a limit wants one to be there.
fn too_much(max: Bounds<'_>, Resources { requests, limits }: &Resources) -> Option<String> {
    bounds(max).find_map(|(name, text, max)| match (requests.listed(name), limits.listed(name)) {
        (_, None) => Some(format!("{name} has a maximum of {text} and no limit is set")),
        (_, Some(limit)) if limit > max => Some(format!("limit of {name} is {limit}, and the maximum is {text}")),
        (Some(request), _) if request > max => {
            Some(format!("request of {name} is {request}, and the maximum is {text}"))
        }
        _ => None,
    })
}

fn too_little(min: Bounds<'_>, Resources { requests, limits }: &Resources) -> Option<String> {
    bounds(min).find_map(|(name, text, min)| match (requests.listed(name), limits.listed(name)) {
        (None, _) => Some(format!("{name} has a minimum of {text} and no request is set")),
        (Some(request), _) if request < min => {
            Some(format!("request of {name} is {request}, and the minimum is {text}"))
        }
        (_, Some(limit)) if limit < min => Some(format!("limit of {name} is {limit}, and the minimum is {text}")),
        _ => None,
    })
}

fn too_elastic(ratio: Bounds<'_>, Resources { requests, limits }: &Resources) -> Option<String> {
    bounds(ratio).find_map(|(name, text, ratio)| {
        let (request, limit) = (requests.get(name), limits.get(name));
        let fits = request > Decimal::ZERO
            && limit > Decimal::ZERO
            && request.checked_mul(ratio).is_some_and(|highest| limit <= highest);
        (!fits).then(|| {
            format!("limit of {name} ({limit}) may be {text} times its request ({request}), and both have to be set")
        })
    })
}
