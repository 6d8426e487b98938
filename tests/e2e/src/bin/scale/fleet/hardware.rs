//! The nodes of the fleet: their environments, their speeds and their faults. The same number and seed give the same fleet.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use serde_json::{Value, json};

use super::super::crowd::cluster::typed;
use super::super::serve;

/// Standard deviations of logarithms, those of the prior for H100 (`crates/fleet/src/prior.rs`).
const NODE: f64 = 0.010;
const GPU: f64 = 0.010;
/// A slow GPU, and a slow node (logarithm of 0.8).
const SLOW: f64 = -0.223;

/// Product, driver, speed beside the first environment (logarithm), and share of the nodes (twentieths).
const ENVIRONMENTS: [(&str, &str, f64, usize); 4] = [
    ("NVIDIA H100 80GB HBM3", "580.105.8", 0.0, 12),
    ("NVIDIA H100 80GB HBM3", "580.95.5", -0.01, 5),
    ("NVIDIA H100 80GB HBM3", "570.172.8", -0.03, 2),
    ("NVIDIA H200", "580.105.8", 0.15, 1),
];

/// Namespace of others.
pub const OTHERS: &str = "others";

/// Fault of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// One GPU is 20 % slower.
    SlowGpu(usize),
    /// All GPUs are 20 % slower.
    SlowNode,
    /// Workers of the first validation end again and again.
    WorkersCrash,
    /// The load generator of the first validation ends with an error.
    GeneratorCrashes,
    /// Others have all GPUs all the time.
    Busy,
    /// Others have all GPUs until half of the nodes are covered.
    BusyForAWhile,
    /// The node leaves the cluster while it is measured.
    Leaves,
}

/// Faults, each with its share of the nodes (‰).
const FAULTS: [(Fault, usize); 7] = [
    (Fault::SlowGpu(0), 5),
    (Fault::SlowNode, 2),
    (Fault::WorkersCrash, 2),
    (Fault::GeneratorCrashes, 2),
    (Fault::Busy, 5),
    (Fault::BusyForAWhile, 5),
    (Fault::Leaves, 1),
];

/// The hardware of all nodes.
#[derive(Clone)]
pub struct Hardware {
    pub nodes: usize,
    faults: BTreeMap<usize, Fault>,
}

impl Hardware {
    /// A fleet of so many nodes.
    pub fn new(nodes: usize) -> Self {
        // The scheduler of the stub puts every load generator on the first node.
        let mut indices: Vec<usize> = (1..nodes).collect();
        let mut random = fastrand::Rng::with_seed(7);
        random.shuffle(&mut indices);
        let mut shuffled = indices.into_iter();
        let mut faults = BTreeMap::new();
        for (fault, share) in FAULTS {
            for index in shuffled.by_ref().take((nodes * share / 1000).max(1)) {
                let fault = match fault {
                    Fault::SlowGpu(_) => Fault::SlowGpu(random.usize(0..serve::GPUS)),
                    other => other,
                };
                faults.insert(index, fault);
            }
        }
        Self { nodes, faults }
    }

    /// Faulty nodes.
    pub fn faults(&self) -> impl Iterator<Item = (usize, Fault)> {
        self.faults.iter().map(|(index, fault)| (*index, *fault))
    }

    pub fn fault(&self, index: usize) -> Option<Fault> {
        self.faults.get(&index).copied()
    }

    /// Lasting speed of a GPU (logarithm; 0 is the usual one).
    pub fn speed(&self, index: usize, gpu: usize) -> f64 {
        let fault = match self.fault(index) {
            Some(Fault::SlowGpu(slow)) if slow == gpu => SLOW,
            Some(Fault::SlowNode) => SLOW,
            _ => 0.0,
        };
        environment(index).2 + NODE * normal(&("node", index)) + GPU * normal(&("gpu", index, gpu)) + fault
    }

    /// Nodes whose GPUs others have; `true`: for a while only.
    pub fn busy(&self) -> impl Iterator<Item = (usize, bool)> {
        self.faults().filter_map(|(index, fault)| match fault {
            Fault::Busy => Some((index, false)),
            Fault::BusyForAWhile => Some((index, true)),
            _ => None,
        })
    }
}

/// Index of a node by its name.
pub fn index(node: &str) -> Option<usize> {
    node.strip_prefix("node-")?.parse().ok()
}

/// UUID of a GPU, as [`serve::slice`] has it.
pub fn uuid(index: usize, gpu: usize) -> String {
    format!("GPU-{index:08x}-0000-0000-0000-{gpu:012x}")
}

fn environment(index: usize) -> (&'static str, &'static str, f64, usize) {
    let mut place = index % 20;
    for environment in ENVIRONMENTS {
        match place.checked_sub(environment.3) {
            Some(left) => place = left,
            None => return environment,
        }
    }
    ENVIRONMENTS[0]
}

pub fn node(index: usize) -> Value {
    let mut node = typed("v1", "Node", serve::node(index, usize::MAX));
    // The uids of `serve` are the same in each kind.
    node["metadata"]["uid"] = json!(format!("10000000-0000-0000-0000-{index:012x}"));
    node["metadata"]["labels"]["nvidia.com/gpu.product"] = json!(environment(index).0.replace(' ', "-"));
    node
}

pub fn slice(index: usize) -> Value {
    let mut slice = typed("resource.k8s.io/v1", "ResourceSlice", serve::slice(index, usize::MAX));
    slice["metadata"]["uid"] = json!(format!("20000000-0000-0000-0000-{index:012x}"));
    slice["metadata"]["ownerReferences"][0]["uid"] = json!(format!("10000000-0000-0000-0000-{index:012x}"));
    let (product, driver, ..) = environment(index);
    for device in slice["spec"]["devices"].as_array_mut().into_iter().flatten() {
        device["attributes"]["productName"]["string"] = json!(product);
        device["attributes"]["driverVersion"]["version"] = json!(driver);
    }
    slice
}

/// The claim of others on all GPUs of a node.
pub fn claim(index: usize) -> Value {
    let mut claim = typed("resource.k8s.io/v1", "ResourceClaim", serve::held(index));
    claim["metadata"]["uid"] = json!(format!("30000000-0000-0000-0000-{index:012x}"));
    claim["metadata"]["namespace"] = json!(OTHERS);
    claim
}

/// Standard normal number, the same for the same subject.
pub fn normal(of: &impl Hash) -> f64 {
    let mut random = random(of);
    let (radius, angle) = (random.f64().max(f64::MIN_POSITIVE), random.f64());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Random numbers, the same for the same subject.
pub fn random(of: &impl Hash) -> fastrand::Rng {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    fastrand::Rng::with_seed(hasher.finish())
}

#[cfg(test)]
mod tests {
    use perfval_fleet::prior::prior;

    use super::*;

    #[test]
    fn a_fleet_has_each_fault_and_the_same_each_time() {
        let fleet = Hardware::new(1_000);
        let count = |wanted: fn(&Fault) -> bool| fleet.faults().filter(|(_, fault)| wanted(fault)).count();
        assert_eq!(count(|fault| matches!(fault, Fault::SlowGpu(_))), 5);
        assert_eq!(count(|fault| *fault == Fault::Leaves), 1);
        assert_eq!(fleet.faults, Hardware::new(1_000).faults);
        let (index, gpu) = fleet
            .faults()
            .find_map(|(index, fault)| match fault {
                Fault::SlowGpu(gpu) => Some((index, gpu)),
                _ => None,
            })
            .expect("a slow GPU");
        let others: f64 = (0..8)
            .filter(|other| *other != gpu)
            .map(|other| fleet.speed(index, other))
            .sum();
        let percent = 100.0 * (fleet.speed(index, gpu) - others / 7.0).exp();
        assert!((75.0..85.0).contains(&percent), "{percent}");
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
    fn healthy_gpus_spread_as_the_prior_has_it() {
        let fleet = Hardware::new(2_000);
        let healthy: Vec<f64> = (0..2_000)
            .filter(|index| index % 20 < 12 && fleet.fault(*index).is_none())
            .map(|index| fleet.speed(index, 3))
            .collect();
        let mean = healthy.iter().sum::<f64>() / healthy.len() as f64;
        let variance = healthy.iter().map(|speed| (speed - mean).powi(2)).sum::<f64>() / healthy.len() as f64;
        let prior = prior(&environment(0).0.replace(' ', "-"));
        let expected = (prior.node.powi(2) + prior.gpu.powi(2)).sqrt();
        assert!((variance.sqrt() / expected - 1.0).abs() < 0.1, "{}", variance.sqrt());
    }
}
