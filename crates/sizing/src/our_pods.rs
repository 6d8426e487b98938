//! The pods of a run as admission leaves them: what the spec asks for, and what the namespace's `LimitRanges` fill in.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use perfval_api::{PerfValidationSpec, PodPlacement};
use rust_decimal::Decimal;

use crate::inventory::{Amounts, Texts};

/// One pod of each kind. The Job that fills the model cache is over before the others begin.
pub struct OurPods {
    /// One worker; as a device plugin's user with its GPU.
    pub worker: OurPod,
    /// The frontend, for which the spec sets no resources.
    pub frontend: OurPod,
    /// The load generator.
    pub trial: OurPod,
}

/// A pod.
pub struct OurPod {
    /// What it is, for messages.
    pub what: &'static str,
    init: Option<Resources>,
    main: Resources,
}

/// What a container asks for.
#[derive(Clone, Default)]
pub struct Resources {
    pub requests: Amounts,
    pub limits: Amounts,
}

/// Whether the frontend runs on the node under test. With a model cache always: its volume may be `ReadWriteOnce`,
/// and a pod on a second node would wait for it for ever.
pub fn frontend_is_pinned(spec: &PerfValidationSpec) -> bool {
    spec.placement.frontend == PodPlacement::WorkloadNode || spec.model.cache.is_some()
}

/// Whether the load generator runs on the node under test; as for the frontend, a model cache decides.
pub fn trial_is_pinned(spec: &PerfValidationSpec) -> bool {
    spec.benchmark.placement == PodPlacement::WorkloadNode || spec.model.cache.is_some()
}

/// What the copying asks of a node; sizing counts it where the Job is pinned.
pub fn installer_resources() -> ResourceRequirements {
    let amounts = |cpu: &str, memory: &str| {
        [("cpu", cpu), ("memory", memory)]
            .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
            .into()
    };
    ResourceRequirements {
        requests: Some(amounts("10m", "16Mi")),
        limits: Some(amounts("500m", "64Mi")),
        claims: None,
    }
}

impl OurPods {
    /// The pods of a spec; `gpu` is the extended resource that workers ask a device plugin for.
    pub fn of(spec: &PerfValidationSpec, gpu: Option<&str>, limit_ranges: &[LimitRange]) -> Self {
        let container = |resources: &ResourceRequirements| Resources::admitted(resources, limit_ranges);
        let mut worker = container(&spec.workload.resources);
        for amounts in [&mut worker.requests, &mut worker.limits] {
            amounts.remove(&spec.placement.resource_name);
            if let Some(gpu) = gpu {
                amounts.set(&Arc::from(gpu), Decimal::ONE);
            }
        }
        Self {
            worker: OurPod {
                what: "worker",
                init: None,
                main: worker,
            },
            frontend: OurPod {
                what: "frontend",
                init: None,
                main: container(&ResourceRequirements::default()),
            },
            trial: OurPod {
                what: "load generator",
                init: Some(container(&installer_resources())),
                main: container(&spec.benchmark.resources),
            },
        }
    }

    /// All of them.
    pub fn each(&self) -> [&OurPod; 3] {
        [&self.worker, &self.frontend, &self.trial]
    }
}

impl OurPod {
    /// Its containers.
    pub fn containers(&self) -> impl Iterator<Item = &Resources> {
        self.init.iter().chain([&self.main])
    }

    /// What it asks for in all.
    pub fn total(&self) -> Resources {
        let mut total = self.main.clone();
        if let Some(init) = &self.init {
            total.requests.raise(&init.requests);
            total.limits.raise(&init.limits);
        }
        total
    }
}

impl Resources {
    /// Requests and limits of a container after the defaults of the API and of the namespace.
    fn admitted(resources: &ResourceRequirements, limit_ranges: &[LimitRange]) -> Self {
        let texts = &mut Texts::default();
        let mut admitted = Self {
            requests: Amounts::requests(Some(resources), texts),
            limits: Amounts::read(resources.limits.as_ref(), texts),
        };
        for LimitRangeItem {
            default,
            default_request,
            ..
        } in items(limit_ranges, "Container")
        {
            admitted.limits = filled(Amounts::read(default.as_ref(), texts), &admitted.limits);
            admitted.requests = filled(Amounts::read(default_request.as_ref(), texts), &admitted.requests);
        }
        admitted
    }
}

fn filled(mut defaults: Amounts, own: &Amounts) -> Amounts {
    defaults.replace(own);
    defaults
}

/// What `LimitRanges` say about one type: `Container` or `Pod`.
pub fn items<'a>(limit_ranges: &'a [LimitRange], type_: &'a str) -> impl Iterator<Item = &'a LimitRangeItem> {
    let all = limit_ranges.iter().filter_map(|range| range.spec.as_ref());
    all.flat_map(|spec| &spec.limits)
        .filter(move |item| item.type_ == type_)
}
