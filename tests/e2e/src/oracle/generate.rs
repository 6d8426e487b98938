//! Random clusters. Every feature that changes how many GPUs are free comes up often enough to meet every other one.

mod class;
mod device;
mod holder;
mod node;
mod pod;
mod pool;
mod question;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Cluster, Probe};
use crate::draw::Draw;

/// Everything that one cluster is made with.
struct Workshop {
    draw: Draw,
    id: String,
    /// Driver of the GPUs; the class of whole ones has its name, as NVIDIA's has.
    driver: String,
    /// The extended resource of the GPUs.
    resource: String,
    class: class::Class,
    /// `spec` of the question.
    question: question::Question,
    objects: Vec<Value>,
}

/// What is known of one node while it is made.
struct Site {
    name: String,
    features: BTreeSet<&'static str>,
    refusals: Vec<&'static str>,
    excuses: Vec<&'static str>,
}

impl Site {
    fn has(&mut self, feature: &'static str) {
        self.features.insert(feature);
    }
}

/// The cluster of a seed.
pub fn cluster(seed: u64) -> Cluster {
    let mut draw = Draw::new(seed);
    let id = format!("seed{seed}z");
    let driver = format!("gpu.maker.{id}.example");
    let resource = format!("maker.{id}.example/gpu");
    let shared = draw.chance(6);
    let nodes = if shared {
        draw.between(2, 5)
    } else {
        draw.rather_few(1, 30)
    };
    let class = class::Class::draw(&mut draw);
    let question = question::Question::draw(&mut draw, &driver, &resource);
    let mut workshop = Workshop {
        objects: class.objects(&driver, &resource),
        draw,
        id,
        driver,
        resource,
        class,
        question,
    };
    let mut sites: Vec<Site> = (0..nodes).map(|number| workshop.site(number, shared)).collect();
    if shared {
        workshop.fabric(&mut sites);
    }
    let alone = workshop.taint_rules(&mut sites);
    workshop.runtime_class();
    Cluster {
        seed,
        id: workshop.id,
        spec: workshop.question.spec(),
        objects: workshop.objects,
        probes: sites.into_iter().map(Site::into_probe).collect(),
        shared,
        alone,
    }
}

impl Site {
    fn into_probe(self) -> Probe {
        Probe {
            node: self.name,
            features: self.features,
            refusals: self.refusals,
            excuses: self.excuses,
        }
    }
}
