//! Simulated fleets: true speeds, noise, faults, and measurements.

use perfval_fleet::centre::trimmed_mean;
use perfval_fleet::numbers::loss;
use perfval_fleet::prior::PriorSpread;

/// GPUs of a node.
pub const GPUS: usize = 8;

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
pub const USUAL: PriorSpread = PriorSpread {
    trial: 0.0175,
    pass: 0.010,
    noise: 0.015,
    gpu: 0.015,
    node: 0.010,
};
/// Half of the noise, and healthy GPUs within 1 %.
pub const QUIET: PriorSpread = PriorSpread {
    trial: 0.0087,
    pass: 0.005,
    noise: 0.007,
    gpu: 0.010,
    node: 0.005,
};
/// As on the noisiest host on record: the decode speed of five starts varied by 7 % (docs/evidence/silicon.md).
pub const ROUGH: PriorSpread = PriorSpread {
    trial: 0.036,
    pass: 0.060,
    ..USUAL
};

/// Word of the page for a spread.
pub fn word(spread: PriorSpread) -> &'static str {
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

    /// Draws other numbers from here on, in each branch others. The generator counts, so a branch that only skips numbers would
    /// repeat those of the other branches.
    pub fn branch(&mut self, number: usize) {
        for _ in 0..=number {
            self.random = self.random.fork();
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

/// Fleet of one stratum.
#[derive(Clone)]
pub struct Fleet {
    nodes: Vec<Truth>,
    spread: PriorSpread,
    pub dice: Dice,
    /// Loss (logarithm) that all nodes share.
    pub common: f64,
}

impl Fleet {
    pub fn new(nodes: usize, spread: PriorSpread, shape: Shape, seed: u64) -> Self {
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
            common: 0.0,
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

    /// One deployment on a node: the speeds of each GPU in each trial.
    pub fn measure(&mut self, at: usize, trials: usize, fault: Fault) -> Vec<(String, Vec<f64>)> {
        let (spread, truth) = (self.spread, self.nodes[at].clone());
        let (whole, first) = match fault {
            Fault::None => (0.0, 0.0),
            Fault::Gpu(percent) => (0.0, loss(percent)),
            Fault::Node(percent) => (loss(percent), 0.0),
        };
        let deployment = truth.node - self.common - whole + self.dice.noise(spread.pass, None);
        let mut gpus: Vec<(String, Vec<f64>)> = (0..GPUS)
            .map(|gpu| (format!("GPU-{at:04}-{gpu}"), Vec::new()))
            .collect();
        for _ in 0..trials {
            let common = deployment + self.dice.noise(spread.trial, Some(&RECORDED_TRIAL));
            for (gpu, (_, speeds)) in gpus.iter_mut().enumerate() {
                let slow = if gpu == 0 { first } else { 0.0 };
                let noise = self.dice.noise(spread.noise, Some(&RECORDED_NOISE));
                speeds.push(100.0 * (common + truth.gpus[gpu] + noise - slow).exp());
            }
        }
        gpus
    }
}

pub fn name(at: usize) -> String {
    format!("node-{at:04}")
}

/// UUID of the GPU that [`Fault::Gpu`] makes slow.
pub fn slow_gpu(at: usize) -> String {
    format!("GPU-{at:04}-0")
}

#[test]
fn branches_draw_different_numbers() {
    let drawn = (0..50).flat_map(|number| {
        let mut dice = Dice::new(5100, Shape::Recorded);
        dice.branch(number);
        (0..1000).map(move |_| dice.uniform(0.0, 1.0).to_bits())
    });
    let drawn: std::collections::BTreeSet<u64> = drawn.collect();
    assert_eq!(drawn.len(), 50 * 1000);
}
