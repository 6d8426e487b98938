//! Simulated fleets: true speeds, noise, faults, and passes with what the product has at that moment.

use std::collections::BTreeMap;

use perfval_fleet::centre::trimmed_mean;
use perfval_fleet::findings::{Assessment, FleetRules, Known, NextPasts, Step, assess};
use perfval_fleet::metric::{FleetMetric, loss};
use perfval_fleet::prior::{Spread, prior};
use perfval_fleet::reading::{NodePass, NodeSpeeds, Speeds, Warmth};

/// GPUs of a node.
pub const GPUS: usize = 8;
/// Nodes of a rack.
const RACK: usize = 20;
/// Trials of a confirmation.
const CONFIRMATION: usize = 3;
/// Noise of the throughput beyond that of its GPUs.
const ROUTER: f64 = 0.010;

/// Deviations (thousandths of a logarithm) of the common decode speed of two H200s from the mean of their deployment, at
/// equal batch: 31 healthy trials in 4 deployments of tests/fidelity/recorded.jsonl.gz.
const RECORDED_TRIAL: [i16; 31] = [
    -51, -33, -31, -30, -29, -28, -22, -16, -15, -15, -14, -12, -9, -8, -5, -2, 5, 7, 10, 12, 13, 17, 19, 20, 21, 24,
    24, 26, 29, 29, 66,
];
/// Deviations of one H200 beside the other, from the same trials.
const RECORDED_NOISE: [i16; 31] = [
    -32, -25, -24, -18, -16, -11, -11, -9, -8, -8, -6, -6, -5, -5, -2, -1, 0, 0, 1, 3, 4, 6, 9, 12, 12, 14, 16, 16, 19,
    23, 52,
];

/// True spread as in the first row of the simulated designs: one trial varies by 2.0 % in common, and by 1.5 % per GPU.
pub const USUAL: Spread = Spread {
    trial: 0.0175,
    pass: 0.010,
    noise: 0.015,
    gpu: 0.015,
    node: 0.010,
};
/// Half of the noise, and healthy GPUs within 1 %.
pub const QUIET: Spread = Spread {
    trial: 0.0087,
    pass: 0.005,
    noise: 0.007,
    gpu: 0.010,
    node: 0.005,
};
/// As on the noisiest host on record: the decode speed of five starts varied by 7 % (docs/evidence/silicon.md).
pub const ROUGH: Spread = Spread {
    trial: 0.036,
    pass: 0.060,
    ..USUAL
};

/// Word of the page for a spread.
pub fn word(spread: Spread) -> &'static str {
    if spread == QUIET {
        "quiet"
    } else if spread == ROUGH {
        "rough"
    } else {
        "usual"
    }
}

/// Shape of the noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Gaussian,
    /// Student's t with 3 degrees, with the same standard deviation.
    Heavy,
    /// Trials and single GPUs are drawn from recorded ones; their size is the recorded one.
    Recorded,
}

impl Shape {
    pub const ALL: [Self; 3] = [Self::Gaussian, Self::Heavy, Self::Recorded];
}

/// Fault of a node in one pass, with its loss in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    /// Its first GPU is slow.
    Gpu(f64),
    /// All its GPUs are slow.
    Node(f64),
    /// All its GPUs are slow because the machine is cold.
    Cold(f64),
}

/// Source of random numbers with a fixed seed.
#[derive(Clone)]
pub struct Dice {
    random: fastrand::Rng,
    shape: Shape,
}

impl Dice {
    pub fn new(seed: u64, shape: Shape) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            shape,
        }
    }

    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random.f64()
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.random.usize(..limit)
    }

    fn gauss(&mut self) -> f64 {
        (-2.0 * (1.0 - self.random.f64()).ln()).sqrt() * (std::f64::consts::TAU * self.random.f64()).cos()
    }

    fn noise(&mut self, deviation: f64, recorded: Option<&[i16]>) -> f64 {
        match (self.shape, recorded) {
            (Shape::Heavy, _) => {
                let squares: f64 = (0..3).map(|_| self.gauss().powi(2)).sum();
                // The variance of t with 3 degrees is 3, and squares / 3 divides it.
                deviation * self.gauss() / squares.sqrt()
            }
            (Shape::Recorded, Some(values)) => f64::from(values[self.below(values.len())]) / 1000.0,
            _ => deviation * self.gauss(),
        }
    }
}

#[derive(Clone)]
struct Truth {
    name: String,
    node: f64,
    gpus: [f64; GPUS],
}

/// Fleet of one stratum, and what is stored about it.
#[derive(Clone)]
pub struct Fleet {
    nodes: Vec<Truth>,
    spread: Spread,
    pub dice: Dice,
    pasts: BTreeMap<String, BTreeMap<FleetMetric, NextPasts>>,
    pub rules: FleetRules,
}

/// A pass with its confirmations.
pub struct Passed {
    pub assessment: Assessment,
    /// Trials of all nodes.
    pub trials: usize,
}

impl Fleet {
    pub fn new(nodes: usize, spread: Spread, shape: Shape, seed: u64) -> Self {
        let mut dice = Dice::new(seed, shape);
        let truth = |at: usize, dice: &mut Dice| Truth {
            name: name(at),
            node: dice.noise(spread.node, None),
            gpus: std::array::from_fn(|_| dice.noise(spread.gpu, None)),
        };
        Self {
            nodes: (0..nodes).map(|at| truth(at, &mut dice)).collect(),
            spread,
            dice,
            pasts: BTreeMap::new(),
            rules: FleetRules::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if a node, or a GPU of it, is at least 2 % slower than its peers without a fault, as the tails of healthy speeds
    /// are. A report of that is right.
    pub fn is_slower_than_peers(&self, node: &str, gpu: Option<&str>) -> bool {
        let whole = |truth: &Truth| truth.node + trimmed_mean(&truth.gpus).unwrap_or_default();
        let Some(truth) = self.nodes.iter().find(|truth| truth.name == node) else {
            return false;
        };
        let own = gpu.and_then(|uuid| uuid.rsplit('-').next()?.parse::<usize>().ok());
        let (speed, others): (f64, Vec<f64>) = if let Some(own) = own {
            let others = (0..GPUS).filter(|other| *other != own);
            (truth.gpus[own], others.map(|other| truth.gpus[other]).collect())
        } else {
            // Healthy nodes of every fleet lie around 0.
            (whole(truth), vec![0.0])
        };
        trimmed_mean(&others).is_some_and(|centre| speed - centre <= -loss(2.0))
    }

    /// Healthy passes that are learned from.
    pub fn learn(mut self, passes: usize) -> Self {
        for _ in 0..passes {
            self.pass(&|_| Fault::None);
        }
        self
    }

    /// One trial of every node, then three in a new deployment of each suspicious one. Stores what it learned.
    pub fn pass(&mut self, fault: &dyn Fn(usize) -> Fault) -> Passed {
        let all: Vec<usize> = (0..self.nodes.len()).collect();
        let screen = self.measure(&all, 1, fault);
        let known = Known::new(prior("NVIDIA-H100-80GB-HBM3").spread);
        let mut assessment = assess(&self.rules, &known, &screen, &BTreeMap::new());
        let steps = all
            .iter()
            .copied()
            .filter(|at| assessment.nodes[&name(*at)].step == Step::Confirm);
        let again: Vec<usize> = steps.collect();
        if !again.is_empty() {
            let fresh = self.measure(&again, CONFIRMATION, fault);
            assessment = assess(&self.rules, &known, &screen, &fresh);
        }
        for (name, node) in &assessment.nodes {
            if !node.pasts.is_empty() {
                self.pasts.insert(name.clone(), node.pasts.clone());
            }
        }
        Passed {
            trials: all.len() + CONFIRMATION * again.len(),
            assessment,
        }
    }

    /// One deployment on each of these nodes.
    pub fn measure(
        &mut self,
        nodes: &[usize],
        trials: usize,
        fault: &dyn Fn(usize) -> Fault,
    ) -> BTreeMap<String, NodePass> {
        nodes
            .iter()
            .map(|at| (name(*at), self.measure_node(*at, trials, fault(*at))))
            .collect()
    }

    fn measure_node(&mut self, at: usize, trials: usize, fault: Fault) -> NodePass {
        let (spread, truth) = (self.spread, self.nodes[at].clone());
        let (whole, first) = match fault {
            Fault::None => (0.0, 0.0),
            Fault::Gpu(percent) => (0.0, loss(percent)),
            Fault::Node(percent) | Fault::Cold(percent) => (loss(percent), 0.0),
        };
        let deployment = truth.node - whole + self.dice.noise(spread.pass, None);
        let mut decode = vec![Vec::new(); GPUS];
        let mut throughput = Vec::new();
        for _ in 0..trials {
            let common = deployment + self.dice.noise(spread.trial, Some(&RECORDED_TRIAL));
            let mut sum = 0.0;
            for (gpu, speeds) in decode.iter_mut().enumerate() {
                let slow = if gpu == 0 { first } else { 0.0 };
                let noise = self.dice.noise(spread.noise, Some(&RECORDED_NOISE));
                let speed = 100.0 * (common + truth.gpus[gpu] + noise - slow).exp();
                sum += speed;
                speeds.push(speed);
            }
            throughput.push(200.0 * sum * self.dice.noise(ROUTER, None).exp());
        }
        let pasts = self.pasts.get(&truth.name);
        let past = |metric| pasts.and_then(|pasts| pasts.get(&metric)).cloned().unwrap_or_default();
        let known = past(FleetMetric::DecodeSpeed);
        let gpus = decode.into_iter().enumerate().map(|(gpu, trials)| {
            let uuid = format!("GPU-{at:04}-{gpu}");
            let past = known.gpus.get(&uuid).copied().unwrap_or_default();
            (uuid, Speeds { trials, past })
        });
        let decode = NodeSpeeds {
            gpus: gpus.collect(),
            whole: Speeds {
                trials: Vec::new(),
                past: known.whole,
            },
        };
        let throughput = NodeSpeeds {
            gpus: BTreeMap::new(),
            whole: Speeds {
                trials: throughput,
                past: past(FleetMetric::Throughput).whole,
            },
        };
        NodePass {
            group: Some(format!("rack-{}", at / RACK)),
            warmth: if matches!(fault, Fault::Cold(_)) {
                Warmth::Cold
            } else {
                Warmth::Warm
            },
            missed_gate: false,
            metrics: [
                (FleetMetric::DecodeSpeed, decode),
                (FleetMetric::Throughput, throughput),
            ]
            .into(),
        }
    }
}

pub fn name(at: usize) -> String {
    format!("node-{at:04}")
}

/// UUID of the GPU that [`Fault::Gpu`] makes slow.
pub fn slow_gpu(at: usize) -> String {
    format!("GPU-{at:04}-0")
}
