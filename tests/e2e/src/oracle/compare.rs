//! Sizing compared with the scheduler.

use std::collections::BTreeSet;
use std::fmt;

use perfval_sizing::Plan;

use super::ask::{Answer, Answers, Asked};
use super::schedule::Scheduled;

/// Obstacles by which sizing says that no worker fits, as the scheduler has to confirm. All others say that sizing does not
/// know, or that a person ruled the node out.
const COUNTED_AS_NONE: [&str; 10] = [
    "NoGpus",
    "OutOfService",
    "NotTolerated",
    "ClassMissing",
    "NothingPublished",
    "NotOfClass",
    "TooFew",
    "NotWhole",
    "NotEnoughFree",
    "NoRoom",
];
/// Obstacles by which the scheduler keeps workers away as well, unless they tolerate everything.
const KEPT_AWAY: [&str; 2] = ["Cordoned", "NotReady"];

/// One node, judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The node.
    pub node: String,
    /// Features that bear on it.
    pub features: BTreeSet<&'static str>,
    /// What sizing said, for people.
    pub said: String,
    /// GPUs that sizing counted.
    pub counted: i64,
    /// How it compares.
    pub outcome: Outcome,
}

/// How an answer compares with what the scheduler did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Exactly as many workers were bound.
    Agrees,
    /// Sizing refused for a reason that is really there.
    Refused(String),
    /// They differ, and how.
    Differs(Difference),
}

/// A difference between sizing and the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// More workers than counted were bound: sizing wastes GPUs, or counts another's.
    TooFew,
    /// Fewer workers than counted were bound: a run would wait for a GPU that never comes.
    TooMany { bound: usize },
    /// The frontend or the load generator found no room next to the workers.
    NoRoomForOthers,
    /// Sizing refused, and nothing about the node explains it.
    Unexplained(String),
    /// Sizing counted where nothing can be counted.
    ShouldRefuse,
    /// The scheduler had not decided in time.
    Undecided,
    /// The node that sizing chose is not the best of those it described.
    WrongChoice,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew => f.write_str("one worker more was bound"),
            Self::TooMany { bound } => write!(f, "only {bound} workers were bound"),
            Self::NoRoomForOthers => f.write_str("the frontend or the load generator was not bound"),
            Self::Unexplained(reason) => write!(f, "nothing explains {reason}"),
            Self::ShouldRefuse => f.write_str("nothing can be counted there"),
            Self::Undecided => f.write_str("the scheduler did not decide in time"),
            Self::WrongChoice => f.write_str("another node has more GPUs, or as many and an earlier name"),
        }
    }
}

/// A comparison that needs no scheduler, if the answer is such a one.
pub fn without_scheduler(asked: &Asked) -> Option<Outcome> {
    let probe = &asked.probe;
    match &asked.answer {
        Answer::Plan(_) if !probe.refusals.is_empty() => Some(Outcome::Differs(Difference::ShouldRefuse)),
        Answer::Plan(_) => None,
        Answer::None(obstacle, _)
            if [&probe.refusals, &probe.excuses]
                .into_iter()
                .flatten()
                .any(|why| why == obstacle) =>
        {
            Some(Outcome::Refused(obstacle.clone()))
        }
        Answer::None(obstacle, _) => {
            let counted = [&COUNTED_AS_NONE[..], &KEPT_AWAY].concat().contains(&obstacle.as_str());
            (!counted).then(|| Outcome::Differs(Difference::Unexplained(obstacle.clone())))
        }
    }
}

/// The comparison of an answer with what the scheduler did.
pub fn with_scheduler(asked: &Asked, scheduled: &Scheduled) -> Outcome {
    let Scheduled {
        workers,
        bound,
        others_bound,
        open,
    } = *scheduled;
    let expected = workers - 1;
    if expected == 0 && !others_bound {
        // No room even for the pods other than the workers: no run there, as sizing says.
        return if open > 0 {
            Outcome::Differs(Difference::Undecided)
        } else {
            Outcome::Agrees
        };
    }
    if bound > expected {
        return Outcome::Differs(Difference::TooFew);
    }
    if open > 0 {
        return Outcome::Differs(Difference::Undecided);
    }
    if bound < expected {
        return Outcome::Differs(Difference::TooMany { bound });
    }
    match &asked.answer {
        Answer::Plan(_) if !others_bound => Outcome::Differs(Difference::NoRoomForOthers),
        _ => Outcome::Agrees,
    }
}

/// Whether the node chosen for the whole cluster is the one with the most GPUs, and among equals the first by name.
pub fn choice(answers: &Answers) -> Option<Judged> {
    let plans = answers.nodes.iter().filter_map(|asked| match &asked.answer {
        Answer::Plan(plan) => Some(&**plan),
        Answer::None(..) => None,
    });
    let best = plans.min_by_key(|plan| (-plan.gpus, plan.node.clone()));
    let key = |plan: &Plan| (plan.node.clone(), plan.gpus);
    if best.map(key) == answers.chosen.as_ref().map(key) {
        return None;
    }
    let node = |plan: Option<&Plan>| plan.map_or("none".to_owned(), |plan| format!("{} ({})", plan.node, plan.gpus));
    Some(Judged {
        node: best.map(|plan| plan.node.clone()).unwrap_or_default(),
        features: ["choice of a node"].into(),
        said: format!("chose {}, not {}", node(answers.chosen.as_ref()), node(best)),
        counted: 0,
        outcome: Outcome::Differs(Difference::WrongChoice),
    })
}

impl Judged {
    /// A judged answer.
    pub fn new(asked: &Asked, outcome: Outcome) -> Self {
        let (counted, said) = match &asked.answer {
            Answer::Plan(plan) => (
                plan.gpus,
                format!("{} of {} GPUs by {}", plan.gpus, plan.node_gpus, plan.allocation),
            ),
            Answer::None(obstacle, message) => (0, format!("{obstacle}: {message}")),
        };
        Self {
            node: asked.probe.node.clone(),
            features: asked.probe.features.clone(),
            said,
            counted,
            outcome,
        }
    }

    /// The same under the cluster's own name.
    #[must_use]
    pub fn renamed(self, from: &str, to: &str) -> Self {
        Self {
            node: self.node.replace(from, to),
            said: self.said.replace(from, to),
            ..self
        }
    }

    /// How it differs, if it does.
    pub fn difference(&self) -> Option<&Difference> {
        match &self.outcome {
            Outcome::Differs(difference) => Some(difference),
            _ => None,
        }
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, said, .. } = self;
        match &self.outcome {
            Outcome::Agrees => write!(f, "{node}: sizing says {said}, and so does the scheduler"),
            Outcome::Refused(obstacle) => write!(f, "{node}: refused, {obstacle}"),
            Outcome::Differs(difference) => write!(f, "{node}: sizing says {said}, but {difference}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_the_scheduler_left_open_are_no_agreement() {
        let cluster = crate::oracle::cluster(1);
        let asked = Asked {
            probe: cluster.probes[0].clone(),
            object: cluster.validation("perf", None).expect("a spec"),
            answer: Answer::None("NoRoom".into(), String::new()),
        };
        let scheduled = |open| Scheduled {
            workers: 1,
            bound: 0,
            others_bound: false,
            open,
        };
        assert_eq!(with_scheduler(&asked, &scheduled(0)), Outcome::Agrees);
        let undecided = Outcome::Differs(Difference::Undecided);
        assert_eq!(with_scheduler(&asked, &scheduled(1)), undecided);
    }
}
