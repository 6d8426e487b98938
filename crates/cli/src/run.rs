//! `run`: creates a validation, follows it, and ends with its verdict.

use std::collections::BTreeMap;
use std::mem;

use kube::ResourceExt as _;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use perfval_api::text::quoted;
use perfval_api::{PerfValidation, Phase, meta};
use serde_json::{Value, json};

use crate::args::{CommonCase, RunCommandArgs};
use crate::error::Error;
use crate::exit::{ENDED, NOT_OVER};
use crate::follow::{self, End};
use crate::init;
use crate::lifecycle::{ask_for_rerun, check_not_deleted};
use crate::manifest;
use crate::report;
use crate::screen::Screen;
use crate::session::{Session, check_name, common_namespace};

/// Annotations of a manifest that are not the user's: the token of a run, and kubectl's record of its last apply.
const RECORDS: [&str; 2] = [meta::RERUN, "kubectl.kubernetes.io/last-applied-configuration"];

/// Creates and follows. `namespace`: the namespace of the flags.
pub async fn run(
    screen: &mut Screen,
    args: &RunCommandArgs,
    namespace: Option<&str>,
    open: impl AsyncFnOnce() -> Result<Session, Error>,
) -> Result<u8, Error> {
    // First of all, because a mistake in the manifest ends the command too.
    if let Some(directory) = &args.report {
        report::remove_earlier(directory)?;
    }
    let object = wanted(args)?;
    let session = &in_its_namespace(open().await?, &object, namespace)?;
    let name = object.name_any();
    let object = Box::pin(create(screen, session, object)).await?;
    if args.detach {
        screen.print(&format!("follow it with {}\n", session.command("watch", &name)))?;
        return Ok(0);
    }
    let followed = Box::pin(follow::follow(screen, session, object, args.timeout)).await;
    if let (Some(directory), Ok(End::Over(_)) | Err(Error::NotOver(_))) = (&args.report, &followed) {
        // The exit code is the verdict's, even if the files fail.
        if let Err(error) = report::after_run(screen, session, &name, directory).await {
            let directory = directory.display().to_string();
            // Of a run that has not begun, the same command would write the one before.
            let later = if matches!(error, Error::BadInput(_)) {
                String::new()
            } else {
                let report = session.command("report", &format!("{name} --directory {}", quoted(&directory)));
                format!(" Write it later with {report}.")
            };
            screen.note(&format!("the report in {directory} is not written: {error}.{later}"));
        }
    }
    match followed? {
        End::Over(code) => Ok(code),
        End::Interrupted => ask_what_becomes_of(screen, session, &name).await,
    }
}

/// The validation that the flags describe, checked as the API server checks it.
fn wanted(args: &RunCommandArgs) -> Result<PerfValidation, Error> {
    let flags = &args.common;
    match &args.filename {
        Some(path) => {
            let from = path.display().to_string();
            let object = manifest::parse_as(&manifest::text(path)?, &from, flags.name.as_deref())?;
            with_flags(object, flags)
        }
        None if flags.preset.is_some() => manifest::parse(&init::manifest(flags, None)?, init::OF_FLAGS),
        None => Err(Error::BadInput(
            "no manifest and no preset: write -f FILE, or --preset GPU (`kubectl perfval presets` lists them)"
                .to_owned(),
        )),
    }
}

/// The object of a manifest, with name, size and node of the flags. It keeps the metadata that a new object may have.
pub fn with_flags(mut object: PerfValidation, flags: &CommonCase) -> Result<PerfValidation, Error> {
    if let Some(name) = &flags.name {
        object.metadata.name = Some(name.clone());
    }
    if let Some(gpus) = flags.max_gpus {
        let placement = &mut object.spec.placement;
        placement.max_gpus = i32::try_from(gpus).ok();
        if placement.max_gpus < Some(placement.min_gpus) {
            return Err(Error::BadInput(format!(
                "--max-gpus {gpus} is below placement.minGPUs of the manifest, {}: lower it there; for one GPU remove the gate on the \
                 slowest worker too",
                placement.min_gpus
            )));
        }
    }
    if let Some(node) = &flags.node {
        let selector = &mut object.spec.placement.node_selector;
        selector.insert("kubernetes.io/hostname".to_owned(), node.clone());
    }
    let Some(name) = &object.metadata.name else {
        return Err(Error::BadInput(
            "the manifest has no metadata.name: write one, or give --name".to_owned(),
        ));
    };
    check_name(name)?;
    let ObjectMeta {
        name,
        namespace,
        labels,
        annotations,
        ..
    } = mem::take(&mut object.metadata);
    object.metadata = ObjectMeta {
        name,
        namespace,
        labels,
        annotations,
        ..ObjectMeta::default()
    };
    Ok(object)
}

/// Session in the namespace of the manifest, or else of the flags, as with kubectl. The two may not differ.
pub fn in_its_namespace(mut session: Session, object: &PerfValidation, asked: Option<&str>) -> Result<Session, Error> {
    if let Some(namespace) = common_namespace(object, asked)? {
        session.namespace = namespace;
    }
    Ok(session)
}

/// Creates it; an existing validation with the same spec gets the labels and annotations of the manifest, and is run again.
async fn create(screen: &mut Screen, session: &Session, mut object: PerfValidation) -> Result<PerfValidation, Error> {
    let name = object.name_any();
    object.status = None;
    object.metadata.namespace = Some(session.namespace.clone());
    let api = session.validations();
    match api.create(&PostParams::default(), &object).await {
        Ok(created) => {
            screen.print(&format!("{}/{name} created\n", session.namespace))?;
            Ok(created)
        }
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
            let there = session.get(&name).await?;
            check_not_deleted(session, &there)?;
            if is_only_suspended(&there, &object) {
                return Err(Error::BadInput(format!(
                    "{}/{name} exists and is suspended: let it run with {}",
                    session.namespace,
                    session.command("resume", &name)
                )));
            }
            if there.spec != object.spec {
                return Err(Error::BadInput(format!(
                    "{}/{name} exists with another spec: change it with `kubectl apply`, or give another --name",
                    session.namespace
                )));
            }
            let metadata = changed_metadata(&there, &object);
            let is_changed = metadata.is_some();
            let again = ask_for_rerun(screen, session, &there, metadata.unwrap_or_default()).await?;
            if is_changed {
                screen.print(&format!(
                    "{}/{name} exists; labels and annotations of the manifest are set\n",
                    session.namespace
                ))?;
            }
            if !again.spec.suspend {
                let what = if is_under_way(&there) {
                    "its active run stops, and it runs again"
                } else {
                    "it runs again"
                };
                screen.print(&format!("{}/{name} exists; {what}\n", session.namespace))?;
            }
            Ok(again)
        }
        Err(error) => Err(Error::from_call("create PerfValidations", error)),
    }
}

/// Returns true if a rerun would stop a run. An evaluation would finish first.
fn is_under_way(object: &PerfValidation) -> bool {
    let status = object.status.as_ref();
    status.is_some_and(|status| status.run.is_some() && status.phase < Some(Phase::Evaluating))
}

/// Labels and annotations of the manifest that a validation lacks, or has with other values. Its others stay, because they
/// may be of another program.
fn changed_metadata(there: &PerfValidation, wanted: &PerfValidation) -> Option<Value> {
    let labels = changed(there.labels(), wanted.labels());
    let annotations = changed(there.annotations(), wanted.annotations());
    let is_changed = !labels.is_empty() || !annotations.is_empty();
    is_changed.then(|| json!({"labels": labels, "annotations": annotations}))
}

fn changed<'a>(
    there: &BTreeMap<String, String>,
    wanted: &'a BTreeMap<String, String>,
) -> BTreeMap<&'a String, &'a String> {
    let pairs = wanted.iter().filter(|(key, _)| !RECORDS.contains(&key.as_str()));
    pairs.filter(|(key, value)| there.get(*key) != Some(*value)).collect()
}

/// Returns true if a validation differs from the wanted one only because it is suspended. `kubectl apply` would not change that.
fn is_only_suspended(there: &PerfValidation, wanted: &PerfValidation) -> bool {
    let mut resumed = there.spec.clone();
    resumed.suspend = false;
    there.spec.suspend && resumed == wanted.spec
}

/// A person pressed Ctrl-C.
async fn ask_what_becomes_of(screen: &mut Screen, session: &Session, name: &str) -> Result<u8, Error> {
    let question =
        format!("\n{name} is still running. [l]eave it running, [s]uspend it and free its GPUs, or [d]elete it?");
    let answer = screen.ask_unless_interrupted(&question).await;
    match answer.as_deref().and_then(|answer| answer.chars().next()) {
        Some('s' | 'S') => {
            let object = session.get(name).await?;
            session.patch(&object, &json!({"spec": {"suspend": true}})).await?;
            screen.note(&format!(
                "{name} stops, and its GPUs are freed; go on with {}.",
                session.command("resume", name)
            ));
            Ok(ENDED)
        }
        Some('d' | 'D') => {
            let deleted = session.validations().delete(name, &DeleteParams::default()).await;
            deleted.map_err(|error| session.missing(name, "delete PerfValidations", error))?;
            screen.note(&format!("{name} is deleted; the operator frees its GPUs."));
            Ok(ENDED)
        }
        _ => {
            screen.note(&format!(
                "{name} goes on; follow it with {}.",
                session.command("watch", name)
            ));
            Ok(NOT_OVER)
        }
    }
}
