//! Clocks that are apart: that of the operator's machine, those of the scheduler and the controllers, and those of the nodes are
//! a minute ahead of the API server's or behind it, and every run ends as if all were the same.

use std::fmt;

use perfval_testkit::world;

use crate::rig::Rig;
use crate::scenario::{Scenario, all, lagging};
use crate::{each, play, sample};

/// How far a clock is ahead (s).
pub const APART: [i64; 3] = [60, 0, -60];

/// Whose clocks are how far ahead of the API server's (s).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    pub operator: i64,
    pub controllers: i64,
    pub nodes: i64,
}

impl Clocks {
    pub fn set(self, rig: &mut Rig) {
        rig.machine = self.operator;
        rig.world.clocks = world::Clocks {
            controllers: self.controllers,
            nodes: self.nodes,
        };
    }
}

impl fmt::Display for Clocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            operator,
            controllers,
            nodes,
        } = self;
        write!(
            f,
            "operator {operator:+} s, controllers {controllers:+} s, nodes {nodes:+} s"
        )
    }
}

fn every() -> Vec<Clocks> {
    let of = |operator| {
        APART.map(|controllers| {
            APART.map(|nodes| Clocks {
                operator,
                controllers,
                nodes,
            })
        })
    };
    APART.into_iter().flat_map(of).flatten().collect()
}

/// Plays each scenario with so many settings of the clocks, where not all are played.
fn ends_alike(scenarios: &[Scenario], quick: usize) {
    for scenario in scenarios {
        let (_, expected) = play(scenario, |_| {}).expect(scenario.name);
        each(&sample(&every(), quick), |clocks| {
            let at = |why: String| format!("{}: {clocks}: {why}", scenario.name);
            let (_, ending) = play(scenario, |rig| clocks.set(rig)).map_err(at)?;
            ending.matches(&expected).map_err(at)
        });
    }
}

#[test]
fn a_run_ends_alike_under_all_clocks_of_machines() {
    ends_alike(&sample(&all(), 4), 2);
}

#[test]
fn a_slow_cluster_is_waited_for_under_all_clocks_of_machines() {
    ends_alike(&lagging(), 3);
}
