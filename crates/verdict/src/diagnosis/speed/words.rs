//! Sentences about decode speeds.

use rust_decimal::Decimal;

use super::{Compared, Slow, SpeedSpread, any_slow, compared, slow};
use crate::diagnosis::cause::{Cause, EVIDENCE, Explained};
use crate::diagnosis::peers::{Worker, balanced};
use crate::gate::show;
use crate::workers::WorkerSummary;

/// Slow workers that are described one by one; more of them share one sentence.
const EACH: usize = 2;
/// Slow workers that such a sentence lists if it is too long with all of them.
const LISTED: usize = 3;

/// Description of each slow worker; `None` if there is none.
pub fn slower(compared: &[Compared]) -> Option<String> {
    let slow = slow(compared);
    match slow.as_slice() {
        [] => None,
        few if few.len() <= EACH => {
            let texts: Vec<String> = few.iter().map(|(worker, slow)| in_words(worker, slow)).collect();
            Some(texts.join("; "))
        }
        many => Some(together(many, compared.len())),
    }
}

fn together(slow: &[(&Compared, Slow)], all: usize) -> String {
    let percent = |one: Option<&(&Compared, Slow)>| one.map_or(Decimal::ZERO, |(_, slow)| slow.percent);
    let (least, most) = (percent(slow.first()), percent(slow.last()));
    let whose = if slow.iter().any(|(_, slow)| slow.relative_to_fastest) {
        "the fastest worker's"
    } else {
        "their peers'"
    };
    let percent = if least == most {
        show(least)
    } else {
        format!("{} to {}", show(least), show(most))
    };
    let named: Vec<String> = slow.iter().map(|(worker, _)| gpu_or_name(worker)).collect();
    let slower = format!(
        "{} of {all} workers decode at {percent} % of {whose} speed: ",
        slow.len()
    );
    let text = slower.clone() + &named.join(", ");
    if text.len() <= EVIDENCE {
        return text;
    }
    let listed: Vec<String> = named.iter().take(LISTED).cloned().collect();
    let more = match named.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{slower}{}{more}", listed.join(", "))
}

/// UUIDs of a worker's GPUs: they are what a person looks for, and five of eight names do not fit.
fn gpu_or_name(worker: &Compared) -> String {
    if worker.uuids.is_empty() {
        return format!("{}{}", worker.name, worker.gpu);
    }
    worker.uuids.join(" and ")
}

/// Description of the slowest worker, where its trial is too uneven to call it slower beyond doubt.
pub fn slowest(compared: &[Compared]) -> Option<String> {
    let worker = compared.iter().min_by_key(|compared| compared.peers.percent)?;
    let slow = Slow {
        at: 0,
        percent: worker.peers.percent,
        relative_to_fastest: false,
    };
    let seen = in_words(worker, &slow);
    Some(format!(
        "{seen}; the trial was too uneven to be sure that it differs from its peers"
    ))
}

/// Evidence that a gate is missed by more than the slowest worker explains, even if all others waited for it: `below` is the
/// distance of a rate from its gate (percent).
pub fn unexplained(compared: &[Compared], below: Decimal) -> Option<String> {
    let (worker, slow) = slow(compared).into_iter().next()?;
    let explains = Decimal::ONE_HUNDRED - slow.percent + worker.peers.within;
    (below > explains).then(|| {
        format!(
            "a gate is missed by {} %, of which a worker at {} % ± {} % of {} speed explains {} % at most: what all workers \
             share is slow too",
            show(below.round_dp(1)),
            show(slow.percent),
            show(worker.peers.within),
            reference(&slow),
            show(explains)
        )
    })
}

/// Speed with which a worker's is compared.
fn reference(slow: &Slow) -> &'static str {
    if slow.relative_to_fastest {
        "the fastest worker's"
    } else {
        "its peers'"
    }
}

fn in_words(worker: &Compared, slow: &Slow) -> String {
    let trials = match worker.trials {
        1 => String::new(),
        trials => format!(" over {trials} trials"),
    };
    format!(
        "worker {}{} decodes at {} % ± {} % of {} speed{trials}: {} ms from token to token with {} requests at a time",
        worker.name,
        worker.gpu,
        show(slow.percent),
        show(worker.peers.within),
        reference(slow),
        show(worker.token_ms),
        show(worker.batch)
    )
}

/// Reason why several workers are not compared with each other; `None` if they are, or if no worker was sampled.
pub fn uncompared(loads: &[WorkerSummary]) -> Option<Explained> {
    let (count, silent) = (loads.len(), loads.iter().filter(|load| load.samples == 0).count());
    if count < 2 || silent == count || SpeedSpread::new(loads).is_some() {
        return None;
    }
    let (cause, why) = if silent > 0 {
        (
            Cause::WorkersNotSampled,
            "not every worker answered on its metrics port",
        )
    } else if loads.iter().any(|load| load.speed.is_some()) {
        (
            Cause::WorkersNotCompared,
            "they were seen at work together in fewer than 4 windows of 2 s",
        )
    } else {
        (
            Cause::WorkersNotCompared,
            "their engines do not report the time between tokens",
        )
    };
    let text = format!("the speeds of {count} workers were not compared: {why}; a slow GPU would not have been named");
    Some((cause, text))
}

/// Evidence that no worker stands out, with its figures; `None` if one does, or without speeds.
pub fn alike(workers: &[Worker<'_>]) -> Option<String> {
    let count = workers.len();
    match SpeedSpread::new(workers.iter().map(|worker| worker.load)) {
        Some(_) if any_slow(&compared(workers, &[])) => None,
        Some(spread) => {
            let named = spread.detectable.map_or(String::new(), |percent| {
                format!("; a GPU {} % slower would have been named", show(percent))
            });
            let widest = show(spread.widest);
            Some(format!(
                "all {count} workers decode within {widest} % of their peers' speed{named}"
            ))
        }
        None if count == 1 => Some("there is one worker, and so none to compare it with".to_owned()),
        None => balanced(workers).then(|| {
            format!("all {count} workers served within a factor of 2 of each other; their speeds were not compared")
        }),
    }
}
