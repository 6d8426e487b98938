//! `diff`: two runs beside each other. It says how far numbers of a run lie apart by themselves, and what differs in what
//! they ran on; whether that is good or bad say the gates.

use std::collections::BTreeSet;

use perfval_api::{Environment, TrialStatus, quantity};
use perfval_verdict::environment::differences;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::args::DiffArgs;
use crate::error::Error;
use crate::results::{self, Outcome};
use crate::screen::Screen;
use crate::session::Session;
use crate::table::Table;

/// A run whose trials were given no cause.
const NOTHING: &str = "none";

/// Compares two runs.
pub async fn run(screen: &mut Screen, session: &Session, args: &DiffArgs) -> Result<u8, Error> {
    let (before, after) = match &args.after {
        Some(after) => (
            results::find(session, &args.before).await?,
            results::find(session, after).await?,
        ),
        None => last_two(session, &args.before).await?,
    };
    screen.say(&text(&before, &after))?;
    Ok(0)
}

async fn last_two(session: &Session, name: &str) -> Result<(Outcome, Outcome), Error> {
    if name.contains('/') {
        return Err(Error::BadInput(format!(
            "{name} is one run: name another one to compare it with"
        )));
    }
    let object = session.get(name).await?;
    let after = results::of_run(session, &object, None).await?;
    let earlier = object.status.as_ref().and_then(|status| status.history.first());
    let Some(earlier) = earlier else {
        return Err(Error::BadInput(format!(
            "{name} has one run only: run it again with `kubectl perfval rerun {name}`, or name another validation"
        )));
    };
    let before = results::of_run(session, &object, Some(earlier.run)).await?;
    Ok((before, after))
}

fn text(before: &Outcome, after: &Outcome) -> String {
    let mut table = Table::new(["", &before.label, &after.label, "CHANGE"]);
    let word = |outcome: &Outcome| outcome.verdict.map_or("-", perfval_api::Verdict::as_str).to_owned();
    table.row(["verdict".to_owned(), word(before), word(after), String::new()]);
    let reason = |outcome: &Outcome| outcome.reason.clone().unwrap_or_else(|| "-".to_owned());
    table.row(["reason".to_owned(), reason(before), reason(after), String::new()]);
    for (what, number) in [
        ("tok/s", of_trial as fn(&TrialStatus) -> Option<&String>),
        ("TTFT p99 (ms)", |trial: &TrialStatus| trial.ttft_p99_ms.as_ref()),
    ] {
        let (one, other) = (Spread::of(before, number), Spread::of(after, number));
        table.row([
            what.to_owned(),
            shown(one.as_ref()),
            shown(other.as_ref()),
            change(one.as_ref(), other.as_ref()),
        ]);
    }
    for gate in &after.gates {
        let earlier = before.gates.iter().find(|earlier| earlier.name == gate.name);
        let observed = |observed: Option<&String>| observed.cloned().unwrap_or_else(|| "-".to_owned());
        let was = earlier.and_then(|earlier| earlier.observed.as_ref());
        table.row([
            format!("gate {}", gate.name),
            format!(
                "{} {}",
                observed(was),
                earlier.map_or(String::new(), |gate| format!("{:?}", gate.result))
            ),
            format!("{} {:?}", observed(gate.observed.as_ref()), gate.result),
            percent(was, gate.observed.as_ref()),
        ]);
    }
    let count = |outcome: &Outcome| format!("{} of {} measured", outcome.measured().count(), outcome.trials.len());
    table.row(["trials".to_owned(), count(before), count(after), String::new()]);
    let (was, is) = (causes(before), causes(after));
    if [&was, &is].into_iter().any(|causes| causes != NOTHING && causes != "-") {
        table.row(["causes".to_owned(), was, is, String::new()]);
    }
    let place = |outcome: &Outcome| {
        let placement = outcome.placement.as_ref();
        placement.map_or_else(|| "-".to_owned(), |at| format!("{} GPUs of {}", at.gpus, at.node))
    };
    table.row(["place".to_owned(), place(before), place(after), String::new()]);
    let mut text = table.to_string();
    text += "\n";
    text += &suspects(before.environment.as_ref(), after.environment.as_ref());
    text
}

/// What the trials of a run were given as causes, each once.
fn causes(outcome: &Outcome) -> String {
    if outcome.trials.is_empty() {
        return "-".to_owned();
    }
    let named: BTreeSet<&str> = outcome
        .trials
        .iter()
        .flat_map(|trial| &trial.causes)
        .map(String::as_str)
        .collect();
    if named.is_empty() {
        return NOTHING.to_owned();
    }
    Vec::from_iter(named).join(", ")
}

fn of_trial(trial: &TrialStatus) -> Option<&String> {
    trial.throughput.as_ref()
}

/// What differs in what the two ran on, in the words of the comparison in a status.
fn suspects(before: Option<&Environment>, after: Option<&Environment>) -> String {
    let (Some(before), Some(after)) = (before, after) else {
        return "What one of them ran on is not known: it ended before that was read.\n".to_owned();
    };
    let differing = differences(before, after);
    if differing.is_empty() {
        return "Both ran on the same: model, image, settings, GPUs, driver, Dynamo and AIPerf are equal.\n".to_owned();
    }
    let lines = differing
        .iter()
        .map(|one| format!("  {one}\n"))
        .collect::<Vec<_>>()
        .concat();
    format!("What differs in what they ran on, and may be the reason:\n{lines}")
}

/// The mean of a number over the trials of a run, and its extremes.
struct Spread {
    mean: Decimal,
    least: Decimal,
    most: Decimal,
    trials: usize,
}

impl Spread {
    fn of(outcome: &Outcome, number: fn(&TrialStatus) -> Option<&String>) -> Option<Self> {
        let values: Vec<Decimal> = outcome
            .measured()
            .filter_map(|trial| quantity::parse(number(trial)?))
            .collect();
        let (least, most) = (*values.iter().min()?, *values.iter().max()?);
        Some(Self {
            mean: values.iter().sum::<Decimal>() / Decimal::from(values.len()),
            least,
            most,
            trials: values.len(),
        })
    }
}

fn shown(spread: Option<&Spread>) -> String {
    let Some(Spread {
        mean,
        least,
        most,
        trials,
    }) = spread
    else {
        return "-".to_owned();
    };
    if *trials < 2 {
        return format!("{mean:.1}");
    }
    format!("{mean:.1} ({least:.1} to {most:.1})")
}

/// The change of the means, and whether the trials of the two lie within each other's range.
fn change(before: Option<&Spread>, after: Option<&Spread>) -> String {
    let (Some(before), Some(after)) = (before, after) else {
        return String::new();
    };
    let Some(percent) = quantity::change_percent(before.mean, after.mean).and_then(|percent| percent.to_f64()) else {
        return String::new();
    };
    let apart = before.most < after.least || after.most < before.least;
    let note = match (before.trials.min(after.trials), apart) {
        (0 | 1, _) => "one trial says nothing of the spread",
        (_, true) => "outside the spread of the trials",
        (_, false) => "within the spread of the trials",
    };
    format!("{percent:+.1} %, {note}")
}

fn percent(before: Option<&String>, after: Option<&String>) -> String {
    let parse = |text: Option<&String>| text.and_then(|text| quantity::parse(text));
    let change = parse(before)
        .zip(parse(after))
        .and_then(|(one, other)| quantity::change_percent(one, other));
    change
        .and_then(|percent| percent.to_f64())
        .map_or_else(String::new, |percent| format!("{percent:+.1} %"))
}
