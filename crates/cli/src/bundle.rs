//! `bundle`: everything that a bug report needs in one archive. Secrets are never read; possible secrets are hidden;
//! the first file lists the contents.

mod archive;
mod objects;

use std::collections::BTreeSet;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use perfval_api::PerfValidation;
use perfval_run::build::{LOG, read_summary};
use perfval_run::diagnosis::log::clean;
use perfval_run::secret::Redactor;
use perfval_run::{Run, Settings};
use serde_json::{Value, json};

use crate::args::BundleArgs;
use crate::error::Error;
use crate::logs::{self, Extent, LogLine, Source};
use crate::screen::Screen;
use crate::session::Session;
use crate::{output, results, size};

use archive::Archive;
use objects::EventSubject;

/// Lines of each log.
const LINES: i64 = 5000;

/// Writes the archive.
pub async fn run(screen: &mut Screen, session: &Session, args: &BundleArgs) -> Result<u8, Error> {
    let object = session.pick(args.name.as_deref()).await?;
    let name = object.name_any();
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("perfval-{name}.tar.gz")));
    let is_printed = path.as_os_str() == "-";
    if !is_printed {
        output::can_be_created(&path)?;
    }
    let mut archive = Archive::new(&format!("perfval-{name}"), screen.now());
    add_versions(session, &mut archive).await;
    let mut value = serde_json::to_value(&object).map_err(|error| Error::Render(error.to_string()))?;
    let subject = EventSubject::new(&value);
    if let Some(status) = &object.status {
        // The stored state has its tables as one text, in which neither people nor the redactor find anything.
        value["status"]["operatorState"] = json!(*status.state);
    }
    add(
        &mut archive,
        "perfvalidation.yaml",
        "the object with its status",
        value,
        &object,
    );
    add_children(session, &object, subject, &mut archive).await;
    // The results of old runs may fill the archive.
    add_logs(session, &object, args, &mut archive).await;
    add_results(session, &object, &mut archive).await;
    Box::pin(add_size(session, &object, &mut archive)).await;
    let contents = archive.contents();
    let packed = archive.pack().map_err(Error::Output)?;
    if is_printed {
        screen.note(&contents);
        return screen.write(&packed).map(|()| 0);
    }
    output::write_new(&path, &packed)?;
    let kib = packed.len().div_ceil(1024);
    screen.print(&format!(
        "{contents}\n{} ({kib} KiB) is written. Look through it before you give it away.\n",
        path.display()
    ))?;
    Ok(0)
}

/// Adds an object without secrets, as YAML.
fn add(archive: &mut Archive, file: &str, what: &str, mut value: Value, object: &PerfValidation) {
    Redactor::new(&object.spec).redact_object(&mut value);
    match serde_saphyr::to_string(&value) {
        Ok(text) => archive.add_result(file, what, text),
        Err(error) => archive.leave_out(what, &error.to_string()),
    }
}

async fn add_versions(session: &Session, archive: &mut Archive) {
    let server = match session.client.apiserver_version().await {
        Ok(version) => version.git_version,
        Err(error) => Error::from_call("read the version of the cluster", error).to_string(),
    };
    let text = format!("kubectl-perfval {}\nKubernetes {server}\n", env!("CARGO_PKG_VERSION"));
    archive.add("versions.txt", "versions of this program and of the cluster", text);
}

async fn add_children(session: &Session, object: &PerfValidation, subject: EventSubject, archive: &mut Archive) {
    let mut listed = vec![subject];
    for kind in &objects::CHILDREN {
        let items = objects::listed_objects(session, object, kind, &listed).await;
        listed.extend(items.iter().flatten().map(EventSubject::new));
        add_list(archive, kind.plural, items, object);
    }
    // Last, when the objects of the events are known.
    let (items, missing) = objects::events(session, &listed).await;
    match missing {
        Some(why) if items.is_empty() => add_list(archive, "events", Err(why), object),
        missing => {
            add_list(archive, "events", Ok(items), object);
            if let Some(why) = missing {
                archive.leave_out("further events", &why);
            }
        }
    }
}

fn add_list(archive: &mut Archive, plural: &str, items: Result<Vec<Value>, String>, object: &PerfValidation) {
    let what = match plural {
        "events" => "events of the validation and of what it created".to_owned(),
        plural => format!("{plural} of the validation"),
    };
    match items {
        Ok(items) if items.is_empty() => archive.leave_out(&what, "there are none"),
        Ok(items) => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            add(archive, &format!("children/{plural}.yaml"), &what, list, object);
        }
        Err(why) => archive.leave_out(&what, &why),
    }
}

/// The summary and the trials of every run that is kept: those in the status, and all others that are there.
async fn add_results(session: &Session, object: &PerfValidation, archive: &mut Archive) {
    let status = object.status.clone().unwrap_or_default();
    let mut kept: Vec<(String, Option<i64>)> = Vec::new();
    if let Some(run) = &status.run {
        // A run that judged again has the results of the run that measured.
        let measured = status.state.judged_run.unwrap_or(run.number);
        kept.push((results::config_map_name(object, run.number), Some(measured)));
    }
    let earlier = status.state.history.iter().map(|entry| entry.run);
    kept.extend(earlier.map(|run| (results::config_map_name(object, run), Some(run))));
    match objects::saved_results(session, object).await {
        Ok(names) => kept.extend(names.into_iter().map(|name| (name, None))),
        Err(why) => archive.leave_out("results of runs that the status does not list", &why),
    }
    let mut seen = BTreeSet::new();
    kept.retain(|(name, _)| seen.insert(name.clone()));
    let mut runs = BTreeSet::new();
    for (name, run) in kept {
        let found = results::named_config_map(session, &name).await;
        let found = found.map_err(|error| error.to_string());
        match found.and_then(|found| found.ok_or_else(|| "they are not saved".to_owned())) {
            Ok(saved) => {
                let run = run.or_else(|| read_summary(&saved).ok()?.status.run.map(|run| run.number));
                // Users of the namespace may write one number into several.
                let run = run.filter(|run| runs.insert(*run));
                add_run(archive, object, &run.map_or(name, |run| run.to_string()), saved);
            }
            Err(why) => {
                let run = run.map_or(name, |run| run.to_string());
                archive.leave_out(&format!("results of run {run}"), &why);
            }
        }
    }
}

/// Adds the results of one run.
fn add_run(archive: &mut Archive, object: &PerfValidation, run: &str, saved: ConfigMap) {
    let what = format!("results of run {run}");
    for (key, text) in saved.data.into_iter().flatten() {
        let file = format!("results/{run}/{key}");
        // Logs, and the lists of trials that were thinned or left out.
        if [LOG, ".txt"].iter().any(|end| key.ends_with(end)) {
            let settings = Settings::default();
            let text = clean(&Run::new(object, &settings), &text);
            archive.add_result(&file, &what, text);
        } else {
            add_json(archive, &file, &what, text.as_bytes(), object);
        }
    }
    for (key, packed) in saved.binary_data.into_iter().flatten() {
        let key = key.trim_end_matches(".gz");
        match archive.unpack(&packed.0) {
            Ok(text) => add_json(archive, &format!("results/{run}/{key}"), &what, &text, object),
            Err(why) => archive.leave_out(&format!("{what}, {key}"), &why),
        }
    }
}

/// Adds JSON without secrets. Other content is left out, because its secrets cannot be found.
fn add_json(archive: &mut Archive, file: &str, what: &str, text: &[u8], object: &PerfValidation) {
    match serde_json::from_slice::<Value>(text) {
        Ok(mut value) => {
            Redactor::new(&object.spec).redact_object(&mut value);
            archive.add_result(file, what, format_args!("{value:#}\n"));
        }
        Err(error) => archive.leave_out(&format!("{what}, {file}"), &error.to_string()),
    }
}

async fn add_logs(session: &Session, object: &PerfValidation, args: &BundleArgs, archive: &mut Archive) {
    let (sources, unread) = match logs::sources(session, object, &[], &[], &args.operator_namespace).await {
        Ok(found) => found,
        Err(error) => return archive.leave_out("logs", &error.to_string()),
    };
    for why in unread {
        archive.leave_out("log of the operator", &why);
    }
    for source in sources {
        let what = format!("log of {}", source.label);
        match logs::read(session, object, &source, Extent::Last(LINES)).await {
            Ok(lines) => add_log(archive, &source, &what, &lines),
            Err(why) => archive.leave_out(&what, &why),
        }
    }
}

fn add_log(archive: &mut Archive, source: &Source, what: &str, lines: &[LogLine]) {
    let lines = lines.iter().map(|line| format!("{} {}\n", line.time, line.text));
    let previous = if source.previous { "-previous" } else { "" };
    let file = format!("logs/{}-{}{previous}.txt", source.pod, source.container);
    archive.add_result(&file, what, lines.collect::<Vec<_>>().concat());
}

/// Adds the result of sizing on the cluster, and the objects that it reads.
async fn add_size(session: &Session, object: &PerfValidation, archive: &mut Archive) {
    let mut sized = object.clone();
    sized.status = None;
    let answer = size::size_object(&sized, session.client.clone(), session.namespace.clone());
    match Box::pin(answer).await {
        Ok(report) => archive.add("size.txt", "what sizing makes of the cluster now", report),
        Err(error) => archive.leave_out("what sizing makes of the cluster now", &error.to_string()),
    }
    let what = "nodes, pods without their containers' settings, resource slices and claims, for `size --from`";
    match objects::dump(session).await {
        Ok(mut items) => {
            let redactor = Redactor::new(&object.spec);
            for item in &mut items {
                redactor.redact_object(item);
            }
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            archive.add("size-dump.json", what, format_args!("{list}\n"));
        }
        Err(why) => archive.leave_out(what, &why),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn objects_and_logs_of_a_namespace_share_the_room_of_the_results() {
        let mut archive = Archive::new("a", DateTime::UNIX_EPOCH);
        archive.room = 10;
        let spec = json!({"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1"}}, "gates": []});
        let object = PerfValidation::new("run", serde_json::from_value(spec).expect("a spec"));
        add_list(&mut archive, "pods", Ok(vec![json!({"kind": "Pod"})]), &object);
        let source = Source {
            pod: "w0".to_owned(),
            container: "main".to_owned(),
            ..Source::default()
        };
        let line = LogLine {
            text: "loading weights".to_owned(),
            ..LogLine::default()
        };
        add_log(&mut archive, &source, "log of worker w0", &[line]);
        let contents = archive.contents();
        for missing in ["children/pods.yaml", "logs/w0-main.txt"] {
            assert!(contents.contains(&format!("{missing}: it is too large")), "{contents}");
        }
    }
}
