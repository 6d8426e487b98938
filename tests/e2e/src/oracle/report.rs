//! Agreement, feature by feature.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::compare::{Judged, Outcome};

/// Nodes that were asked about.
#[derive(Clone, Copy, Default)]
struct Tally {
    agree: usize,
    refused: usize,
    differ: usize,
}

/// All nodes of all clusters.
#[derive(Default)]
pub struct Report {
    clusters: usize,
    all: Tally,
    workers: i64,
    zeros: usize,
    refusals: BTreeMap<String, usize>,
    features: BTreeMap<&'static str, Tally>,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Agrees => self.agree += 1,
            Outcome::Refused(_) => self.refused += 1,
            Outcome::Differs(_) => self.differ += 1,
        }
    }
}

impl Report {
    /// Adds a cluster.
    pub fn add(&mut self, judged: &[Judged]) {
        self.clusters += 1;
        for node in judged {
            self.all.count(&node.outcome);
            if node.outcome == Outcome::Agrees {
                self.workers += node.counted;
                self.zeros += usize::from(node.counted == 0);
            }
            if let Outcome::Refused(obstacle) = &node.outcome {
                *self.refusals.entry(obstacle.clone()).or_default() += 1;
            }
            let features: BTreeSet<&'static str> = node.features.clone();
            for feature in features {
                self.features.entry(feature).or_default().count(&node.outcome);
            }
        }
    }

    /// Whether the scheduler did everywhere what sizing said.
    pub fn is_clean(&self) -> bool {
        self.all.differ == 0
    }

    /// Whether enough was compared for the result to mean anything: numbers, zeros and refusals.
    pub fn is_conclusive(&self) -> bool {
        self.workers > 0 && self.zeros > 0 && self.all.refused > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { agree, refused, differ } = self.all;
        let compared = agree + differ;
        let percent = |agree: usize, differ: usize| match agree + differ {
            0 => "-".to_owned(),
            // Rounded down: a difference never shows as 100 %.
            all => format!("{} %", agree * 100 / all),
        };
        writeln!(
            f,
            "{:<34} {:>6} {:>6} {:>7} {:>7} {:>9}",
            "feature", "nodes", "agree", "differ", "refused", "agreement"
        )?;
        for (feature, tally) in &self.features {
            let nodes = tally.agree + tally.differ + tally.refused;
            writeln!(
                f,
                "{feature:<34} {nodes:>6} {:>6} {:>7} {:>7} {:>9}",
                tally.agree,
                tally.differ,
                tally.refused,
                percent(tally.agree, tally.differ)
            )?;
        }
        let reasons: Vec<String> = self
            .refusals
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        writeln!(
            f,
            "refusals, each for a reason that was put there: {}",
            reasons.join(", ")
        )?;
        write!(
            f,
            "{} clusters: {compared} nodes given to the scheduler ({} workers bound, {} nodes with none), {agree} agree, {differ} differ: {}; {refused} refused",
            self.clusters,
            self.workers,
            self.zeros,
            percent(agree, differ)
        )
    }
}
