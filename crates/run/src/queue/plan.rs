//! One plan for the whole queue.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::time::Duration;

use perfval_api::{Allocation, PerfValidationSpec};
use perfval_sizing::inventory::CacheVolume;
use perfval_sizing::{Granted, HeldNodes, Sizing};

use super::answer::{NodesOfRuns, SizingInQueue};
use super::{Contender, Line, PackedSpec, QueuePlace, Turn};

/// Most earlier runs whose names are in a message.
const NAMED: usize = 3;
/// Nodes that one plan gives out. With a thousand free nodes and as many runs the last of them would wait for the
/// first until all are sized; the next plan continues, and the runs that have a node by then are not in it any more.
const GIVEN: usize = 100;

/// Plans for the whole queue, in order. `volume_of` returns the volume of a run's model cache, if its place is known.
/// `size` sizes one run, given the nodes of the others and the resources of those in its namespace.
pub fn plan<'l, 'v>(
    line: &'l Line,
    volume_of: impl Fn(&Contender) -> Option<&'v CacheVolume>,
    mut size: impl FnMut(&Contender, &PerfValidationSpec, &HeldNodes, &[Granted<'_>]) -> Sizing,
) -> Vec<(&'l Contender, Turn)> {
    let mut in_order: Vec<&Contender> = line.runs.iter().collect();
    // Who has a node already is served before all that wait: a later run may have got it while an earlier one was not
    // yet ready for GPUs, and gives it back like any other.
    in_order.sort_by_key(|run| (run.wants.is_some(), &run.position));
    // Specs of the runs that use resources. All others are unpacked only while they are sized.
    let specs: Vec<OnceCell<Box<PerfValidationSpec>>> = vec![OnceCell::new(); in_order.len()];
    let mut nodes = NodesOfRuns::default();
    for run in &in_order {
        if let (Some(held), Some(hold)) = (run.keeps(), &run.holds) {
            nodes.add(held, hold.at_work);
        }
    }
    let mut granted: HashMap<&str, Vec<Granted<'_>>> = HashMap::new();
    // Refusals hold for equal questions: with more nodes taken, the same question has the same answer. A thousand equal runs
    // are sized once.
    let mut refused: HashMap<Question<'_>, Vec<(Option<&CacheVolume>, SizingInQueue)>> = HashMap::new();
    let mut ahead = Ahead::default();
    let mut given = 0;
    let mut turns = Vec::new();
    for (run, kept) in in_order.into_iter().zip(&specs) {
        let Some(wish) = &run.wants else {
            let Some(holds) = &run.holds else { continue };
            if let Some(uses) = &holds.uses
                && let Some(spec) = uses.spec.unpack()
            {
                let spec = kept.get_or_init(|| Box::new(spec));
                let others = granted.entry(&run.namespace).or_default();
                others.push(uses.granted(spec, holds.at_work));
            }
            if holds.at_work {
                ahead.add(run, true);
            }
            continue;
        };
        if given == GIVEN {
            let place = QueuePlace {
                not_sized: true,
                ..ahead.place(line.usual, MORE.to_owned())
            };
            turns.push((run, Turn::Queued(place)));
            ahead.add(run, false);
            continue;
        }
        let question = (run.namespace.as_str(), &wish.spec);
        let volume = volume_of(run);
        let mut alike = refused.get(&question).into_iter().flatten();
        let (answer, spec) = if let Some((_, known)) = alike.find(|(known, _)| *known == volume) {
            (known.clone(), None)
        } else {
            let granted = granted.get(run.namespace.as_str()).map_or(&[][..], Vec::as_slice);
            let spec = wish.spec.unpack();
            let answer = spec.as_ref().map_or_else(SizingInQueue::unreadable, |spec| {
                SizingInQueue::new(&nodes, granted, ahead.at_work > 0, |held, granted| {
                    size(run, spec, held, granted)
                })
            });
            (answer, spec)
        };
        turns.push((run, ahead.turn(&answer, line.usual)));
        ahead.add(run, matches!(answer.sizing, Sizing::Chosen(_)));
        let Some(spec) = spec else { continue };
        if let Sizing::Chosen(plan) = answer.sizing {
            given += 1;
            nodes.add(run.on(&plan.node), true);
            granted.entry(&run.namespace).or_default().push(Granted {
                spec: kept.get_or_init(|| Box::new(spec)),
                gpus: plan.gpus,
                by_claims: plan.allocation == Allocation::Dra,
                pods: None,
                creates: true,
                at_work: true,
            });
        } else {
            refused.entry(question).or_default().push((volume, answer));
        }
    }
    turns
}

/// Message for a run that no plan has come to yet.
const MORE: &str = "the runs ahead are given their nodes first";

/// Namespace and spec of a run, on which its answer depends besides the volume of its model cache and what others hold.
type Question<'a> = (&'a str, &'a PackedSpec);

/// The runs before one in the queue.
#[derive(Default)]
struct Ahead {
    count: i64,
    at_work: i64,
    named: Vec<String>,
}

impl Ahead {
    fn add(&mut self, run: &Contender, at_work: bool) {
        self.count += 1;
        self.at_work += i64::from(at_work);
        if self.named.len() < NAMED {
            self.named.push(run.full_name());
        }
    }

    /// The turn of a run. It is in the queue only if it waits for a run at work; a wait for kept runs has a time limit.
    fn turn(&self, answer: &SizingInQueue, usual: Option<Duration>) -> Turn {
        match &answer.sizing {
            Sizing::Wait { message, .. } if answer.waits_for_work => Turn::Queued(self.place(usual, message.clone())),
            sizing => Turn::Sized(sizing.clone()),
        }
    }

    fn place(&self, usual: Option<Duration>, message: String) -> QueuePlace {
        QueuePlace {
            ahead: self.count,
            behind: self.named.clone(),
            estimate: usual.filter(|_| self.at_work > 0).map(|usual| {
                let rounds = u32::try_from((self.count + self.at_work - 1) / self.at_work).unwrap_or(u32::MAX);
                usual.saturating_mul(rounds)
            }),
            message,
            not_sized: false,
        }
    }
}
