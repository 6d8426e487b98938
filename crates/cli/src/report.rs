//! `report`: what a run found as files for people and pipelines, written by the crate of the reports.

use std::fs;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use perfval_api::PerfValidation;
use perfval_api::admission::is_label;
use perfval_report::{Export, RequestTimes, RunReport, STATEMENT};
use perfval_verdict::saved::FILE_BYTES;

use crate::args::{Form, ReportArgs};
use crate::error::Error;
use crate::exit::{self, NOT_OVER};
use crate::follow::{has_begun, persist};
use crate::judge::{RecordedTrial, given_once, is_of_another_kind, share};
use crate::screen::Screen;
use crate::session::Session;
use crate::{input, manifest, output, results};

/// Writes or prints the report of a run, or of recorded exports.
pub async fn run(
    screen: &mut Screen,
    args: &ReportArgs,
    open: impl AsyncFnOnce() -> Result<Session, Error>,
) -> Result<u8, Error> {
    let (report, label) = match &args.manifest {
        Some(path) => (files_report(args, path)?, "exports".to_owned()),
        None => run_report(&open().await?, one(&args.what)?).await?,
    };
    match (args.output, &args.directory) {
        // The verdict is known, however much of it was read.
        (Some(form), _) => screen.answer(&in_form(&report, form))?,
        (None, Some(directory)) => write_all(screen, &report, directory)?,
        (None, None) => {
            let path = format!("perfval-{}.html", label.replace('/', "-"));
            write(Path::new(&path), &report.html())?;
            screen.answer(&format!("{path} is written\n"))?;
        }
    }
    Ok(report.verdict().map_or(NOT_OVER, exit::code))
}

/// The run on the command line; a file needs a manifest that judges it.
fn one(what: &[String]) -> Result<Option<&str>, Error> {
    match what {
        [] => Ok(None),
        [name] if is_run(name) || !Path::new(name).is_file() => Ok(Some(name)),
        [file] => Err(Error::BadInput(format!(
            "{file} is a file: give the manifest whose gates judge it, with -f"
        ))),
        _ => Err(Error::BadInput(
            "a report is of one run; of several exports of AIPerf it needs the manifest whose gates judge them, with -f"
                .to_owned(),
        )),
    }
}

/// A file without a suffix may have the name of a validation.
fn is_run(what: &str) -> bool {
    results::named(Some(what)).is_ok_and(|(name, _)| name.is_some_and(is_label))
}

/// Every file of the report of the last run, after `run --report`.
pub async fn after_run(screen: &mut Screen, session: &Session, name: &str, directory: &Path) -> Result<(), Error> {
    let read = persist(screen, async || {
        if !has_begun(&session.pick(Some(name)).await?) {
            return Err(Error::BadInput(format!(
                "the run has not begun: {} shows the reason",
                session.command("describe", name)
            )));
        }
        run_report(session, Some(name)).await
    });
    let (report, _) = Box::pin(read).await?;
    write_all(screen, &report, directory)
}

/// Removes an earlier report before a run, which may end without one: a pipeline must not take the old one for the new.
/// Fails if the new one could not be written. No empty folder stays.
pub fn remove_earlier(directory: &Path) -> Result<(), Error> {
    check_directory(directory)?;
    // Without the statement the files are the user's own.
    let is_report = directory.join(STATEMENT).is_file();
    let paths = RunReport::FILES.map(|name| directory.join(name)).into_iter();
    // A link stays, such as one to a page of the pipeline: the new report is written to its target.
    let is_own = |path: &PathBuf| path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    paths
        .filter(|path| is_report && is_own(path))
        .try_for_each(|path| fs::remove_file(&path).map_err(Error::file(&path)))
}

fn check_directory(directory: &Path) -> Result<(), Error> {
    let new: Vec<&Path> = directory.ancestors().take_while(|folder| !folder.exists()).collect();
    let made = fs::create_dir_all(directory).map_err(Error::file(directory));
    let checked = made.and_then(|()| output::can_be_written(&directory.join("report.html")));
    for folder in new {
        // Another program may use it by now.
        let _ = fs::remove_dir(folder);
    }
    checked
}

async fn run_report(session: &Session, what: Option<&str>) -> Result<(RunReport, String), Error> {
    let (name, number) = results::named(what)?;
    let object = session.pick(name).await?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let run = object.status.as_ref().and_then(|status| status.run.as_ref());
    let last = run.ok_or_else(|| results::not_run(session, &name))?.number;
    let number = number.unwrap_or(last);
    let saved = results::config_map(session, &object, number).await?;
    let unusable = |error: perfval_report::Error| Error::BadInput(format!("run {number} of {name}: {error}"));
    let report = match (&saved, number == last) {
        (saved, true) => RunReport::new(&object, saved.as_ref()).map_err(unusable)?,
        (Some(saved), false) => RunReport::from_results(saved).map_err(unusable)?,
        (None, false) => return Err(results::not_saved(session, &name, number)),
    };
    Ok((report, format!("{name}/{number}")))
}

fn files_report(args: &ReportArgs, path: &Path) -> Result<RunReport, Error> {
    input::check_stdin(args.what.iter().map(Path::new).chain([path]))?;
    let object: PerfValidation = manifest::read(path)?;
    let mut files: Vec<(&String, Vec<u8>, Option<RequestTimes>)> = Vec::new();
    let mut trials = Vec::new();
    for name in &args.what {
        let path = Path::new(name);
        let bytes = input::bytes(path, FILE_BYTES)?;
        if is_of_another_kind(&bytes) {
            return Err(Error::BadInput(format!(
                "{name} holds no trial: give AIPerf's profile_export_aiperf.json"
            )));
        }
        trials.push(RecordedTrial::new(name.clone(), &bytes));
        files.push((name, bytes, requests(path)?));
    }
    given_once(&trials)?;
    if files.is_empty() {
        return Err(Error::BadInput(
            "give AIPerf's exports too, one profile_export_aiperf.json for each trial".to_owned(),
        ));
    }
    let exports = files.iter().map(|(name, bytes, requests)| Export {
        name,
        bytes,
        requests: requests.clone(),
    });
    let exports: Vec<Export<'_>> = exports.collect();
    let share = share((args.gpus, args.node_gpus), &object.spec.gates)?;
    RunReport::from_exports(&object, share, &exports).map_err(|error| Error::BadInput(error.to_string()))
}

/// AIPerf's record of each request, which it writes beside its export: `X.jsonl` beside `X_aiperf.json`.
fn requests(export: &Path) -> Result<Option<RequestTimes>, Error> {
    let name = export.file_name().and_then(|name| name.to_str());
    let Some(prefix) = name.and_then(|name| name.strip_suffix("_aiperf.json")) else {
        return Ok(None);
    };
    let path = export.with_file_name(format!("{prefix}.jsonl"));
    let read = match fs::File::open(&path) {
        Ok(file) => RequestTimes::read(BufReader::new(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => Err(error),
    };
    read.map(Some).map_err(Error::file(&path))
}

fn in_form(report: &RunReport, form: Form) -> String {
    match form {
        Form::Html => report.html(),
        Form::Junit => report.junit(),
        Form::Ctrf => report.ctrf(),
        Form::Markdown => report.markdown(),
        Form::Openmetrics => report.openmetrics(),
    }
}

fn write_all(screen: &mut Screen, report: &RunReport, directory: &Path) -> Result<(), Error> {
    fs::create_dir_all(directory).map_err(Error::file(directory))?;
    let files = report.files();
    // The statement first: by it the next run finds the files of a report that ends in an error.
    for file in files.iter().rev() {
        write(&directory.join(file.name), &file.content)?;
    }
    let names: Vec<_> = files.iter().map(|file| file.name).collect();
    screen.answer(&format!("{}: {}\n", directory.display(), names.join(", ")))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::file(path))
}
