use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ListParams};
use kube::core::ResourceExt as _;
use perfval_api::meta::RUN_LABEL;
use perfval_api::{Phase, text};
use perfval_run::diagnosis::error_logs;
use perfval_run::diagnosis::log::wanted;
use perfval_run::diagnosis::pods::is_prepared;
use perfval_run::observed::{ErrorLog, NodeSeen, PodEvent, PodLog};
use perfval_run::{Run, preemption, readiness, time};
use perfval_sizing::Seen;

use super::children::list_params;
use super::log::LOGS_AT_ONCE;
use crate::Cluster;
use crate::call::{ALL, FIRST, Read, read, seen, unless_absent};
use crate::copies::RunCopies;
use crate::pod_reports::{PodReports, Subjects};

/// Most pods whose events are read one by one. One is enough for the message.
const PODS: usize = 16;
/// Events per pod; a kubelet repeats itself by counting, not by new Events.
const EVENTS: u32 = 50;
/// Events of a namespace that are read at once, of 1 KB each.
const EVENTS_OF_ALL: u32 = 200;
/// Warnings on pods that are not prepared: no probe of theirs can fail. Each worker that loads a model has such a warning, and
/// those of 25 runs would not fit on one page.
const UNPREPARED: &str = "type=Warning,reason!=Unhealthy";
/// Bytes of each text of an Event that are kept: a tenant may write a megabyte.
const EVENT_TEXT: usize = 1024;
const AT_ONCE: usize = 4;
/// A pod whose image is there is ready within this time, or something is in its way.
pub(super) const PROMPT: Duration = Duration::from_secs(10);

/// Pods of a run, reports on them, and their logs.
pub(super) struct WorkloadSeen {
    pub(super) pods: Seen<Vec<Pod>>,
    pub(super) reports: PodReports,
    pub(super) node: Seen<NodeSeen>,
    pub(super) error_logs: Vec<ErrorLog>,
}

impl Cluster {
    /// Pods of any run of this object, and, where a phase waits for them, the warnings on those pods of this
    /// run that are on their way.
    pub(super) async fn workload(&self, run: &Run<'_>, copies: &RunCopies) -> WorkloadSeen {
        let pods = match copies.list() {
            Some(pods) => Seen::Present(pods),
            None => seen(self.pods_of(run).await),
        };
        let mut workload = WorkloadSeen {
            reports: PodReports::default(),
            node: Seen::NotAsked,
            error_logs: Vec::new(),
            pods,
        };
        if let Seen::Present(pods) = &workload.pods {
            workload.error_logs = self.error_logs(run, pods).await;
            if waits_for_pods(run) {
                let late: Vec<&Pod> = late(run, pods, self.now()).collect();
                (workload.reports, workload.node) = futures::join!(
                    Box::pin(self.pod_reports(run, pods, &late, copies)),
                    Box::pin(self.node(run, pods, !late.is_empty(), copies))
                );
            }
        }
        workload
    }

    async fn pods_of(&self, run: &Run<'_>) -> Read<Vec<Pod>> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), run.namespace());
        let listed = self.list_whole(&api, list_params(run)).await;
        let listed = read(&listing(run, "Pods"), listed)?;
        self.copies.keep(run, &listed.version, &listed.items);
        Ok(listed.items)
    }

    async fn pod_reports(&self, run: &Run<'_>, pods: &[Pod], late: &[&Pod], copies: &RunCopies) -> PodReports {
        let restarted = readiness::restarted(run, pods);
        let lacks_pods = preemption::lacks_pods(run, pods, late);
        // A worker that loads its weights is late for minutes, but no warning of the kubelet explains it.
        let unprepared: Vec<&Pod> = late.iter().copied().filter(|pod| !is_prepared(pod)).collect();
        let subjects = Subjects {
            unprepared: uids(&unprepared),
            restarted: uids(&restarted),
            need_more: lacks_pods || readiness::lacks_pods(run, pods) || !wanted(run, pods).is_empty(),
        };
        if let Some(kept) = copies.reports(&subjects) {
            return kept.clone();
        }
        // On the heap: six reads at once.
        let (events, endings, preemptions, logs, refusals) = futures::join!(
            self.pod_events(&unprepared, UNPREPARED),
            Box::pin(self.endings(&restarted)),
            async {
                if lacks_pods {
                    seen(Box::pin(self.preemptions(run, pods)).await)
                } else {
                    Seen::NotAsked
                }
            },
            self.pod_logs(run, pods),
            Box::pin(self.refusals(run, pods))
        );
        let reports = PodReports {
            subjects,
            events: seen(events),
            endings,
            preemptions,
            refusals,
            logs,
        };
        self.copies.keep_reports(run, &reports);
        reports
    }

    /// Claims of any run of this object.
    pub(super) async fn claims_of(&self, run: &Run<'_>) -> Read<Vec<ResourceClaim>> {
        let api: Api<ResourceClaim> = Api::namespaced(self.client.clone(), run.namespace());
        let claims = self.list(&api, list_params(run)).await;
        let claims = unless_absent(read(&listing(run, "ResourceClaims"), claims))?;
        // Without Dynamic Resource Allocation there are no claims.
        Ok(claims.unwrap_or_default())
    }

    /// The ends of those logs that show why pods do not serve: of few pods, and only of those in trouble.
    async fn pod_logs(&self, run: &Run<'_>, pods: &[Pod]) -> Vec<PodLog> {
        let logs = wanted(run, pods).into_iter().map(|of| async move {
            let text = seen(self.end_of_log(run, &of).await);
            PodLog { of, text }
        });
        join_all(logs.collect::<Vec<_>>()).await
    }

    /// Last lines of the frontend and the workers in trials with errors.
    async fn error_logs(&self, run: &Run<'_>, pods: &[Pod]) -> Vec<ErrorLog> {
        let logs: Vec<_> = error_logs::wanted(run, pods)
            .into_iter()
            .map(|of| async move {
                let trials = seen(self.dated_log(run, &of, |log| error_logs::cut(run, log)).await);
                ErrorLog { of, trials }
            })
            .collect();
        stream::iter(logs).buffered(LOGS_AT_ONCE).collect().await
    }

    /// Events on pods that restarted. The kubelet reports as `Normal` that it ends a container for its probe.
    async fn endings(&self, restarted: &[&Pod]) -> Seen<Vec<PodEvent>> {
        if restarted.is_empty() {
            return Seen::NotAsked;
        }
        let (killing, unhealthy) = futures::join!(
            self.pod_events(restarted, "reason=Killing"),
            self.pod_events(restarted, "reason=Unhealthy")
        );
        seen(killing.and_then(|killing| Ok([killing, unhealthy?].concat())))
    }

    /// Events of the scheduler on workers of this run that it removed for others. They outlive the pods.
    async fn preemptions(&self, run: &Run<'_>, pods: &[Pod]) -> Read<Vec<PodEvent>> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), run.namespace());
        let which = format!("involvedObject.kind=Pod,reason={}", preemption::PREEMPTED);
        let params = ListParams::default().fields(&which);
        let read_own = |kept: &mut usize, event: Event| {
            let name = event.involved_object.name.clone()?;
            let uid = event.involved_object.uid.clone()?;
            if *kept == PODS || !preemption::is_of_missing_worker(run, pods, &name, &uid) {
                return None;
            }
            *kept += 1;
            Some(read_event((name, uid), event))
        };
        let found = self.list_as(ALL, api.resource_url(), params, 0, read_own).await;
        let call = format!("list preemptions of Pods of {}", run.namespace());
        Ok(read(&call, found)?.items)
    }

    /// Events on these pods: one list of the namespace, or one for each pod where the namespace has too many of them.
    async fn pod_events(&self, pods: &[&Pod], which: &str) -> Read<Vec<PodEvent>> {
        if pods.len() > 1
            && let Some(events) = self.events_of_all(pods, which).await?
        {
            return Ok(events);
        }
        // Futures made here, not in the stream: a borrowing closure in it would not be Send for a spawned pass.
        let waiting: Vec<_> = pods.iter().take(PODS).map(|pod| self.events_on(pod, which)).collect();
        let lists: Vec<Vec<PodEvent>> = stream::iter(waiting).buffered(AT_ONCE).try_collect().await?;
        Ok(lists.concat())
    }

    /// Events on these pods among all of their namespace; `None` if those do not fit on one page.
    async fn events_of_all(&self, pods: &[&Pod], which: &str) -> Read<Option<Vec<PodEvent>>> {
        let namespace = pods.first().and_then(|pod| pod.namespace()).unwrap_or_default();
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let params = ListParams::default()
            .fields(&format!("involvedObject.kind=Pod,{which}"))
            .limit(EVENTS_OF_ALL);
        let call = format!("list Events on Pods of {namespace}");
        let read_own = |(): &mut (), event: Event| {
            let uid = event.involved_object.uid.clone()?;
            let pod = pods.iter().find(|pod| pod.uid().as_ref() == Some(&uid))?;
            Some(read_event((pod.name_any(), uid), event))
        };
        let found = self.list_as(FIRST, api.resource_url(), params, (), read_own).await;
        let found = read(&call, found)?;
        Ok(found.is_whole.then(|| newest_first(found.items)))
    }

    async fn events_on(&self, pod: &Pod, which: &str) -> Read<Vec<PodEvent>> {
        let (namespace, uid) = (pod.namespace().unwrap_or_default(), pod.uid().unwrap_or_default());
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let params = ListParams::default()
            .fields(&format!("involvedObject.uid={uid},{which}"))
            .limit(EVENTS);
        let call = format!("list Events on Pod {namespace}/{}", pod.name_any());
        let of = || (pod.name_any(), pod.uid().unwrap_or_default());
        let read_own = |(): &mut (), event: Event| Some(read_event(of(), event));
        let found = self.list_as(FIRST, api.resource_url(), params, (), read_own).await;
        Ok(newest_first(read(&call, found)?.items))
    }
}

fn newest_first(mut events: Vec<PodEvent>) -> Vec<PodEvent> {
    events.sort_by_key(|event| std::cmp::Reverse(event.last_seen));
    events
}

fn listing(run: &Run<'_>, what: &str) -> String {
    format!("list {what} of {}/{}", run.namespace(), run.name())
}

fn uids(pods: &[&Pod]) -> BTreeSet<String> {
    pods.iter().filter_map(|pod| pod.uid()).collect()
}

/// Returns true if the run needs the reason why a pod does not start. A run that sizes or cleans up only counts its
/// pods: 123 lists of events were measured in one run that read them in every phase.
fn waits_for_pods(run: &Run<'_>) -> bool {
    run.status().phase.is_some_and(Phase::serves)
}

/// Pods of this run that should be ready by now.
fn late<'a>(run: &Run<'_>, pods: &'a [Pod], now: DateTime<Utc>) -> impl Iterator<Item = &'a Pod> {
    let id = run.id();
    let of_run = pods.iter().filter(move |pod| pod.labels().get(RUN_LABEL) == Some(&id));
    of_run.filter(move |pod| is_coming(pod) && is_late(pod, now))
}

/// Returns true if a pod is still on its way: not ready, not over and not being deleted.
fn is_coming(pod: &Pod) -> bool {
    !readiness::is_over(pod) && pod.metadata.deletion_timestamp.is_none() && !readiness::is_ready(pod)
}

/// Returns true if a pod has had time to start: until then its warnings are of no use. In one run, nine pods that
/// started at once had their warnings read 150 times, 0.1 s each in a namespace with thousands of Events.
fn is_late(pod: &Pod, now: DateTime<Utc>) -> bool {
    let created = pod.metadata.creation_timestamp.as_ref().map(time::from_kubernetes);
    created.is_none_or(|created| now >= time::after(created, PROMPT))
}

/// An Event on a pod, or on what makes pods; `of` is its name and uid.
pub(super) fn read_event(of: (String, String), event: Event) -> PodEvent {
    let observed = event
        .series
        .and_then(|series| series.last_observed_time)
        .or(event.event_time);
    let last_seen = event.last_timestamp.or(observed.map(|micro| Time(micro.0)));
    let kept = |words: String| text::cut(&words, EVENT_TEXT);
    PodEvent {
        pod: kept(of.0),
        pod_uid: kept(of.1),
        reason: kept(event.reason.unwrap_or_default()),
        message: kept(event.message.unwrap_or_default()),
        last_seen: last_seen.as_ref().map(time::from_kubernetes),
    }
}
