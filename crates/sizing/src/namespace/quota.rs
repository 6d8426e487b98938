//! Allowance of a namespace's `ResourceQuotas` for a run: one frontend, one load generator and as many workers as
//! possible.

use k8s_openapi::api::core::v1::{ResourceQuota, ScopedResourceSelectorRequirement};
use k8s_openapi::api::resource::v1::DeviceClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use perfval_api::quantity;
use rust_decimal::Decimal;

use crate::inventory::Amounts;
use crate::our_pods::{OurPod, OurPods, Resources, most_workers};

/// Resources for which a quota requires an amount in every container.
const TO_BE_SET: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

/// Pods that a quota still allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub quota: String,
    pub resource: String,
    pub workers: i64,
    /// Workers for which it leaves room once the other runs of the namespace are over.
    pub later: i64,
}

/// Pods of a run, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub workers: i64,
    /// Workers for which the frontend's CPU is counted.
    pub frontend_for: Option<i64>,
    /// Workers for which the load generator's CPU is counted.
    pub trial_for: Option<i64>,
}

/// Resources of a run that quotas count.
pub struct QuotaUser {
    pub pods: OurPods,
    /// Resources that the claim of each worker counts as, with their amounts.
    pub claim: Vec<(String, i64)>,
    /// Priority class of all pods.
    pub priority_class: Option<String>,
}

/// Another run of the namespace, as its quotas count it.
pub struct Other {
    pub user: QuotaUser,
    /// Pods that it will still create.
    pub to_come: Count,
    /// Pods that it gives back in the end, created or not.
    pub gives_back: Count,
}

impl Count {
    /// All pods of a run.
    pub fn whole(workers: i64) -> Self {
        Self {
            workers,
            frontend_for: Some(workers),
            trial_for: Some(workers),
        }
    }
}

/// Resources that a claim for this many devices of a class counts as. A class with an extended resource counts as that
/// resource too.
pub fn claimed(class: Option<&DeviceClass>, name: &str, devices: i64) -> Vec<(String, i64)> {
    let extended = class.and_then(|class| class.spec.extended_resource_name.as_ref());
    let counts = [
        ("count/resourceclaims.resource.k8s.io".to_owned(), 1),
        (format!("{name}.deviceclass.resource.k8s.io/devices"), devices),
        (format!("requests.deviceclass.resource.kubernetes.io/{name}"), devices),
    ];
    let extended = extended.map(|extended| (format!("requests.{extended}"), devices));
    counts.into_iter().chain(extended).collect()
}

/// The least that any quota leaves; none if no quota counts what a run makes.
pub fn allowance(quotas: &[ResourceQuota], user: &QuotaUser, others: &[Other]) -> Option<Allowance> {
    let allowance = |quota, (resource, hard)| resource_allowance(quota, resource, hard, user, others);
    quotas
        .iter()
        .flat_map(|quota| hard(quota).filter_map(move |limit| allowance(quota, limit)))
        .min_by(|a, b| (a.workers, &a.quota, &a.resource).cmp(&(b.workers, &b.quota, &b.resource)))
}

fn resource_allowance(
    quota: &ResourceQuota,
    resource: &str,
    hard: Decimal,
    run: &QuotaUser,
    others: &[Other],
) -> Option<Allowance> {
    let own = |workers| counted(quota, resource, run, Count::whole(workers));
    if own(1).is_zero() {
        return None;
    }
    let sum = |part: fn(&Other) -> Count| {
        let of = |other: &Other| counted(quota, resource, &other.user, part(other));
        others.iter().map(of).fold(Decimal::ZERO, Decimal::saturating_add)
    };
    let used = used(quota, resource, hard).saturating_add(sum(|other| other.to_come));
    let used_later = used.saturating_sub(sum(|other| other.gives_back)).max(Decimal::ZERO);
    let fit = |used| most_workers(|workers| own(workers) <= hard.saturating_sub(used));
    Some(Allowance {
        quota: name(quota).to_owned(),
        resource: resource.to_owned(),
        workers: fit(used),
        later: fit(used_later),
    })
}

/// Amount of a resource that pods of a run count against a quota.
fn counted(quota: &ResourceQuota, resource: &str, user: &QuotaUser, count: Count) -> Decimal {
    let QuotaUser {
        pods,
        claim,
        priority_class,
    } = user;
    let demand = |pod: &OurPod| {
        if covers(quota, pod, priority_class.as_deref()) {
            demand(resource, pod)
        } else {
            Decimal::ZERO
        }
    };
    let mut claimed = claim.iter().filter(|_| is_unscoped(quota));
    let claimed = claimed
        .find(|(known, _)| known == resource)
        .map_or(0, |(_, amount)| *amount);
    let each = demand(&pods.worker).max(claimed.into());
    let frontend = count.frontend_for.map(|workers| demand(&pods.frontend_for(workers)));
    let trial = count.trial_for.map(|workers| demand(&pods.trial_for(workers)));
    each.saturating_mul(count.workers.into())
        .saturating_add(frontend.unwrap_or_default())
        .saturating_add(trial.unwrap_or_default())
}

/// Resource that a quota requires in every container and that one of our containers lacks: admission refuses such a
/// pod.
pub fn unmeasured(quotas: &[ResourceQuota], pods: &OurPods, priority_class: Option<&str>) -> Option<String> {
    quotas.iter().find_map(|quota| {
        let wanted = hard(quota).map(|(resource, _)| resource).filter(|resource| TO_BE_SET.contains(resource));
        let (resource, pod) = wanted
            .flat_map(|resource| pods.each().map(|pod| (resource, pod)))
            .find(|(resource, pod)| covers(quota, pod, priority_class) && !sets_amount(pod, resource))?;
        Some(format!(
            "ResourceQuota {} wants {resource} of every container, and the {} has none: set it in benchmark.resources and \
             workload.dynamo.{{worker,frontend}}.resources; a LimitRange can set it for the rest",
            name(quota),
            pod.what
        ))
    })
}

fn sets_amount(pod: &OurPod, resource: &str) -> bool {
    pod.containers().all(|(_, container)| {
        let (amounts, name) = measured(container, resource);
        amounts.listed(name).is_some()
    })
}

/// The amounts that a resource of a quota is about, and its name there.
fn measured<'a>(resources: &'a Resources, resource: &'a str) -> (&'a Amounts, &'a str) {
    match resource.split_once('.') {
        Some(("limits", name)) => (&resources.limits, name),
        Some(("requests", name)) => (&resources.requests, name),
        _ => (&resources.requests, resource),
    }
}

/// Amount of a resource that a pod counts against a quota.
fn demand(resource: &str, pod: &OurPod) -> Decimal {
    if matches!(resource, "pods" | "count/pods") {
        return Decimal::ONE;
    }
    let total = pod.total();
    let (amounts, name) = measured(&total, resource);
    amounts.get(name)
}

/// Returns true if a quota is for a pod like this, which has no deadline. A default class of the cluster is unknown. An
/// unknown scope is taken to match.
fn covers(quota: &ResourceQuota, pod: &OurPod, priority_class: Option<&str>) -> bool {
    let Some(spec) = &quota.spec else {
        return true;
    };
    let total = pod.total();
    let best_effort = ["cpu", "memory"]
        .iter()
        .all(|name| total.requests.get(name).is_zero() && total.limits.get(name).is_zero());
    let in_scope = |scope: &str, operator: &str, values: &[String]| match scope {
        "Terminating" | "CrossNamespacePodAffinity" | "VolumeAttributesClass" => false,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "PriorityClass" => admits_class(operator, values, priority_class),
        _ => true,
    };
    let selected = spec
        .scope_selector
        .iter()
        .flat_map(|selector| selector.match_expressions.iter().flatten());
    spec.scopes.iter().flatten().all(|scope| in_scope(scope, "Exists", &[]))
        && selected.into_iter().all(
            |ScopedResourceSelectorRequirement {
                 scope_name,
                 operator,
                 values,
             }| in_scope(scope_name, operator, values.as_deref().unwrap_or_default()),
        )
}

/// Returns true if a selector of priority classes admits a pod. `NotIn` admits a pod without a class too.
fn admits_class(operator: &str, values: &[String], class: Option<&str>) -> bool {
    let is_listed = class.is_some_and(|class| values.iter().any(|value| value == class));
    match operator {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => class.is_some(),
        "DoesNotExist" => class.is_none(),
        _ => true,
    }
}

/// Scopes are for pods only.
fn is_unscoped(quota: &ResourceQuota) -> bool {
    let spec = quota.spec.as_ref();
    spec.is_none_or(|spec| spec.scopes.iter().flatten().next().is_none() && spec.scope_selector.is_none())
}

fn hard(quota: &ResourceQuota) -> impl Iterator<Item = (&str, Decimal)> {
    let hard = quota.spec.iter().flat_map(|spec| spec.hard.iter().flatten());
    hard.map(|(resource, Quantity(text))| (resource.as_str(), quantity::parse(text).unwrap_or_default()))
}

/// Until the quota's controller has counted, admission refuses everything.
fn used(quota: &ResourceQuota, resource: &str, hard: Decimal) -> Decimal {
    let used = quota
        .status
        .as_ref()
        .and_then(|status| status.used.as_ref()?.get(resource));
    used.and_then(|Quantity(text)| quantity::parse(text)).unwrap_or(hard)
}

fn name(quota: &ResourceQuota) -> &str {
    quota.metadata.name.as_deref().unwrap_or_default()
}
