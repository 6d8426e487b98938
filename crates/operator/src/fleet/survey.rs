//! Nodes of all policies, with their free GPUs.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use perfval_api::fleet::PerfValidationPolicy;
use perfval_cluster::Look;
use perfval_fleet::policy::{SelectedNode, Selection};
use perfval_sizing::Fleet;
use tokio::time::{Instant, timeout};

use crate::context::Context;
use crate::planner::apart;

/// A read that takes longer is given up: every call in it has its own, shorter limit.
const LIMIT: Duration = Duration::from_mins(2);

pub(super) struct Surveyed {
    at: Instant,
    /// Policies in the order of `nodes`, with their generations.
    policies: Vec<(String, Option<i64>)>,
    pub(super) nodes: Arc<[Vec<SelectedNode>]>,
}

impl Surveyed {
    /// Returns true if the nodes of exactly these policies were read in the last while.
    pub(super) fn is_current(&self, policies: &[Arc<PerfValidationPolicy>], age: Duration) -> bool {
        self.at.elapsed() < age && self.policies == identities(policies)
    }
}

fn identities(policies: &[Arc<PerfValidationPolicy>]) -> Vec<(String, Option<i64>)> {
    let identity = |policy: &Arc<PerfValidationPolicy>| (policy.uid().unwrap_or_default(), policy.metadata.generation);
    policies.iter().map(identity).collect()
}

/// Reads the nodes of all policies. Fails with the part of the cluster that is unknown, and the reason.
pub(super) async fn survey(context: &Context, policies: &[Arc<PerfValidationPolicy>]) -> Result<Surveyed, String> {
    let at = Instant::now();
    let read = async {
        let specs: Vec<_> = policies
            .iter()
            .map(|policy| &policy.spec.validation_template.spec)
            .collect();
        let survey = context.cluster.survey(&specs).await;
        let policies = policies.to_vec();
        let selected = apart(move || select(&survey, &policies)).await;
        selected.map_err(|error| format!("no node was selected: {error}"))?
    };
    let nodes = timeout(LIMIT, Box::pin(read)).await;
    Ok(Surveyed {
        at,
        policies: identities(policies),
        nodes: nodes
            .map_err(|_| format!("no answer within {} s", LIMIT.as_secs()))??
            .into(),
    })
}

fn select(survey: &Look, policies: &[Arc<PerfValidationPolicy>]) -> Result<Vec<Vec<SelectedNode>>, String> {
    let fleet = Fleet::new(survey.inventory());
    let select = |policy: &Arc<PerfValidationPolicy>| {
        let spec = &policy.spec.validation_template.spec;
        let of_run = survey.for_spec(spec).ok_or("the device class was not read")?;
        let selection = Selection::new(&policy.spec.node_selector);
        fleet.survey(of_run, spec, |node| selection.matches(|key| node.label(key)))
    };
    policies.iter().map(select).collect()
}
