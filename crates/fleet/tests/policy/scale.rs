//! Five thousand nodes.

use perfval_fleet::policy::Suspicion;
use std::time::Instant;

use chrono::TimeDelta;
use serde_json::json;

use crate::{World, ended, node, now, phase, policy};

#[test]
fn five_thousand_nodes_give_the_same_decision_in_any_order() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut world = World::new(&[], &json!({"budgets": [{"nodes": "10%"}]}));
    world
        .policies
        .push(policy("second", &json!({"budgets": [{"nodes": 50}]})));
    for number in 0..5000 {
        let name = format!("gpu-{number:04}");
        let mut node = node(&name);
        node.is_free = random.u8(..) > 20;
        world.nodes.push(node);
        if random.u8(..) > 50 {
            let verdict = ["Passed", "Passed", "Passed", "Failed", "Inconclusive"][random.usize(..5)];
            world.measure(&name, verdict, now() - TimeDelta::minutes(random.i64(0..20_000)));
        }
    }
    let created = world.decide().create;
    assert!(created.len() > 400, "{}", created.len());
    for (number, child) in created.iter().enumerate() {
        let state = match number % 4 {
            0 => phase("Sizing"),
            1 => phase("Benchmarking"),
            2 => ended("Error", now()),
            _ => ended("Passed", now()),
        };
        world.add(child, &state);
    }
    world.now += TimeDelta::minutes(11);
    // Some of the fresh nodes are suspected.
    for (name, status) in world.measured.iter_mut().step_by(7) {
        status.validation.policy = Some("p".to_owned());
        let suspicion = Suspicion {
            measured_at: status.measured_at,
            is_decisive: false,
        };
        world.comparison.suspects.insert(name.clone(), suspicion);
    }
    let began = Instant::now();
    let first = world.decide_all();
    eprintln!("decided in {:?}", began.elapsed());
    assert!(!first[0].create.is_empty() && !first[0].delete.is_empty());
    for _ in 0..3 {
        random.shuffle(&mut world.nodes);
        random.shuffle(&mut world.validations);
        world.policies.reverse();
        let mut again = world.decide_all();
        if world.policies[0].metadata.name.as_deref() == Some("second") {
            again.reverse();
        }
        assert!(again == first, "another order gives another decision");
    }
}
