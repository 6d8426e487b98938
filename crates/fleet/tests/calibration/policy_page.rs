//! Section of the page about a policy.

use crate::cases::Found;
use crate::page::TRIALS;
use crate::policy_cases::{self as cases, Healthy, Loss};
use crate::table::Page;
use crate::tally::{Goal, Tally};
use crate::world::{Fault, QUIET, ROUGH, Shape, USUAL, word};
use perfval_fleet::prior::Spread;

/// Passes in which a drift of 3 % should be reported, in the median.
const DRIFT: usize = 8;

impl Page {
    /// Plays the cases of a policy.
    pub fn policy(&mut self) {
        self.table(
            "What a policy reports",
            "This is what a `PerfValidationPolicy` decides, pass after pass. It has one run with one trial on each node, one more run with three trials in a\n\
             new deployment on each suspected node, and the statistics in `NodePerformance`. It compares the decode speed alone, without racks and cold\n\
             machines. With the default rule a run has two trials or more, and varies less.\n\n\
             * *Reported* is `Confirmed` or `Actionable`. *Acted* is `Actionable`.\n\
             * **Rough**: as usual, but a trial varies by 7 % in common (6 % of it from the deployment, assumed), as on the noisiest host on record.\n\
             * Losses: 200 nodes, two of them faulty. Healthy fleets: 250 nodes, 40 passes.\n\
             * Cold machines are healthy and lose 5 to 9 %: four beside 36 others.\n\
             * Five nodes drift after 20 healthy passes. Median and largest number of passes; 26 is more than 25. A drift is close to the smallest loss\n\
             \x20 that counts (2 %), so one confirmation seldom shows it.\n\
             * A baseline is off if a tenth of slow nodes (10 %) moves its centre by more than 0.5 %. Nodes beside a baseline have the approved\n\
             \x20 one of 20 other nodes with one run each.\n\n",
        );
        self.section = "policy: ";
        self.policy_losses();
        let usual = Shape::ALL.map(|shape| (shape, USUAL));
        for (shape, spread) in usual
            .into_iter()
            .chain([(Shape::Gaussian, ROUGH), (Shape::Heavy, ROUGH)])
        {
            if !self.plays(shape) {
                continue;
            }
            self.policy_healthy(shape, spread);
            self.policy_three(shape, spread);
        }
        for &shape in self.shapes {
            self.policy_shared(shape);
        }
        for &shape in self.shapes {
            self.policy_baselines(shape);
        }
        if !self.plays(Shape::Gaussian) {
            return;
        }
        for (what, fault) in [("one GPU", Fault::Gpu(3.0)), ("a node", Fault::Node(3.0))] {
            for (fleet, spread) in [("usual", USUAL), ("quiet", QUIET)] {
                let (median, late) = cases::drift(fault, spread);
                self.value(
                    &format!("{what} drifts by 3 %: passes until reported"),
                    fleet,
                    Shape::Gaussian,
                    &format!("{median} / {late}"),
                    &format!("median ≤ {DRIFT}"),
                    median <= DRIFT,
                );
            }
        }
    }

    fn policy_baselines(&mut self, shape: Shape) {
        for nodes in [10, 20, 200] {
            let what = format!("baselines of {nodes} nodes that are off");
            self.row(
                &what,
                "usual",
                shape,
                cases::baselines(nodes, shape),
                Goal::AtMost(0.05),
            );
        }
        for (nodes, words) in [(1, "one node"), (3, "three nodes")] {
            let (wrong, _) = cases::beside_baseline(nodes, shape, Fault::None, 500);
            let what = format!("{words} beside a baseline, healthy: fleets with a false name");
            self.row(&what, "usual", shape, wrong, Goal::AtMost(0.01));
            let (_, found) = cases::beside_baseline(nodes, shape, Fault::Node(10.0), 200);
            let what = format!("{words} beside a baseline, one 10 % slower: reported");
            self.row(&what, "usual", shape, found, Goal::None);
        }
    }

    fn policy_losses(&mut self) {
        let cases = Loss::all().into_iter().filter(|case| self.plays(case.shape));
        let played: Vec<(Loss, Found)> = cases.map(|case| (case, case.play())).collect();
        for (case, found) in &played {
            let what = match case.fault {
                Fault::Gpu(_) => "one GPU",
                _ => "a node",
            };
            self.row(
                &format!("{what} 10 % slower, 5 own runs, reported"),
                case.fleet(),
                case.shape,
                found.reported,
                Goal::Sure(0.99, 0.97),
            );
            self.row("… acted", case.fleet(), case.shape, found.acted, Goal::None);
        }
        for (shape, most) in [(Shape::Gaussian, 0.05), (Shape::Heavy, 0.10), (Shape::Recorded, 0.10)] {
            if !self.plays(shape) {
                continue;
            }
            let sum = |of: fn(&Found) -> Tally| {
                let found = played.iter().filter(|(case, _)| case.shape == shape);
                found.map(|(_, found)| of(found)).fold(Tally::default(), Tally::plus)
            };
            let (wrong, acted) = (sum(|found| found.wrong), sum(|found| found.wrong_acted));
            self.row("reported names that are wrong", "all", shape, wrong, Goal::AtMost(most));
            self.row("acted names that are wrong", "all", shape, acted, Goal::AtMost(0.01));
        }
    }

    fn policy_three(&mut self, shape: Shape, spread: Spread) {
        for (runs, words) in [(0, "three nodes"), (5, "three nodes, 5 own runs")] {
            let (wrong, _) = cases::three(shape, spread, runs, Fault::None, 500);
            let what = format!("{words}, all healthy: fleets with a false name");
            self.row(&what, word(spread), shape, wrong, Goal::AtMost(0.01));
            let (_, found) = cases::three(shape, spread, runs, Fault::Node(10.0), 200);
            let what = format!("{words}, one 10 % slower: reported");
            self.row(&what, word(spread), shape, found, Goal::None);
        }
    }

    fn policy_healthy(&mut self, shape: Shape, spread: Spread) {
        let Healthy {
            acted,
            reported,
            trials,
            poor,
        } = cases::healthy(shape, spread);
        self.row(
            "healthy node-passes that are acted on",
            word(spread),
            shape,
            acted,
            Goal::AtMost(0.0003),
        );
        self.row(
            "healthy node-passes that are reported",
            word(spread),
            shape,
            reported,
            Goal::None,
        );
        self.row(
            "passes whose p-values are called poor",
            word(spread),
            shape,
            poor,
            Goal::None,
        );
        self.value(
            "trials per node and pass",
            word(spread),
            shape,
            &format!("{trials:.2}"),
            &format!("≤ {TRIALS}"),
            trials <= TRIALS,
        );
    }

    fn policy_shared(&mut self, shape: Shape) {
        self.row(
            "all nodes 5 % slower: nodes reported",
            "usual",
            shape,
            cases::shifted(shape),
            Goal::AtMost(0.0003),
        );
        let (acted, others) = cases::racked(shape);
        self.row(
            "a rack 8 % slower: passes that act on a node",
            "usual",
            shape,
            acted,
            Goal::AtMost(0.01),
        );
        self.row("… other nodes reported", "usual", shape, others, Goal::AtMost(0.01));
        let (once, twice) = cases::cold(shape);
        self.row(
            "machines that are cold in one run: reported",
            "usual",
            shape,
            once,
            Goal::AtMost(0.005),
        );
        self.row(
            "machines that are cold in both runs: reported",
            "usual",
            shape,
            twice,
            Goal::None,
        );
    }
}
