//! The API server's audit log: what the operator wrote, and how fast it reacted.

mod tail;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use crate::lab::Lab;
pub use tail::AuditTail;

/// The installed operator, as the API server knows it.
pub const OPERATOR: &str = "system:serviceaccount:perfvalidation-system:perfvalidation-operator";

/// Writes of the operator in one namespace, and the events before them.
#[derive(Debug, Default)]
pub struct Audit {
    /// Writes by resource, lease renewals aside.
    pub writes: BTreeMap<String, usize>,
    /// Time from a change of a trial's Job to the write that answers it.
    pub reactions: Reactions,
}

/// Times from a change of a trial's Job to the operator's next write.
#[derive(Debug, Default)]
pub struct Reactions(Vec<TimeDelta>);

/// The event that was not answered yet.
#[derive(Debug)]
struct Event {
    at: DateTime<Utc>,
    /// When the operator last looked because of it.
    looked: Option<DateTime<Utc>>,
}

/// A look takes less, and a pass that a timer starts (progress, heartbeats) comes later.
const LOOK: TimeDelta = TimeDelta::seconds(1);

impl Event {
    /// Whether it asked for no write: the operator looked, wrote nothing, and did nothing more until `now`.
    fn is_answered(&self, now: DateTime<Utc>) -> bool {
        self.looked.is_some_and(|looked| now - looked > LOOK)
    }
}

impl Reactions {
    /// The median (s).
    pub fn median_seconds(&self) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort();
        let milliseconds = sorted.get(sorted.len() / 2)?.num_milliseconds();
        Some(Duration::from_millis(milliseconds.unsigned_abs()).as_secs_f64())
    }
}

/// A request that the API server answered.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who asked; of one that acted as another, the other.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, …
    pub verb: String,
    /// Resource and subresource, such as `pods` or `pods/log`; empty for what is none.
    pub kind: String,
    /// Namespace of the object; empty where it has none.
    pub namespace: String,
    /// Name of the object; empty for lists, and for a creation whose name is in its body.
    pub name: String,
    /// When the request came.
    pub received: DateTime<Utc>,
    /// When its answer was complete.
    pub answered: DateTime<Utc>,
    /// The answer's HTTP status; 0 where there is none.
    pub code: u16,
    /// Set if it asked to store nothing.
    pub dry_run: bool,
}

impl Call {
    /// Whether it changed something.
    pub fn is_write(&self) -> bool {
        is_write(&self.verb)
    }

    /// Whether it was carried out.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

fn is_write(verb: &str) -> bool {
    matches!(verb, "create" | "update" | "patch" | "delete")
}

/// A line of the log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub(crate) verb: String,
    stage: String,
    #[serde(default, rename = "requestURI")]
    uri: String,
    pub(crate) user: User,
    #[serde(default)]
    impersonated_user: Option<User>,
    #[serde(default)]
    pub(crate) object_ref: Option<ObjectRef>,
    #[serde(default)]
    pub(crate) annotations: Annotations,
    #[serde(default)]
    response_status: ResponseStatus,
    stage_timestamp: DateTime<Utc>,
    request_received_timestamp: DateTime<Utc>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

#[derive(Deserialize)]
pub(crate) struct User {
    pub(crate) username: String,
}

/// What the request is about.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ObjectRef {
    pub(crate) api_group: String,
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    subresource: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Annotations {
    /// The authoriser's: `allow` or `forbid`.
    #[serde(rename = "authorization.k8s.io/decision")]
    pub(crate) decision: String,
}

/// The event whose answer is timed: the Job controller writes that a trial has started or ended. Most changes of pods have no answer,
/// and a pass over them may read nothing.
const EVENT: &str = "jobs/status";

impl Audit {
    /// Reads the lab's log: writes of the installed operator in `namespace` since `since`.
    ///
    /// # Panics
    /// If the log cannot be read.
    pub async fn read(lab: &Lab, namespace: &str, since: DateTime<Utc>) -> Self {
        Self::of(entries(&log(lab, since).await), namespace, since)
    }

    fn of(entries: impl Iterator<Item = Entry>, namespace: &str, since: DateTime<Utc>) -> Self {
        let mut audit = Self::default();
        let mut last_event: Option<Event> = None;
        for entry in entries {
            let Some(object) = &entry.object_ref else { continue };
            let ours = entry.user.username == OPERATOR;
            let counts = if ours {
                object.resource != "leases"
            } else {
                is_write(&entry.verb)
            };
            if entry.stage != "ResponseComplete"
                || !counts
                || object.namespace != namespace
                || entry.stage_timestamp < since
            {
                continue;
            }
            if !ours {
                if object.kind() == EVENT {
                    last_event = Some(Event {
                        at: entry.stage_timestamp,
                        looked: None,
                    });
                }
                continue;
            }
            // The log is in order of the answers: what began before the event does not answer it.
            let asked = entry.request_received_timestamp;
            last_event.take_if(|event| event.is_answered(asked));
            let after = last_event.as_mut().filter(|event| event.at <= asked);
            // A dry run stores nothing.
            if !is_write(&entry.verb) || entry.uri.contains("dryRun=") {
                if let Some(event) = after {
                    event.looked = Some(asked);
                }
                continue;
            }
            *audit.writes.entry(object.kind()).or_default() += 1;
            // Only the first write after another's reacts to it.
            if let Some(event) = after {
                audit.reactions.0.push(asked - event.at);
                last_event = None;
            }
        }
        audit
    }

    /// Requests of the installed operator that were answered between two moments, reads too, lease renewals aside.
    ///
    /// # Panics
    /// If the log cannot be read.
    pub async fn requests(lab: &Lab, since: DateTime<Utc>, until: DateTime<Utc>) -> usize {
        let counts = |entry: &Entry| {
            let of_lease = entry
                .object_ref
                .as_ref()
                .is_some_and(|object| object.resource == "leases");
            entry.stage == "ResponseComplete"
                && entry.user.username == OPERATOR
                && (since..until).contains(&entry.stage_timestamp)
                && !of_lease
        };
        entries(&log(lab, since).await).filter(counts).count()
    }

    /// Every request that was answered since a moment, in the order of the answers.
    ///
    /// # Panics
    /// If the log cannot be read.
    pub async fn calls(lab: &Lab, since: DateTime<Utc>) -> Vec<Call> {
        let answered = |entry: &Entry| entry.stage == "ResponseComplete" && entry.stage_timestamp >= since;
        entries(&log(lab, since).await)
            .filter(answered)
            .map(Call::from)
            .collect()
    }

    /// How soon after its creation each object of a namespace had its first status, by name.
    ///
    /// # Panics
    /// If the log cannot be read.
    pub async fn first_statuses(lab: &Lab, namespace: &str, since: DateTime<Utc>) -> BTreeMap<String, Duration> {
        let (mut created, mut delays) = (BTreeMap::new(), BTreeMap::new());
        for entry in entries(&log(lab, since).await) {
            let Some(object) = entry.object_ref else { continue };
            if entry.stage != "ResponseComplete" || object.namespace != namespace {
                continue;
            }
            match (object.kind().as_str(), entry.verb.as_str()) {
                ("perfvalidations", "create") => {
                    created.insert(object.name, entry.stage_timestamp);
                }
                ("perfvalidations/status", "patch") if !delays.contains_key(&object.name) => {
                    if let Some(at) = created.get(&object.name) {
                        let delay = (entry.stage_timestamp - at).to_std().unwrap_or_default();
                        delays.insert(object.name, delay);
                    }
                }
                _ => {}
            }
        }
        delays
    }

    /// All writes.
    pub fn total(&self) -> usize {
        self.writes.values().sum()
    }
}

/// The log since a moment. The API server moves it aside at 100 MB, which a hundred waiting objects filled in six minutes.
async fn log(lab: &Lab, since: DateTime<Utc>) -> String {
    let path = PathBuf::from(lab.run(&["audit-log"]).await.trim());
    let read =
        |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_newer = |path: &Path| {
        let changed = path.metadata().and_then(|metadata| metadata.modified());
        changed.is_ok_and(|changed| DateTime::<Utc>::from(changed) >= since)
    };
    let folder = path.parent().map(std::fs::read_dir).and_then(Result::ok);
    let mut moved: Vec<PathBuf> = folder
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("audit-") && name.ends_with(".log") && is_newer(file)
        })
        .collect();
    // Their names hold the time.
    moved.sort();
    moved.push(path);
    moved.iter().map(|path| read(path)).collect()
}

/// The lines of a log. One that was cut off by the end of the API server is left out.
pub(crate) fn entries(log: &str) -> impl Iterator<Item = Entry> {
    log.lines().filter_map(|line| serde_json::from_str(line).ok())
}

impl From<Entry> for Call {
    fn from(entry: Entry) -> Self {
        let object = entry.object_ref.unwrap_or_default();
        Self {
            user: entry.impersonated_user.unwrap_or(entry.user).username,
            verb: entry.verb,
            kind: object.kind(),
            namespace: object.namespace,
            name: object.name,
            received: entry.request_received_timestamp,
            answered: entry.stage_timestamp,
            code: entry.response_status.code,
            dry_run: entry.uri.contains("dryRun="),
        }
    }
}

impl ObjectRef {
    /// Resource and subresource.
    pub(crate) fn kind(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(super) const CONTROLLER: &str = "system:serviceaccount:kube-system:job-controller";

    /// A request that was answered at once, so many milliseconds after the first.
    pub(super) fn request(at: i64, user: &str, verb: &str, resource: &str) -> Value {
        let at = DateTime::from_timestamp_millis(1_800_000_000_000 + at).expect("a time");
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        json!({
            "verb": verb, "stage": "ResponseComplete", "user": {"username": user},
            "objectRef": {"resource": resource, "subresource": subresource, "namespace": "perf"},
            "stageTimestamp": at, "requestReceivedTimestamp": at,
        })
    }

    fn reactions(requests: &[Value]) -> Vec<i64> {
        let log: Vec<String> = requests.iter().map(Value::to_string).collect();
        let audit = Audit::of(entries(&log.join("\n")), "perf", DateTime::UNIX_EPOCH);
        audit.reactions.0.iter().map(TimeDelta::num_milliseconds).collect()
    }

    #[test]
    fn a_write_answers_the_change_of_a_job_before_it_however_late() {
        let late = [
            request(0, CONTROLLER, "update", EVENT),
            request(15, OPERATOR, "list", "pods"),
            request(40, OPERATOR, "patch", "perfvalidations"),
            request(50, OPERATOR, "create", "jobs"),
            request(60, CONTROLLER, "update", EVENT),
            request(70, CONTROLLER, "patch", "pods"),
            request(9_060, OPERATOR, "list", "pods"),
            request(9_090, OPERATOR, "patch", "perfvalidations"),
        ];
        assert_eq!(reactions(&late), [40, 9_030]);
    }

    #[test]
    fn a_dry_run_is_no_write() {
        let mut dry = request(0, OPERATOR, "create", "dynamographdeployments");
        dry["requestURI"] = json!("/apis/nvidia.com/v1beta1/namespaces/perf/dynamographdeployments?&dryRun=All");
        let real = request(1, OPERATOR, "create", "dynamographdeployments");
        let log = format!("{dry}\n{real}");
        let audit = Audit::of(entries(&log), "perf", DateTime::UNIX_EPOCH);
        assert_eq!(audit.total(), 1, "{:?}", audit.writes);
    }

    #[test]
    fn a_write_of_a_timer_answers_no_event_that_was_looked_at_before() {
        let progress = [
            request(0, CONTROLLER, "update", EVENT),
            request(15, OPERATOR, "list", "pods"),
            request(5_015, OPERATOR, "list", "pods"),
            request(5_040, OPERATOR, "patch", "perfvalidations"),
        ];
        assert_eq!(reactions(&progress), [0_i64; 0]);
    }
}
