//! The pods of a run after admission: the requests of the spec, and the defaults of the namespace's `LimitRanges`.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{LimitRange, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use perfval_api::{Benchmark, ModelCache, PerfValidationSpec, PodPlacement};
use rust_decimal::Decimal;

use crate::inventory::{Amounts, Texts};

/// Requests in flight that AIPerf holds with one CPU. Where it had too few it held 111 per CPU (446 of 2,048 on 4, against
/// eight H100), 122 (245 of 1,024 on 2) and 56 to 132 (28 to 66 of 256 on half a CPU, AIPerf 0.13.0).
pub const IN_FLIGHT_PER_CPU: i64 = 100;
/// Most workers that AIPerf starts, even if more are requested.
const MOST_CPUS: i64 = 32;
/// CPU request of the frontend for each request in flight (millicpus). Dynamo 1.4.2 before four H200s used 2.2 CPUs with 1,024 in
/// flight (73,000 tokens/s), and no more than 2.3 with 2,048.
const FRONTEND_MILLIS_EACH: i64 = 2;
/// Least and largest CPU request of the frontend that follows from the requests in flight (millicpus). The largest
/// is no measurement: eight GPUs are taken to need less than twice as much as four.
const FRONTEND_MILLIS: (i64, i64) = (100, 4000);
pub const CPU: &str = "cpu";
/// The copying container, in messages.
const INSTALLER: &str = "load generator's container install-runner (with fixed resources)";
/// More GPUs than any node has.
const MOST_WORKERS: i64 = 1024;

/// One pod of each kind. The Job that fills the model cache is over before the others begin.
pub struct OurPods {
    /// One worker; as a device plugin's user with its GPUs.
    pub worker: OurPod,
    /// The frontend of a run on `minGPUs`.
    pub frontend: OurPod,
    /// The load generator of a run on `minGPUs`.
    pub trial: OurPod,
    /// GPUs of each worker.
    pub gpus_per_worker: i64,
    /// Requests in flight for each GPU, where the load generator's CPU follows from them.
    in_flight: Option<i32>,
    /// Requests in flight for each GPU, where the frontend's CPU follows from them.
    frontend_in_flight: Option<i32>,
}

#[derive(Clone)]
pub struct OurPod {
    /// Role of the pod, for messages.
    pub what: &'static str,
    init: Option<Resources>,
    main: Resources,
}

/// Resources that a container requests.
#[derive(Clone, Default)]
pub struct Resources {
    pub requests: Amounts,
    pub limits: Amounts,
}

/// Returns true if the frontend runs on the node under test.
pub fn frontend_is_pinned(spec: &PerfValidationSpec) -> bool {
    spec.dynamo().frontend.placement == PodPlacement::WorkloadNode
}

/// Returns true if the load generator runs on the node under test. If the spec leaves it open, a cache that one node alone can
/// mount decides: a pod on a second node would wait for the volume for ever.
pub fn trial_is_pinned(spec: &PerfValidationSpec) -> bool {
    let cache = spec.model.cache.as_ref();
    match spec.benchmark.placement {
        Some(placement) => placement == PodPlacement::WorkloadNode,
        None => cache.is_some_and(ModelCache::is_on_one_node),
    }
}

/// Requests of the copying container. Sizing counts them where the Job is pinned.
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

/// Resources of the frontend of a run on `gpus` GPUs: CPU by the requests in flight, unless the spec has an amount of CPU.
/// Without any its pod is of the class `BestEffort`, with 2 CPU shares against the 491 of the load generator (48 in flight): on a
/// lab whose cores had other work too, throughput fell to an eleventh.
pub fn frontend_resources(spec: &PerfValidationSpec, gpus: i64) -> ResourceRequirements {
    let millis = frontend_millicpus(spec.benchmark.concurrency_per_gpu, gpus);
    with_cpu(&spec.dynamo().frontend.resources, millis)
}

fn frontend_millicpus(in_flight_per_gpu: i32, gpus: i64) -> i64 {
    let in_flight = i64::from(in_flight_per_gpu).saturating_mul(gpus.max(1));
    let (least, most) = FRONTEND_MILLIS;
    in_flight.saturating_mul(FRONTEND_MILLIS_EACH).clamp(least, most)
}

/// Requests of the load generator of a run on `gpus` GPUs: a CPU for each [`IN_FLIGHT_PER_CPU`] requests in flight,
/// unless the spec gives the CPU.
pub fn generator_resources(benchmark: &Benchmark, gpus: i64) -> ResourceRequirements {
    with_cpu(&benchmark.resources, millicpus(benchmark.concurrency_per_gpu, gpus))
}

/// Resources of the spec, with this CPU request if they have no amount of CPU.
fn with_cpu(resources: &ResourceRequirements, millis: i64) -> ResourceRequirements {
    let mut resources = resources.clone();
    if !has_cpu(&resources) {
        let requests = resources.requests.get_or_insert_default();
        requests.insert(CPU.to_owned(), Quantity(format!("{millis}m")));
    }
    resources
}

fn has_cpu(resources: &ResourceRequirements) -> bool {
    let mut given = resources.requests.iter().chain(&resources.limits);
    given.any(|amounts| amounts.contains_key(CPU))
}

fn millicpus(in_flight_per_gpu: i32, gpus: i64) -> i64 {
    let in_flight = i64::from(in_flight_per_gpu).saturating_mul(gpus.max(1));
    in_flight
        .saturating_mul(1000)
        .div_euclid(IN_FLIGHT_PER_CPU)
        .min(MOST_CPUS * 1000)
}

/// The most workers that something holds for, which holds for fewer too; `i64::MAX` where nothing ends it.
pub fn most_workers(fits: impl Fn(i64) -> bool) -> i64 {
    let (mut fit, mut too_many) = (0, MOST_WORKERS);
    if fits(too_many) {
        return i64::MAX;
    }
    while too_many - fit > 1 {
        let middle = i64::midpoint(fit, too_many);
        if fits(middle) {
            fit = middle;
        } else {
            too_many = middle;
        }
    }
    fit
}

impl OurPods {
    /// The pods of a spec; `gpu` is the extended resource that workers ask a device plugin for.
    pub fn new(spec: &PerfValidationSpec, gpu: Option<&str>, limit_ranges: &[LimitRange]) -> Self {
        let container = |resources: &ResourceRequirements| Resources::admitted(resources, limit_ranges);
        let in_flight =
            |resources: &ResourceRequirements| (!has_cpu(resources)).then_some(spec.benchmark.concurrency_per_gpu);
        // As the run writes it; only then come the namespace's defaults.
        let mut worker = spec.dynamo().worker.resources.clone();
        for amounts in [&mut worker.requests, &mut worker.limits].into_iter().flatten() {
            amounts.remove(&spec.placement.resource_name);
        }
        if let Some(gpu) = gpu {
            let limits = worker.limits.get_or_insert_default();
            limits.insert(gpu.to_owned(), Quantity(spec.gpus_per_worker().to_string()));
        }
        Self {
            worker: OurPod {
                what: "worker",
                init: None,
                main: container(&worker),
            },
            frontend: OurPod {
                what: "frontend",
                init: None,
                main: container(&frontend_resources(spec, spec.min_gpus())),
            },
            trial: OurPod {
                what: "load generator",
                init: Some(container(&installer_resources())),
                main: container(&generator_resources(&spec.benchmark, spec.min_gpus())),
            },
            gpus_per_worker: spec.gpus_per_worker(),
            in_flight: in_flight(&spec.benchmark.resources),
            frontend_in_flight: in_flight(&spec.dynamo().frontend.resources),
        }
    }

    /// Returns true if the load generator's CPU follows from the requests in flight.
    pub fn derives_cpu(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Returns true if the load generator or the frontend requests more of a resource with more workers.
    pub fn grows(&self, resource: &str) -> bool {
        resource == CPU && (self.derives_cpu() || self.frontend_in_flight.is_some())
    }

    /// The load generator of a run with `workers` workers.
    pub fn trial_for(&self, workers: i64) -> OurPod {
        let gpus = workers.saturating_mul(self.gpus_per_worker);
        self.trial.with_cpu(self.in_flight.map(|each| millicpus(each, gpus)))
    }

    /// The frontend of a run with `workers` workers.
    pub fn frontend_for(&self, workers: i64) -> OurPod {
        let gpus = workers.saturating_mul(self.gpus_per_worker);
        let millis = self.frontend_in_flight.map(|each| frontend_millicpus(each, gpus));
        self.frontend.with_cpu(millis)
    }

    pub fn each(&self) -> [&OurPod; 3] {
        [&self.worker, &self.frontend, &self.trial]
    }
}

impl OurPod {
    /// The same pod with another CPU request, if there is one.
    fn with_cpu(&self, millis: Option<i64>) -> Self {
        let mut pod = self.clone();
        if let Some(millis) = millis {
            pod.main.requests.set(&Arc::from(CPU), Decimal::new(millis, 3));
        }
        pod
    }

    /// Its containers with their names for messages. The main one has the pod's.
    pub fn containers(&self) -> impl Iterator<Item = (&'static str, &Resources)> {
        let init = self.init.iter().map(|init| (INSTALLER, init));
        init.chain([(self.what, &self.main)])
    }

    /// Sum over its containers.
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
        let specs = limit_ranges.iter().filter_map(|range| range.spec.as_ref());
        let items = specs.flat_map(|spec| &spec.limits);
        for item in items.filter(|item| item.type_ == "Container") {
            admitted.limits = filled(Amounts::read(item.default.as_ref(), texts), &admitted.limits);
            admitted.requests = filled(Amounts::read(item.default_request.as_ref(), texts), &admitted.requests);
        }
        admitted
    }
}

fn filled(mut defaults: Amounts, own: &Amounts) -> Amounts {
    defaults.replace(own);
    defaults
}
