//! What may happen in a world, drawn from a seed.

use std::fmt;
use std::time::Duration;

use perfval_api::Phase;

use crate::draw::Draw;

/// Objects of every world.
pub const NAMES: [&str; 2] = ["first", "second"];

/// How a validation turns out if nobody disturbs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It passes.
    Healthy,
    /// Its gate is out of reach.
    Slow,
    /// Its workers end at once.
    Crashing,
    /// Its image does not exist.
    NoImage,
}

/// One thing that happens. The numbers of objects are those of [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A user creates an object that does not exist, with so many GPUs at most.
    Create(usize, Kind, u8),
    /// A user deletes it.
    Delete(usize),
    /// A gate that is met, or not: the same measurement is judged again.
    Gate(usize, bool),
    /// Another number of GPUs: what was measured is worth nothing.
    Gpus(usize, u8),
    /// Something that nothing measured depends on.
    Limit(usize, u8),
    /// Suspended, or resumed.
    Suspend(usize, bool),
    /// What is kept for a post-mortem.
    Keep(usize, bool),
    /// A new run is asked for.
    Rerun(usize, u8),
    /// Somebody deletes an object that a run created, the nth of those that are there.
    DeleteChild(u8),
    /// Somebody labels one.
    LabelChild(u8),
    /// Somebody scales the workers of a deployment.
    ScaleWorkers(u8),
    /// The node takes no pods for so many seconds.
    Cordon(u8),
    /// The operator is killed (SIGKILL), and another is started after so many tenths of a second.
    KillOperator(u8),
    /// The API server is stopped and started.
    RestartApiServer,
    /// etcd is killed and started.
    RestartEtcd,
}

/// What happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The phase that an object has to be in, if any: most of a world's time its objects stand in line.
    pub when: Option<Phase>,
    /// The pause after that.
    pub after: Duration,
    /// What happens then.
    pub what: Happening,
}

/// A seed and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// The seed.
    pub seed: u64,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// Happenings of a world beside the first creation.
const FEWEST: usize = 3;
const MOST: usize = 9;

impl World {
    /// The world of a seed.
    pub fn of(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let (kind, gpus) = (kind(&mut draw), gpus(&mut draw));
        let first = Step {
            when: None,
            after: Duration::ZERO,
            what: Happening::Create(0, kind, gpus),
        };
        let others = draw.between(FEWEST, MOST);
        let others = (0..others).map(|_| Step {
            when: phase(&mut draw),
            after: pause(&mut draw),
            what: happening(&mut draw),
        });
        Self {
            seed,
            steps: std::iter::once(first).chain(others).collect(),
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "world of seed {}:", self.seed)?;
        self.steps.iter().try_for_each(|step| {
            let when = step.when.map_or("", Phase::as_str);
            writeln!(f, "  {when} {:.1} s later: {:?}", step.after.as_secs_f64(), step.what)
        })
    }
}

/// The phases in which a run has something in the cluster, and the short ones around them.
fn phase(draw: &mut Draw) -> Option<Phase> {
    draw.pick(&[
        None,
        None,
        None,
        Some(Phase::Deploying),
        Some(Phase::WaitingForReady),
        Some(Phase::WaitingForReady),
        Some(Phase::Benchmarking),
        Some(Phase::Benchmarking),
        Some(Phase::CleaningUp),
    ])
}

/// A run of the lab takes twenty seconds, and its phases from a tenth of one to ten.
fn pause(draw: &mut Draw) -> Duration {
    let most = draw.pick(&[5, 20, 20, 80]);
    Duration::from_millis(100) * u32::try_from(draw.between(0, most)).unwrap_or_default()
}

fn kind(draw: &mut Draw) -> Kind {
    draw.pick(&[
        Kind::Healthy,
        Kind::Healthy,
        Kind::Healthy,
        Kind::Healthy,
        Kind::Slow,
        Kind::Crashing,
        Kind::NoImage,
    ])
}

fn gpus(draw: &mut Draw) -> u8 {
    draw.pick(&[1, 1, 1, 2])
}

fn happening(draw: &mut Draw) -> Happening {
    use Happening as H;
    let object = draw.pick(&[0, 0, 1]);
    let number = small(draw);
    // Of a hundred.
    match draw.between(0, 99) {
        0..12 => H::Create(object, kind(draw), gpus(draw)),
        12..22 => H::Delete(object),
        22..29 => H::Gate(object, draw.chance(50)),
        29..36 => H::Gpus(object, gpus(draw)),
        36..40 => H::Limit(object, number % 3),
        40..52 => H::Suspend(object, draw.chance(60)),
        52..59 => H::Keep(object, draw.chance(60)),
        59..66 => H::Rerun(object, number % 3),
        66..76 => H::DeleteChild(number),
        76..80 => H::LabelChild(number),
        80..83 => H::ScaleWorkers(number % 4),
        83..86 => H::Cordon(1 + number % 5),
        86..96 => H::KillOperator(number % 30),
        96..98 => H::RestartApiServer,
        _ => H::RestartEtcd,
    }
}

fn small(draw: &mut Draw) -> u8 {
    u8::try_from(draw.between(0, 255)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn a_seed_is_one_world() {
        assert_eq!(World::of(7), World::of(7));
        assert_ne!(World::of(7).steps, World::of(8).steps);
    }

    #[test]
    fn a_hundred_worlds_hold_everything_that_may_happen() {
        let steps: Vec<Step> = (1..=100).flat_map(|seed| World::of(seed).steps).collect();
        let names: BTreeSet<String> = steps
            .iter()
            .map(|step| format!("{:?}", discriminant(&step.what)))
            .collect();
        assert_eq!(names.len(), 15, "{names:?}");
    }
}
