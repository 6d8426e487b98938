//! `logs`: what every part of a run printed, in the order of time, without secrets.

mod line;
mod new;
mod source;

use kube::ResourceExt as _;
use perfval_api::{PerfValidation, WorkerPod};
use perfval_run::build::LOG;
use perfval_run::diagnosis::log::clean;
use perfval_run::{Run, Settings};
use tokio::time::sleep;

use crate::args::{LogsArgs, RunPart};
use crate::error::Error;
use crate::follow::{PAUSE, note_retry, rests};
use crate::results;
use crate::screen::Screen;
use crate::session::Session;

pub use line::LogLine;
use new::New;
pub use source::{Extent, Source, read, sources};

/// Failed looks in a row after which it ends: five minutes and the time of the calls.
const MOST_FAILURES: usize = 150;

/// Prints the logs.
pub async fn run(screen: &mut Screen, session: &Session, args: &LogsArgs) -> Result<u8, Error> {
    let mut object = session.pick(args.name.as_deref()).await?;
    check_gpus(&object, args)?;
    let name = object.name_any();
    let mut new = New::default();
    let there = look(screen, session, &object, args, &mut new).await?;
    // The operator's pods are no pods of the run.
    let asks_run = args.parts.is_empty() || args.parts.iter().any(|part| *part != RunPart::Operator);
    let is_absent = asks_run && there == 0;
    // The run may have other pods.
    let is_chosen = !args.parts.is_empty() || !args.gpus.is_empty();
    let none = if is_chosen { "No such pod" } else { "No pod" };
    if is_absent && (!args.follow || rests(&object)) {
        if let Some(saved) = saved(session, &object).await {
            screen.print(&saved)?;
            screen.note(&format!(
                "{none} of {name} is there. These are the last lines of its trials with errors, as its results hold them."
            ));
            return Ok(0);
        }
        let describe = session.command("describe", &name);
        let why = if rests(&object) {
            let keep = session.command("keep", &name);
            format!(
                ": a run removes its own. {keep} keeps those of the next run, and {describe} shows the saved results"
            )
        } else {
            format!(". {describe} shows the phase of the run")
        };
        screen.note(&format!("{none} of {name} is there{why}."));
        return Ok(0);
    }
    if is_absent {
        screen.note(&format!("{none} of {name} is there yet; waiting for the first."));
    }
    if !args.follow {
        return Ok(0);
    }
    let mut failures = 0;
    loop {
        let over = rests(&object);
        sleep(PAUSE).await;
        object = match look_again(screen, session, &name, args, &mut new).await {
            Ok(object) => object,
            Err(error) if failures < MOST_FAILURES => {
                let why = note_retry(error)?;
                if failures == 0 {
                    screen.note(&format!("{why}."));
                }
                failures += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        failures = 0;
        // What ended between two looks had its last words before: they are read once more.
        if over && rests(&object) {
            return Ok(0);
        }
    }
}

/// Refuses GPUs that no worker has. While the GPUs of a worker are unknown, or the next run may have others, any is accepted.
fn check_gpus(object: &PerfValidation, args: &LogsArgs) -> Result<(), Error> {
    if !args.gpus.is_empty() && !args.parts.is_empty() && !args.parts.contains(&RunPart::Worker) {
        return Err(Error::BadInput(
            "only workers have GPUs: add -p worker, or leave --gpu out".to_owned(),
        ));
    }
    let workers = object.status.iter().flat_map(|status| &status.state.worker_pods);
    let devices: Option<Vec<String>> = workers.map(WorkerPod::device_names).collect();
    let devices = devices.unwrap_or_default().join(",");
    let is_wrong =
        |gpu: &&String| !args.follow && !devices.is_empty() && !devices.split(',').any(|device| device == **gpu);
    match args.gpus.iter().find(is_wrong) {
        Some(gpu) => Err(Error::BadInput(format!(
            "no worker has GPU {gpu}: there are {}",
            devices.replace(',', ", ")
        ))),
        None => Ok(()),
    }
}

/// Log lines in the results of the last run, which keeps those of trials with errors.
async fn saved(session: &Session, object: &PerfValidation) -> Option<String> {
    let number = object.status.as_ref()?.run.as_ref()?.number;
    // Additional: where the results cannot be read, there is no log.
    let results = results::config_map(session, object, number).await.ok()??;
    let settings = Settings::default();
    let logs = results.data.iter().flatten().filter(|(key, _)| key.ends_with(LOG));
    let of_trial = |(key, text): (&String, &String)| {
        let trial = key.trim_end_matches(LOG).replace('-', " ");
        format!("{trial}\n{}\n", clean(&Run::new(object, &settings), text))
    };
    let texts: Vec<String> = logs.map(of_trial).collect();
    (!texts.is_empty()).then(|| texts.concat())
}

/// Reads the validation again, looks, and returns it.
async fn look_again(
    screen: &mut Screen,
    session: &Session,
    name: &str,
    args: &LogsArgs,
    new: &mut New,
) -> Result<PerfValidation, Error> {
    let object = match session.get(name).await {
        Err(Error::NoSuchObject { .. }) => {
            return Err(Error::Vanished(format!("{}/{name}", session.namespace)));
        }
        read => read?,
    };
    look(screen, session, &object, args, new).await?;
    Ok(object)
}

/// Prints the lines that are new, and returns the number of the run's containers.
async fn look(
    screen: &mut Screen,
    session: &Session,
    object: &PerfValidation,
    args: &LogsArgs,
    new: &mut New,
) -> Result<usize, Error> {
    let (sources, unread) = sources(session, object, &args.parts, &args.gpus, &args.operator_namespace).await?;
    for why in unread {
        new.note(screen, &why);
    }
    let mut lines = Vec::new();
    for source in &sources {
        match read(session, object, source, new.extent(source, args.tail)).await {
            Ok(found) => lines.extend(new.take(source, found)),
            Err(why) => new.note(screen, &why),
        }
    }
    new.looked();
    lines.sort_by_key(|line| line.at);
    screen.print(&new.text(&lines))?;
    Ok(sources.iter().filter(|source| !source.shared).count())
}
