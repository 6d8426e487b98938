use futures::AsyncReadExt as _;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt as _};
use perfval_api::meta::{NAME_LABEL, RUN_LABEL};
use perfval_api::{PerfValidation, WorkerPod};
use perfval_run::diagnosis::log::clean;
use perfval_run::names::COMPONENT_LABEL;
use perfval_run::{Run, Settings, names};

use crate::args::{OPERATOR_LABEL, RunPart};
use crate::error::Error;
use crate::session::Session;

use super::line::{LogLine, lines};

/// Text of the API server about a log that does not exist yet.
const WAITING: &str = "is waiting to start";
/// Text of the API server about the container before, once the node has removed its log.
const REMOVED: &str = "previous terminated container";
/// Bytes of one container: a trial's result is one line of a megabyte.
const BYTES: u32 = 8 << 20;

/// A container with a log.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Part of the run, such as `worker gpu-3`.
    pub label: String,
    /// True if only lines about the validation count: the operator serves others too.
    pub shared: bool,
    pub namespace: String,
    pub pod: String,
    pub container: String,
    /// True if it is the container before the current one: the last words of a crashed container are there.
    pub previous: bool,
}

/// Part of a log to read.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// This many lines from its end.
    Last(i64),
    /// Lines of the last seconds.
    Seconds(i64),
}

/// The containers of the current run, and why some cannot be listed. Empty `parts`: all of them. With `gpus` only
/// the workers on these.
pub async fn sources(
    session: &Session,
    object: &PerfValidation,
    parts: &[RunPart],
    gpus: &[String],
    operator_namespace: &str,
) -> Result<(Vec<Source>, Vec<String>), Error> {
    let asked = |part: RunPart| parts.is_empty() || parts.contains(&part);
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let settings = Settings::default();
    let id = Run::new(object, &settings).id();
    if parts.is_empty() || parts.iter().any(|part| *part != RunPart::Operator) {
        let api: Api<Pod> = Api::namespaced(session.client.clone(), &session.namespace);
        let of_run = ListParams::default().labels(&format!("{NAME_LABEL}={},{RUN_LABEL}={id}", object.name_any()));
        let pods = api
            .list(&of_run)
            .await
            .map_err(|error| Error::from_call("read Pods", error))?;
        for pod in &pods.items {
            let Some((part, label)) = part_of(pod, object) else {
                continue;
            };
            let mut devices = label.rsplit(' ').next().unwrap_or_default().split(',');
            let is_wanted = |device: &str| gpus.iter().any(|wanted| wanted == device);
            let on_gpu = gpus.is_empty() || (part == RunPart::Worker && devices.any(is_wanted));
            if asked(part) && on_gpu {
                found.extend(containers(pod, &label, false));
            }
        }
    }
    if asked(RunPart::Operator) && gpus.is_empty() {
        let api: Api<Pod> = Api::namespaced(session.client.clone(), operator_namespace);
        match api.list(&ListParams::default().labels(OPERATOR_LABEL)).await {
            // Without the run's own parts nothing else would be printed.
            Ok(pods) if pods.items.is_empty() && parts == [RunPart::Operator] => unread.push(format!(
                "No pod of the operator is in namespace {operator_namespace}: give --operator-namespace"
            )),
            Ok(pods) => found.extend(pods.items.iter().flat_map(|pod| containers(pod, "operator", true))),
            Err(error) => unread.push(format!(
                "The operator's log is left out: {}",
                Error::from_call("read Pods of the operator", error)
            )),
        }
    }
    Ok((found, unread))
}

/// Part of a run that a pod is, and its label: workers by their GPUs.
fn part_of(pod: &Pod, object: &PerfValidation) -> Option<(RunPart, String)> {
    match pod.labels().get(COMPONENT_LABEL)?.as_str() {
        names::MODEL_CACHE => Some((RunPart::ModelCache, "model cache".to_owned())),
        "frontend" => Some((RunPart::Frontend, "frontend".to_owned())),
        "worker" => {
            let workers = object
                .status
                .as_ref()
                .map_or(&[][..], |status| &status.state.worker_pods);
            let worker = workers.iter().find(|worker| worker.pod == pod.name_any());
            let device = worker.and_then(WorkerPod::device_names);
            Some((
                RunPart::Worker,
                format!("worker {}", device.unwrap_or_else(|| pod.name_any())),
            ))
        }
        "benchmark" => Some((RunPart::Benchmark, "benchmark".to_owned())),
        _ => None,
    }
}

/// Init containers and containers of a pod, each after the one before it, where that was restarted.
fn containers(pod: &Pod, label: &str, shared: bool) -> Vec<Source> {
    let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
    let init = spec
        .and_then(|spec| spec.init_containers.as_ref())
        .into_iter()
        .flatten();
    let init = init.map(|container| (&container.name, format!("init {}", container.name)));
    let main = spec.into_iter().flat_map(|spec| &spec.containers);
    let main = main.map(|container| (&container.name, String::new()));
    let statuses: Vec<&ContainerStatus> = status
        .into_iter()
        .flat_map(|status| [&status.init_container_statuses, &status.container_statuses])
        .flat_map(|statuses| statuses.iter().flatten())
        .collect();
    let of = |(name, kind): (&String, String)| {
        let restarted = statuses
            .iter()
            .any(|status| status.name == *name && status.restart_count > 0);
        let source = move |previous: bool| {
            let notes = [kind.as_str(), if previous { "previous" } else { "" }];
            let notes: Vec<_> = notes.into_iter().filter(|note| !note.is_empty()).collect();
            Source {
                label: match notes.as_slice() {
                    [] => label.to_owned(),
                    notes => format!("{label} ({})", notes.join(", ")),
                },
                shared,
                namespace: pod.namespace().unwrap_or_default(),
                pod: pod.name_any(),
                container: name.clone(),
                previous,
            }
        };
        let both = [true, false].into_iter().filter(|previous| restarted || !previous);
        both.map(source).collect::<Vec<_>>()
    };
    init.chain(main).flat_map(of).collect()
}

/// Lines of a container, without secrets. Fails with the reason why there are none.
pub async fn read(
    session: &Session,
    object: &PerfValidation,
    source: &Source,
    extent: Extent,
) -> Result<Vec<LogLine>, String> {
    let (tail_lines, since_seconds) = match extent {
        // Of a log that is shared most lines are of others.
        Extent::Last(lines) if source.shared => (Some(lines.saturating_mul(20)), None),
        Extent::Last(lines) => (Some(lines), None),
        Extent::Seconds(seconds) => (None, Some(seconds)),
    };
    let mut params = LogParams {
        container: Some(source.container.clone()),
        tail_lines,
        since_seconds,
        limit_bytes: Some(BYTES.into()),
        previous: source.previous,
        timestamps: true,
        ..LogParams::default()
    };
    let api: Api<Pod> = Api::namespaced(session.client.clone(), &source.namespace);
    let read = end_of_log(&api, &source.pod, &mut params).await;
    let log = read.map_err(|error| match error {
        kube::Error::Api(status) if status.message.contains(WAITING) => {
            format!("{} has printed nothing yet: its container waits to start", source.label)
        }
        kube::Error::Api(status) if source.previous && status.message.contains(REMOVED) => format!(
            "{} is left out: the node keeps that log no longer; `kubectl describe pod {} -n {}` has the exit code",
            source.label, source.pod, source.namespace
        ),
        error => {
            let call = format!("read the log of {} in {}", source.container, source.pod);
            format!("{} is left out: {}", source.label, Error::from_call(&call, error))
        }
    })?;
    let settings = Settings::default();
    let log = clean(&Run::new(object, &settings), &log);
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let counts = |line: &str| !source.shared || is_about(line, &namespace, &name);
    Ok(lines(&log, &source.label, counts))
}

/// The end of a log. The kubelet counts the bytes from the beginning of the tail, so a full answer lacks the newest lines:
/// fewer lines are read then.
async fn end_of_log(api: &Api<Pod>, pod: &str, params: &mut LogParams) -> Result<String, kube::Error> {
    loop {
        let mut bytes = Vec::new();
        let log = api.log_stream(pod, params).await?;
        let read = Box::pin(log).read_to_end(&mut bytes).await;
        read.map_err(kube::Error::ReadEvents)?;
        match &mut params.tail_lines {
            Some(lines @ 2..) if bytes.len() >= BYTES as usize => *lines = (*lines / 4).max(1),
            // Not `logs()`: a program may print anything, and the limit may cut a character.
            _ => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
}

/// Returns true if a line of the operator's log is about this validation: it carries the namespace and the name as
/// fields, or the reference that the controller's runtime adds. A name inside a message may be anyone's.
///
/// The line is not parsed: in JSON a span has two fields `name`, the validation's and its own, and a parser keeps
/// one.
fn is_about(line: &str, namespace: &str, name: &str) -> bool {
    let reference = format!("/{name}.{namespace}");
    has(line, "object.ref", |value| value.ends_with(&reference))
        || (has(line, "namespace", |value| value == namespace) && has(line, "name", |value| value == name))
}

/// Returns true if a field has such a value: `"key":"value"` in JSON, `key="value"` or `key=value` in text.
fn has(line: &str, key: &str, wanted: impl Fn(&str) -> bool) -> bool {
    line.match_indices(key).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let value = match (before, &line[at + key.len()..]) {
            // In a message that is quoted in JSON there is a backslash before the second quote.
            (Some('"'), after) => after.strip_prefix("\":\""),
            (Some(letter), _) if letter.is_alphanumeric() || "._-\\".contains(letter) => None,
            (_, after) => after.strip_prefix('=').map(|after| after.trim_start_matches('"')),
        };
        let end = |letter: char| !(letter.is_ascii_alphanumeric() || "./-".contains(letter));
        value.is_some_and(|value| wanted(value.split(end).next().unwrap_or_default()))
    })
}
