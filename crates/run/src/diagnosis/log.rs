//! Signs in a container's log of the reason why it does not serve.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};
use kube::core::ResourceExt as _;
use perfval_api::Phase;
use perfval_api::text::cut;
use serde_json::Value;

use crate::dynamo::log::{CRASHES, LISTED, SILENCE};
use crate::names::FILL_CONTAINER;
use crate::names::dynamo::MAIN;
use crate::observed::{LogRequest, PodLog};
use crate::obstacle::Obstacle;
use crate::readiness::{Pods, container_statuses, fillers, is_failed, is_ready};
use crate::run::Run;
use crate::secret::Redactor;

/// Logs read in one pass: one crashed worker shows as much as eight.
const LOGS: usize = 4;
/// Longest line that is read (bytes): the text of an error is at the beginning of its line.
const LINE_BYTES: usize = 8 << 10;
/// Longest quotation (bytes).
const QUOTED: usize = 240;

/// Answer of the kubelet in place of a log whose container is gone already; no text of the container's.
const NO_LOG: &str = "unable to retrieve container logs for ";

/// Words of a line that gives the reason why a process ended.
const ERROR_WORDS: [&str; 5] = ["error", "exception", "panicked", "fatal", "out of memory"];

/// The logs that a pass needs: of containers that crashed, of a pod that could not fill the model cache, and, where every
/// component is ready but no completion comes back, of the frontend.
pub fn wanted(run: &Run<'_>, pods: &[Pod]) -> Vec<LogRequest> {
    match run.status().phase {
        Some(Phase::Deploying) => return filler_logs(pods, &run.id()),
        Some(phase) if phase.is_measured() => {}
        _ => return Vec::new(),
    }
    let pods = Pods::new(pods, &run.id());
    let crashed = pods.all().flat_map(|pod| {
        let ended = container_statuses(pod).filter(|container| container.restart_count >= 1 && !is_ready(pod));
        ended.filter_map(|container| last_end(pod, container))
    });
    let silent = run.status().state.unanswered.is_some();
    let frontends = pods.frontends.iter().filter(|pod| silent && is_ready(pod));
    let frontends = frontends.map(|pod| LogRequest::new(pod.name_any(), MAIN, false));
    crashed.chain(frontends).take(LOGS).collect()
}

/// Logs of the pods that filled the cache and failed.
fn filler_logs(pods: &[Pod], run_id: &str) -> Vec<LogRequest> {
    let failed = fillers(pods, run_id).filter(|pod| is_failed(pod));
    let requests = failed.map(|pod| LogRequest::new(pod.name_any(), FILL_CONTAINER, false));
    requests.take(LOGS).collect()
}

/// The log of the last crash: the container that ended is the previous one as soon as the next is on its way.
fn last_end(pod: &Pod, container: &ContainerStatus) -> Option<LogRequest> {
    let ended = |state: &Option<ContainerState>| state.as_ref().is_some_and(|state| state.terminated.is_some());
    let previous = !ended(&container.state);
    let is_kept = !previous || ended(&container.last_state);
    is_kept.then(|| LogRequest::new(pod.name_any(), &container.name, previous))
}

/// A log as decisions may see it: no colours, no secrets, no endless lines.
pub fn clean(run: &Run<'_>, log: &str) -> String {
    let redactor = Redactor::new(run.spec());
    // A value of the spec that a cut goes through would show its beginning.
    let log = redactor.hide_values(&anstream::adapter::strip_str(log).to_string());
    let lines: Vec<String> = log.lines().map(|line| cut(line, LINE_BYTES)).collect();
    redactor.redact(&lines.join("\n"))
}

/// Obstacle in the log of a container that failed, if its log contains one, and the line that explains most.
pub(crate) fn failure(logs: &[PodLog], pod: &str, container: &str) -> Option<(Option<Obstacle>, String)> {
    let log = logs
        .iter()
        .find(|log| log.of.pod == pod && log.of.container == container)?;
    let text = log.text.present()?;
    match find(text, &CRASHES) {
        Some((obstacle, line)) => Some((Some(obstacle), line)),
        None => Some((None, last_words(text)?)),
    }
}

/// Obstacle in a frontend's log if ready pods do not answer, with the line.
pub fn silence(logs: &[PodLog]) -> Option<(Obstacle, String)> {
    let logs = logs.iter().filter(|log| !log.of.previous);
    let found = logs.filter_map(|log| {
        let text = log.text.present()?;
        find(text, &SILENCE).filter(|(obstacle, _)| *obstacle != Obstacle::NoInstances || !lists_workers(text))
    });
    found.min_by_key(|(obstacle, _)| SILENCE.iter().position(|(_, known)| known == obstacle))
}

/// Returns true if a frontend sees workers by now: in its first seconds each lists none, and then a worker that
/// failed or hung was reported as missing (lab).
fn lists_workers(log: &str) -> bool {
    let last = log.lines().rfind(|line| line.contains(LISTED));
    last.is_some_and(|line| find(line, &SILENCE).is_none())
}

/// The first of these texts that a log holds, and the last line with it; a terminal may have broken it in two.
fn find(log: &str, texts: &[(&str, Obstacle)]) -> Option<(Obstacle, String)> {
    let lines: Vec<&str> = log.lines().map(str::trim).collect();
    texts.iter().find_map(|(text, obstacle)| {
        let whole = lines
            .iter()
            .rfind(|line| line.contains(text))
            .map(|line| (*line).to_owned());
        let broken = || {
            let mut joined = lines.windows(2).map(|two| two.join(" "));
            joined.rfind(|two| two.contains(text))
        };
        Some((*obstacle, quote(&whole.or_else(broken)?, text)))
    })
}

/// The last line about an error; without one, the last line.
fn last_words(log: &str) -> Option<String> {
    let lines = || {
        log.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with(NO_LOG))
    };
    let error_word = |line: &str| {
        let line = line.to_ascii_lowercase();
        ERROR_WORDS.into_iter().find(|word| line.contains(word))
    };
    let line = lines()
        .rfind(|line| error_word(line).is_some())
        .or_else(|| lines().next_back())?;
    Some(quote(line, ""))
}

/// A line, cut short: of a long one, what follows from `text` on. Dynamo writes JSON with `DYN_LOGGING_JSONL`.
fn quote(line: &str, text: &str) -> String {
    let json: Option<Value> = serde_json::from_str(line).ok();
    let words = json.as_ref().map(|json| {
        let fields = ["message", "error"]
            .into_iter()
            .filter_map(|field| json[field].as_str());
        fields.collect::<Vec<_>>().join(": ")
    });
    let line = words.as_deref().filter(|words| !words.is_empty()).unwrap_or(line);
    let from = line.find(text).filter(|_| line.len() > QUOTED).unwrap_or(0);
    cut(&line[from..], QUOTED)
}
