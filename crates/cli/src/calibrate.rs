//! `calibrate`: finds the knee of a node that the user trusts, and writes a manifest with gates for it.

mod knee;
mod outcome;

use std::collections::BTreeSet;
use std::mem;
use std::path::Path;

use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::wait::{self, await_condition};
use perfval_api::{PerfValidation, TrialRule, Verdict, meta};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::knee::{LoadPoint, SearchStep, whole};
use self::outcome::{MeasuredRun, calibrated, line, measured, print};
use crate::args::{CalibrateArgs, CommonCase};
use crate::error::Error;
use crate::follow::{self, PAUSE};
use crate::output::can_be_created;
use crate::run::{in_its_namespace, with_flags};
use crate::screen::Screen;
use crate::session::Session;
use crate::{exit, manifest};

/// Recommended load, as a share of the knee: below it the time to first token is steady (docs/gates.md).
const BELOW_THE_KNEE: f64 = 0.8;
/// Trials of each run at the recommended load.
const TRIALS: i32 = 2;
const SUFFIX: &str = "-calibrate";

/// Measures loads until the knee is known, then the recommended load, and prints the manifest.
pub async fn run(
    screen: &mut Screen,
    args: &CalibrateArgs,
    namespace: Option<&str>,
    open: impl AsyncFnOnce() -> Result<Session, Error>,
) -> Result<u8, Error> {
    if args.from >= args.to {
        let (from, to) = (args.from, args.to);
        return Err(Error::BadInput(format!(
            "--from {from} is not below --to {to}: give a range of loads"
        )));
    }
    let (text, wanted) = read(&args.filename)?;
    let mut probe = probe(&wanted, args)?;
    if let Some(path) = args.output.as_ref().filter(|path| path.as_os_str() != "-") {
        can_be_created(path)?;
    }
    let session = &in_its_namespace(open().await?, &wanted, namespace)?;
    probe.metadata.namespace = Some(session.namespace.clone());
    let name = probe.name_any();
    screen.hear();
    screen.note(&format!(
        "{}/{name} measures one load after the other. Each takes a deployment and a trial.",
        session.namespace
    ));
    let object = create(session, &probe).await?;
    screen.print("IN FLIGHT/GPU  TOK/S/GPU  TTFT-P99\n")?;

    let mut points: Vec<LoadPoint> = Vec::new();
    let mut nodes = BTreeSet::new();
    let knee = loop {
        let load = match knee::next_step(&points, args.from, args.to) {
            SearchStep::Measure(load) => load,
            SearchStep::Knee(knee) => break knee,
            SearchStep::StillGrowing => {
                let why = "the throughput still grows at the largest load: raise --to";
                return Ok(no_knee(screen, session, &name, args, why).await);
            }
            SearchStep::AlreadyPast => {
                let why = "a larger load gives no more throughput: lower --from";
                return Ok(no_knee(screen, session, &name, args, why).await);
            }
        };
        let change = json!({"spec": {"benchmark": {"concurrencyPerGPU": load}}});
        let change = (!points.is_empty()).then_some(&change);
        let Some(measured) = measure(screen, session, &object, change, load).await? else {
            return Ok(interrupted(screen, session, &name));
        };
        points.push(LoadPoint {
            load,
            throughput: measured.throughput,
        });
        note_nodes(screen, &mut nodes, &measured.node);
    };

    let load = whole(f64::from(knee) * BELOW_THE_KNEE).max(1);
    screen.print(&format!(
        "knee: {knee} requests in flight per GPU; measuring {load}, below it\n"
    ))?;
    let mut change = json!({"spec": {
        "benchmark": {"concurrencyPerGPU": load},
        // A minimum of the user's rule may be above this maximum.
        "trials": {"rule": "All", "min": null, "max": TRIALS},
    }});
    let mut runs = Vec::new();
    for number in 0..args.runs {
        if number > 0 {
            let token = screen.now().timestamp_millis().to_string();
            change = json!({"metadata": {"annotations": {meta::RERUN: token}}});
        }
        let Some(measured) = measure(screen, session, &object, Some(&change), load).await? else {
            return Ok(interrupted(screen, session, &name));
        };
        note_nodes(screen, &mut nodes, &measured.node);
        runs.push(measured);
    }
    let manifest = calibrated(text, &wanted.spec, load, &runs)?;
    let printed = print(screen, session, args, &manifest, &runs);
    // The validation goes also if the file cannot be written.
    clean_up(screen, session, &name, args).await;
    printed.map(|()| 0)
}

/// The manifest as it is written, and as the API server would store it.
fn read(path: &Path) -> Result<(Value, PerfValidation), Error> {
    let from = path.display().to_string();
    let text = manifest::text(path)?;
    let object = manifest::parse(&text, &from)?;
    let mut documents = manifest::documents(&text, &from)?.into_iter();
    let written = documents.find(|document| document["kind"] == "PerfValidation");
    Ok((written.unwrap_or_default(), object))
}

/// The validation that measures: one trial of the least load, with a gate that every run meets.
fn probe(wanted: &PerfValidation, args: &CalibrateArgs) -> Result<PerfValidation, Error> {
    let suffixed = || wanted.metadata.name.as_ref().map(|name| format!("{name}{SUFFIX}"));
    let flags = CommonCase {
        name: args.name.clone().or_else(suffixed),
        node: args.node.clone(),
        ..CommonCase::default()
    };
    let mut object = with_flags(wanted.clone(), &flags)?;
    object.metadata.annotations = None;
    object.status = None;
    let spec = &mut object.spec;
    spec.suspend = false;
    // The next load is measured with the same object.
    spec.ttl_seconds_after_finished = None;
    spec.benchmark.concurrency_per_gpu = args.from;
    spec.benchmark.soak = None;
    let gates = json!([{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1"}]);
    spec.gates = serde_json::from_value(gates).map_err(|error| Error::Render(error.to_string()))?;
    spec.trials.rule = TrialRule::Single;
    spec.trials.min = None;
    Ok(object)
}

async fn create(session: &Session, object: &PerfValidation) -> Result<PerfValidation, Error> {
    match session.validations().create(&PostParams::default(), object).await {
        Ok(created) => Ok(created),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
            let name = object.name_any();
            Err(Error::BadInput(format!(
                "{0}/{name} exists: delete it (kubectl -n {0} delete perfvalidation {name}{1}), or give another --name",
                session.namespace, session.flags
            )))
        }
        Err(error) => Err(Error::from_call("create PerfValidations", error)),
    }
}

/// Notes once that the runs are on several nodes.
fn note_nodes(screen: &mut Screen, nodes: &mut BTreeSet<String>, node: &str) {
    if nodes.insert(node.to_owned()) && nodes.len() == 2 {
        screen.note("The runs are on different nodes, which may differ in speed: give one with --node.");
    }
}

/// Requests a run by this change, waits for its end, and prints its numbers; `None` after Ctrl-C. Without a change the
/// new object requests it.
async fn measure(
    screen: &mut Screen,
    session: &Session,
    object: &PerfValidation,
    change: Option<&Value>,
    load: i32,
) -> Result<Option<MeasuredRun>, Error> {
    let name = &object.name_any();
    let mut is_noted = false;
    if let Some(change) = change {
        // The runs before took hours.
        while let Err(error) = session.patch(object, change).await {
            let why = follow::note_retry(error)?;
            if !pause(screen, Some(why), &mut is_noted).await {
                return Ok(None);
            }
        }
    }
    let object = loop {
        // An object that is gone ends the wait too.
        let rests = |object: Option<&PerfValidation>| object.is_none_or(follow::rests);
        let over = Box::pin(await_condition(session.validations(), name, rests));
        tokio::select! {
            waited = over => match waited {
                Ok(object) => break object,
                Err(wait::Error::ProbeFailed(error)) => {
                    if !pause(screen, follow::retried(error)?, &mut is_noted).await {
                        return Ok(None);
                    }
                }
            },
            Some(()) = screen.interrupts.next() => return Ok(None),
        }
    };
    let object = object.ok_or_else(|| Error::Vanished(format!("{}/{name}", session.namespace)))?;
    // Its verdict may be that of the load before.
    if !follow::is_over(&object) {
        follow::check_readable(session, &object)?;
        return Err(Error::NotMeasured {
            code: exit::NOT_OVER,
            why: format!(
                "the run with {load} requests in flight per GPU is suspended, and the search ends; remove it with `kubectl -n {} \
                 delete perfvalidation {name}{}`",
                session.namespace, session.flags
            ),
        });
    }
    let status = object.status.unwrap_or_default();
    if status.verdict != Some(Verdict::Passed) {
        let verdict = status.verdict.map_or("no verdict", Verdict::as_str);
        let code = match status.verdict {
            None => exit::NOT_OVER,
            // A run without numbers gives no manifest.
            Some(Verdict::Skipped) => exit::code(Verdict::Error),
            Some(verdict) => exit::code(verdict),
        };
        return Err(Error::NotMeasured {
            code,
            why: format!(
                "the run with {load} requests in flight per GPU ended {verdict} ({}): {}; {} explains it",
                status.reason.as_deref().unwrap_or("unknown"),
                status.message.as_deref().unwrap_or_default(),
                session.command("describe", name)
            ),
        });
    }
    let measured = measured(&status)?;
    screen.print(&line(load, &measured))?;
    Ok(Some(measured))
}

/// Waits before a call is tried again, and notes the first reason. Returns false after Ctrl-C.
async fn pause(screen: &mut Screen, why: Option<String>, is_noted: &mut bool) -> bool {
    if let Some(why) = why.filter(|_| !mem::replace(is_noted, true)) {
        screen.note(&format!("{why}."));
    }
    tokio::select! {
        () = sleep(PAUSE) => true,
        Some(()) = screen.interrupts.next() => false,
    }
}

async fn no_knee(screen: &mut Screen, session: &Session, name: &str, args: &CalibrateArgs, why: &str) -> u8 {
    screen.note(&format!("no knee between {} and {}: {why}", args.from, args.to));
    clean_up(screen, session, name, args).await;
    exit::code(Verdict::Inconclusive)
}

/// Deletes the validation, unless it is to be kept. The measurements count also if that fails.
async fn clean_up(screen: &mut Screen, session: &Session, name: &str, args: &CalibrateArgs) {
    if args.keep {
        screen.note(&format!(
            "{}/{name} is kept: {}",
            session.namespace,
            session.command("history", name)
        ));
        return;
    }
    let delete = async || {
        let deleted = session.validations().delete(name, &DeleteParams::default()).await;
        match deleted.map_err(|error| session.missing(name, "delete PerfValidations", error)) {
            Ok(_) | Err(Error::NoSuchObject { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    };
    if let Err(error) = follow::persist(screen, delete).await {
        screen.note(&format!("{name} is not deleted: {error}"));
        note_removal(screen, session, name, "is there");
    }
}

/// A person pressed Ctrl-C: the run goes on until it is suspended or deleted.
fn interrupted(screen: &mut Screen, session: &Session, name: &str) -> u8 {
    note_removal(screen, session, name, "is there, and may still run");
    exit::ENDED
}

fn note_removal(screen: &mut Screen, session: &Session, name: &str, state: &str) {
    screen.note(&format!(
        "{name} {state}. Remove it with `kubectl -n {} delete perfvalidation {name}{}`.",
        session.namespace, session.flags
    ));
}
