//! Origin of the end of a worker's container before its restart: a crash of its own, or an order from outside.

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::core::v1::ContainerStateTerminated;
use perfval_api::EndedBy;
use perfval_sizing::Seen;

use crate::observed::PodEvent;
use crate::time;

/// Exit codes of a process that ended as it was ordered to.
const ASKED: [i32; 2] = [0, 128 + SIGTERM];
const KILLED: i32 = 128 + SIGKILL;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
/// Exit codes of a process that crashed by a signal of its own: ILL, TRAP, ABRT, BUS, FPE, SEGV.
const CRASHED: [i32; 6] = [132, 133, 134, 135, 136, 139];
/// Time from the last failure of a probe that a kubelet reports to the end of the container: workers have 20 s to
/// end, and the probe runs again in that time.
const AFTER_PROBE: TimeDelta = TimeDelta::seconds(60);

/// Origin of the end of a container that did not crash. `events` of its pod; if they could not be read, a process
/// that was killed may have been killed for its probe.
pub(crate) fn ended_by(uid: &str, ended: &ContainerStateTerminated, events: &Seen<Vec<PodEvent>>) -> Option<EndedBy> {
    let for_memory = ended.reason.as_deref() == Some("OOMKilled");
    if !was_seen(ended) || for_memory || CRASHED.contains(&ended.exit_code) {
        return None;
    }
    let began = ended.started_at.as_ref().map(time::from_kubernetes);
    let over = ended.finished_at.as_ref().map(time::from_kubernetes);
    let plain = ASKED.contains(&ended.exit_code) || ended.exit_code == KILLED;
    let of_probe =
        |event: &PodEvent| event.pod_uid == uid && (ends_by_probe(event, began) || (plain && fails_probe(event, over)));
    let events = events.present();
    if events.is_some_and(|events| events.iter().any(of_probe)) {
        return Some(EndedBy::Probe);
    }
    match ended.exit_code {
        code if ASKED.contains(&code) => Some(EndedBy::Request),
        KILLED if events.is_none() => Some(EndedBy::Signal),
        _ => None,
    }
}

/// The kubelet's own words: `Container main failed liveness probe, will be restarted`. One of an earlier container of the pod
/// does not count.
fn ends_by_probe(event: &PodEvent, began: Option<DateTime<Utc>>) -> bool {
    let is_later = event.last_seen.zip(began).is_none_or(|(seen, began)| seen >= began);
    let by_probe = ["failed liveness probe", "failed startup probe"];
    event.reason == "Killing" && by_probe.iter().any(|words| event.message.contains(words)) && is_later
}

/// A probe that failed shortly before the end. A kubelet sends 25 Events of a pod and then one in five minutes, so that of a
/// pod in trouble the one with the reason `Killing` may be lost.
fn fails_probe(event: &PodEvent, over: Option<DateTime<Utc>>) -> bool {
    let failed = ["Liveness probe failed", "Startup probe failed"];
    let near = |(seen, over): (DateTime<Utc>, DateTime<Utc>)| seen <= over && over - seen <= AFTER_PROBE;
    event.reason == "Unhealthy"
        && failed.iter().any(|words| event.message.starts_with(words))
        && event.last_seen.zip(over).is_some_and(near)
}

/// Returns true if its end was observed. 255 with `Unknown` is containerd's report of a container that is gone when
/// it starts again itself (seen on the lab after a reboot), `ContainerStatusUnknown` is the kubelet's; a process that
/// exits with 255 has `Error`.
pub(crate) fn was_seen(ended: &ContainerStateTerminated) -> bool {
    let reason = ended.reason.as_deref();
    (ended.exit_code, reason) != (255, Some("Unknown")) && reason != Some("ContainerStatusUnknown")
}
