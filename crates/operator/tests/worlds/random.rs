//! Whatever users, nodes, Dynamo and the operator's own host do: laws that hold in every world.

mod edits;
mod happening;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::json;

use crate::clocks::{APART, Clocks};
use crate::rig::Rig;
use crate::{laws, replay, seed, timeless};
use happening::{Happening, happen, happening, heal};

/// Worlds of a quick check; `PERFVAL_WORLDS=1000` plays so many.
const WORLDS: u32 = 12;
/// The sum of all limits of a run is below 90 minutes, and two may follow each other on two nodes.
const REST: Duration = Duration::from_hours(4);

/// Objects of every world.
pub const NAMES: [&str; 2] = ["first", "second"];

fn worlds() -> u32 {
    std::env::var("PERFVAL_WORLDS").map_or(WORLDS, |count| count.parse().unwrap_or(500))
}

async fn live(clocks: Clocks, happenings: &[Happening]) -> Result<(), String> {
    let mut rig = Rig::new(&["v1alpha1", "v1beta1"], "1.4.2");
    clocks.set(&mut rig);
    rig.start();
    rig.apply(NAMES[0], &spec());
    for what in happenings {
        happen(&mut rig, what).await;
    }
    heal(&mut rig);
    // It rests earlier in most worlds.
    let rested = rig
        .until(REST, |rig| NAMES.iter().all(|name| laws::rests(rig, name)))
        .await;
    // What a removal that timed out is looked for again within: nothing tells it that it may read again.
    rig.wait(Duration::from_mins(6)).await;
    laws::always(&rig)?;
    laws::at_rest(&rig, &NAMES)?;
    rested.map_err(|why| {
        let objects: Vec<_> = NAMES
            .iter()
            .filter_map(|name| rig.get(name))
            .map(|object| object["status"].clone())
            .collect();
        format!(
            "a run never ended: {why}\n{}",
            serde_json::to_string_pretty(&objects).unwrap_or_default()
        )
    })
}

fn clocks() -> impl Strategy<Value = Clocks> {
    let one = || proptest::sample::select(APART.to_vec());
    (one(), one(), one()).prop_map(|(operator, controllers, nodes)| Clocks {
        operator,
        controllers,
        nodes,
    })
}

pub fn spec() -> serde_json::Value {
    json!({
        "model": {"name": "lab/tiny"},
        "workload": {"dynamo": {"image": "localhost/dynamo:1.4.2"}},
        "trials": {"max": 4},
        "gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1000"}],
    })
}

#[test]
fn laws_hold_in_every_world() {
    let mut runner = TestRunner::new(Config {
        cases: worlds(),
        max_shrink_iters: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed()),
        ..Config::default()
    });
    let sequences = (clocks(), proptest::collection::vec(happening(), 1..16));
    let (began, played) = (std::time::Instant::now(), AtomicUsize::new(0));
    let outcome = runner.run(&sequences, |(clocks, happenings)| {
        played.fetch_add(1, Ordering::Relaxed);
        timeless(live(clocks, &happenings)).map_err(TestCaseError::fail)
    });
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("{} random worlds in {seconds:.1} s", played.load(Ordering::Relaxed));
    if let Err(broken) = outcome {
        panic!("{broken}\n{}", replay());
    }
}
