//! Surroundings of a run's pods: refusals to create them, and the node they are on. They are read only if pods are
//! missing or late, as a run that goes well needs neither.

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

/// Refusals that are kept: a controller has some ten of them, but a tenant may write thousands.
const REFUSALS: usize = 500;

impl Cluster {
    /// Refusals to create pods of the run.
    pub(super) async fn refusals(&self, run: &Run<'_>, pods: &[Pod]) -> Seen<Vec<PodEvent>> {
        if self.lacks_pods_for_long(run, pods) {
            seen(self.refusals_of(run).await)
        } else {
            Seen::NotAsked
        }
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

    fn lacks_pods_for_long(&self, run: &Run<'_>, pods: &[Pod]) -> bool {
        let began = status::phase_started_at(run.status());
        let had_time = began.is_none_or(|began| self.now() >= time::after(began, PROMPT));
        had_time && readiness::lacks_pods(run, pods)
    }

    /// Events about controllers of this run that may not create its pods. All pages: the Events of a namespace come in the order of their
    /// names, and another controller may have hundreds.
    async fn refusals_of(&self, run: &Run<'_>) -> Read<Vec<PodEvent>> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), run.namespace());
        let params = ListParams::default().fields("reason=FailedCreate,type=Warning");
        let call = format!("list Events FailedCreate of {}", run.namespace());
        // Names of objects by Dynamo's operator begin with the deployment's name, which no other run has.
        let prefix = format!("{}-", names::deployment(&run.id()));
        let read_own = |kept: &mut usize, event: Event| {
            let of = &event.involved_object;
            let name = of.name.as_ref().filter(|name| name.starts_with(&prefix))?;
            *kept += 1;
            if *kept > REFUSALS {
                return None;
            }
            let named = format!("{} {name}", of.kind.as_deref().unwrap_or("controller"));
            let uid = of.uid.clone().unwrap_or_default();
            Some(read_event((named, uid), event))
        };
        let listed = self.list_as(ALL, api.resource_url(), params, 0, read_own).await;
        Ok(read(&call, listed)?.items)
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
