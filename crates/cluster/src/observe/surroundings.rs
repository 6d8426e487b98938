//! Surroundings of a run's pods: refusals to create them, and the node they are on. They are read only if pods are
//! missing or late, as a run that goes well needs neither.

use std::sync::Arc;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{Api, ListParams};
use perfval_run::diagnosis::pods::is_of_other_architecture;
use perfval_run::observed::{NodeSeen, PodEvent};
use perfval_run::{Run, names, readiness, status, time};
use perfval_sizing::Seen;

use super::workload::{PROMPT, read_event};
use crate::Cluster;
use crate::call::{ALL, Read, read, seen};
use crate::copies::RunCopies;

/// Refusals of a run, and of all runs of a namespace, that are kept: a controller has some ten of them, but a tenant may write
/// thousands.
const REFUSALS: usize = 500;
const REFUSALS_OF_ALL: usize = 2_000;

impl Cluster {
    /// Refusals to create pods of the run, read within the last ten seconds.
    pub(super) async fn refusals(&self, run: &Run<'_>, pods: &[Pod]) -> Seen<Vec<PodEvent>> {
        if !self.lacks_pods_for_long(run, pods) {
            return Seen::NotAsked;
        }
        // Names of objects by Dynamo's operator begin with the deployment's name, which no other run has.
        let prefix = format!("{}-", names::deployment(&run.id()));
        let is_own = |event: &&PodEvent| {
            let name = event.pod.split_once(' ').map(|(_kind, name)| name);
            name.is_some_and(|name| name.starts_with(&prefix))
        };
        let refusals = self.recent_refusals(run.namespace()).await;
        refusals.map(|refusals| refusals.iter().filter(is_own).take(REFUSALS).cloned().collect())
    }

    pub(super) async fn node(
        &self,
        run: &Run<'_>,
        pods: &[Pod],
        some_are_late: bool,
        copies: &RunCopies,
    ) -> Seen<NodeSeen> {
        let is_wanted = || some_are_late || pods.iter().any(is_of_other_architecture);
        match run.placement() {
            Some(plan) if is_wanted() || self.lacks_pods_for_long(run, pods) => {
                seen(self.node_named(&plan.node, copies).await)
            }
            _ => Seen::NotAsked,
        }
    }

    /// Returns true if pods are missing, and not only since the phase or the trial began.
    fn lacks_pods_for_long(&self, run: &Run<'_>, pods: &[Pod]) -> bool {
        let status = run.status();
        let open = status.state.trials.last().filter(|trial| trial.outcome.is_none());
        let began = status::phase_started_at(status).max(open.map(|trial| trial.started_at));
        let had_time = began.is_none_or(|began| self.now() >= time::after(began, PROMPT));
        had_time && readiness::lacks_pods(run, pods)
    }

    /// Refusals in a namespace, for all of its runs: the API server decodes every Event of the namespace for such a list. With
    /// 100 runs on a busy API server each list took 4 s, so that more pods came late.
    async fn recent_refusals(&self, namespace: &str) -> Seen<Arc<[PodEvent]>> {
        let namespace = namespace.to_owned();
        let refusals = self.refusals.get(&namespace).unwrap_or_else(|| {
            let (cluster, namespace) = (self.clone(), namespace.clone());
            let key = namespace.clone();
            let read = async move { seen(cluster.list_refusals(&namespace).await) }
                .boxed()
                .shared();
            self.refusals.keep(key, read.clone());
            read
        });
        let refusals = refusals.await;
        if matches!(refusals, Seen::Unknown(_)) {
            self.refusals.take(&namespace);
        }
        refusals
    }

    /// All pages: the Events of a namespace come in the order of their names, and another controller may have hundreds.
    async fn list_refusals(&self, namespace: &str) -> Read<Arc<[PodEvent]>> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let params = ListParams::default().fields("reason=FailedCreate,type=Warning");
        let call = format!("list Events FailedCreate of {namespace}");
        let read_of_runs = |kept: &mut usize, event: Event| {
            let of = &event.involved_object;
            let name = of.name.as_ref().filter(|name| name.starts_with(names::PREFIX))?;
            *kept += 1;
            if *kept > REFUSALS_OF_ALL {
                return None;
            }
            let named = format!("{} {name}", of.kind.as_deref().unwrap_or("controller"));
            let uid = of.uid.clone().unwrap_or_default();
            Some(read_event((named, uid), event))
        };
        let listed = self.list_as(ALL, api.resource_url(), params, 0, read_of_runs).await;
        Ok(read(&call, listed)?.items.into())
    }

    async fn node_named(&self, name: &str, copies: &RunCopies) -> Read<NodeSeen> {
        if copies.may_serve()
            && let Some(ready) = self.known_ready_node(name)
        {
            copies.note_use();
            return Ok(ready);
        }
        let api: Api<Node> = Api::all(self.client.clone());
        let node = read(&format!("get Node {name}"), self.bounded(api.get(name)).await)?;
        let status = node.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
        Ok(NodeSeen {
            ready: ready.as_ref().is_some_and(|ready| ready.status == "True"),
            message: ready.and_then(|ready| ready.message).unwrap_or_default(),
            architecture: status.node_info.map(|info| info.architecture).unwrap_or_default(),
        })
    }
}
