use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ListParams};
use kube::core::ResourceExt as _;
use perfval_api::Phase;
use perfval_api::meta::RUN_LABEL;
use perfval_run::diagnosis::log::wanted;
use perfval_run::observed::{PodEvent, PodLog};
use perfval_run::{Run, readiness, time};
use perfval_sizing::Seen;
use perfval_sizing::resource_api::VERSIONS;

use super::Workload;
use super::children::of_object;
use crate::Cluster;
use crate::call::{Read, Unread, read, seen};
use crate::page::Json;
use crate::resource_api::Wanted;

/// Pods whose events are read in one pass: one is enough for the message, and the next pass reads on.
const PODS: usize = 16;
/// Events per pod; a kubelet repeats itself by counting, not by new Events.
const EVENTS: u32 = 50;
const AT_ONCE: usize = 4;
/// A pod whose image is there is ready within this time, or something is in its way.
const PROMPT: Duration = Duration::from_secs(10);

impl Cluster {
    /// Pods and claims of any run of this object, and, where a phase waits for them, the warnings on those pods of this
    /// run that are on their way.
    pub(super) async fn workload(&self, run: &Run<'_>) -> Workload {
        let of = |what: &str| format!("list {what} of {}/{}", run.namespace(), run.name());
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), run.namespace());
        let listed = of("ResourceClaims");
        let its_claims = Wanted {
            call: &listed,
            versions: &VERSIONS,
            plural: "resourceclaims",
            namespace: Some(run.namespace()),
            params: of_object(run),
        };
        let (pods, claims) = futures::join!(
            self.list(&pods, of_object(run)),
            self.list_served(Json, its_claims, Some)
        );
        let pods = read(&of("Pods"), pods);
        let claims = match claims {
            // No Dynamic Resource Allocation here: no claims.
            Err(Unread::Absent) => Ok(Vec::new()),
            known => known,
        };
        let (events, logs) = match &pods {
            Ok(pods) if waits_for_pods(run) => {
                let (events, logs) = futures::join!(self.pod_events(run, pods), self.pod_logs(run, pods));
                (seen(events), logs)
            }
            _ => (Seen::NotAsked, Vec::new()),
        };
        Workload {
            pods: seen(pods),
            claims: seen(claims),
            events,
            logs,
        }
    }

    /// The ends of those logs that show why pods do not serve: of few pods, and only of those in trouble.
    async fn pod_logs(&self, run: &Run<'_>, pods: &[Pod]) -> Vec<PodLog> {
        let logs = wanted(run, pods).into_iter().map(|of| async move {
            let text = seen(self.end_of_log(run, &of).await);
            PodLog { of, text }
        });
        join_all(logs.collect::<Vec<_>>()).await
    }

    async fn pod_events(&self, run: &Run<'_>, pods: &[Pod]) -> Read<Vec<PodEvent>> {
        let (id, now) = (run.id(), self.now());
        // Futures made here, not in the stream: a borrowing closure in it would not be Send for a spawned pass.
        let waiting: Vec<_> = pods
            .iter()
            .filter(|pod| pod.labels().get(RUN_LABEL) == Some(&id))
            .filter(|pod| is_coming(pod) && is_late(pod, now))
            .take(PODS)
            .map(|pod| self.warnings_on(pod))
            .collect();
        let lists: Vec<Vec<PodEvent>> = stream::iter(waiting).buffered(AT_ONCE).try_collect().await?;
        Ok(lists.concat())
    }

    async fn warnings_on(&self, pod: &Pod) -> Read<Vec<PodEvent>> {
        let (namespace, uid) = (pod.namespace().unwrap_or_default(), pod.uid().unwrap_or_default());
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let params = ListParams::default()
            .fields(&format!("involvedObject.uid={uid},type=Warning"))
            .limit(EVENTS);
        let call = format!("list Events on Pod {namespace}/{}", pod.name_any());
        let found = read(&call, self.bounded(api.list(&params)).await)?;
        let mut events: Vec<PodEvent> = found.items.into_iter().map(|event| pod_event(pod, event)).collect();
        events.sort_by_key(|event| std::cmp::Reverse(event.last_seen));
        Ok(events)
    }
}

/// Whether the run asks why a pod does not start. One that sizes or cleans up only counts its pods: 123 lists of events
/// were measured in one run that read them in every phase.
fn waits_for_pods(run: &Run<'_>) -> bool {
    matches!(run.status().phase, Some(Phase::WaitingForReady | Phase::Benchmarking))
}

/// Whether a pod is still on its way: neither ready nor over nor going.
fn is_coming(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let over = matches!(phase, Some("Succeeded" | "Failed"));
    !over && pod.metadata.deletion_timestamp.is_none() && !readiness::is_ready(pod)
}

/// Whether a pod has had time to start: until then its warnings are of no use. Nine pods that started at once were asked
/// for theirs 150 times in one run, 0.1 s each in a namespace with thousands of Events (issue 12).
fn is_late(pod: &Pod, now: DateTime<Utc>) -> bool {
    let created = pod.metadata.creation_timestamp.as_ref().map(time::from_kubernetes);
    created.is_none_or(|created| now >= time::after(created, PROMPT))
}

fn pod_event(pod: &Pod, event: Event) -> PodEvent {
    let observed = event
        .series
        .and_then(|series| series.last_observed_time)
        .or(event.event_time);
    let last_seen = event.last_timestamp.or(observed.map(|micro| Time(micro.0)));
    PodEvent {
        pod: pod.name_any(),
        pod_uid: pod.uid().unwrap_or_default(),
        reason: event.reason.unwrap_or_default(),
        message: event.message.unwrap_or_default(),
        last_seen: last_seen.as_ref().map(time::from_kubernetes),
    }
}
