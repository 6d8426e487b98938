//! Ten runs and one node: all are served, one by one.

use perfval_api::{Phase, Verdict};
use perfval_run::queue::Contender;
use perfval_run::time;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::machine::story::Story;

const GPUS: usize = 8;

/// Runs that share one world: what one holds, the others see.
struct Crowd {
    stories: Vec<Story>,
    /// Runs by number, in the order in which they were deployed.
    served: Vec<usize>,
}

impl Crowd {
    /// Runs that were all asked for in the same second, in the order of their uids.
    fn of(specs: impl IntoIterator<Item = Value>) -> Self {
        let story = |(number, spec): (usize, Value)| {
            let mut story = Story::with(spec);
            story.object.metadata.uid = Some(format!("u-{number:02}"));
            story.object.metadata.name = Some(format!("run-{number}"));
            story.object.metadata.creation_timestamp = Some(time::to_kubernetes(story.now));
            story
        };
        Self {
            stories: specs.into_iter().enumerate().map(story).collect(),
            served: Vec::new(),
        }
    }

    fn contenders(&self, number: usize) -> Vec<Contender> {
        let others = self.stories.iter().enumerate().filter(|(other, _)| *other != number);
        others
            .filter_map(|(_, other)| {
                let now = self.stories[number].now;
                Contender::new(&other.object.metadata, &other.object.spec, &other.status(), true, now)
            })
            .collect()
    }

    fn step(&mut self, number: usize) {
        let deployed = self.stories.iter().filter(|story| story.deployed).count();
        let others = self.contenders(number);
        let story = &mut self.stories[number];
        story.free = GPUS - 2 * (deployed - usize::from(story.deployed));
        story.others = others;
        let before = story.phase();
        story.step();
        if before != Some(Phase::Deploying) && story.phase() == Some(Phase::Deploying) {
            self.served.push(number);
        }
        let holders = self.stories.iter().filter(|story| story.deployed);
        assert!(holders.count() <= 1, "two runs at once on one node");
    }

    fn skip(&mut self, number: usize) {
        self.stories[number].wait(1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn runs_asked_for_at_once_are_served_in_order_and_all_pass(lots in proptest::collection::vec(any::<u16>(), 1..40)) {
        // No time for GPUs at all: waiting in the queue costs none of it.
        let mut crowd = Crowd::of((0..10).map(|_| json!({"timeouts": {"sizing": "0s"}})));
        let mut missed = [0; 10];
        for lot in lots.iter().cycle().take(2000) {
            if crowd.stories.iter().all(|story| story.phase() == Some(Phase::Completed)) {
                break;
            }
            // Some are looked at late, as by a busy operator, but none so late that it loses its turn on its way.
            for number in 0..10 {
                let number = (number + usize::from(*lot)) % 10;
                if (lot >> number) & 1 == 1 && missed[number] < 2 {
                    missed[number] += 1;
                    crowd.skip(number);
                } else {
                    missed[number] = 0;
                    crowd.step(number);
                }
            }
        }
        let verdicts: Vec<_> = crowd.stories.iter().map(|story| (story.verdict(), story.reason())).collect();
        prop_assert!(verdicts.iter().all(|(verdict, _)| *verdict == Some(Verdict::Passed)), "{:?}", verdicts);
        prop_assert_eq!(&crowd.served, &(0..10).collect::<Vec<_>>());
    }
}
