//! Policies, and the outliers that they found.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use kube::core::DeserializeGuard;
use perfval_api::condition::READY;
use perfval_api::fleet::{MOST_OUTLIERS, Outlier, OutlierConfidence, OutlierReason, PerfValidationPolicy};
use perfval_fleet::policy::{PolicyReason, Selection};
use perfval_sizing::tolerated;

use crate::error::{Error, is_missing_kind};
use crate::listed::keep_readable;
use crate::screen::Screen;
use crate::session::Session;

const READ: &str = "read PerfValidationPolicies";
/// Taint of a cordoned node.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// All policies of the cluster.
#[derive(Default)]
pub struct Policies {
    pub all: Vec<PerfValidationPolicy>,
    /// Number of policies that cannot be parsed.
    pub unparsed: usize,
    /// Exit code; not 0 if one cannot be read.
    pub code: u8,
    /// True if these are all of them.
    is_known: bool,
}

impl Policies {
    /// Reads them. A person who may not read them sees the measurements without the outliers, and a note.
    pub async fn read(screen: &mut Screen, session: &Session) -> Self {
        let api: Api<DeserializeGuard<PerfValidationPolicy>> = Api::all(session.client.clone());
        let listed = match api.list(&ListParams::default()).await {
            Ok(list) => list.items,
            Err(kube::Error::Api(status)) if is_missing_kind(&status) => Vec::new(),
            Err(error) => {
                let why = Error::from_call(READ, error);
                screen.note(&format!("Outliers are not shown: {why}"));
                return Self {
                    code: why.code_of_gap(),
                    ..Self::default()
                };
            }
        };
        let count = listed.len();
        let (all, code) = keep_readable(screen, READ, &session.flags, listed);
        let unparsed = count - all.len();
        Self {
            all,
            unparsed,
            code,
            is_known: unparsed == 0,
        }
    }

    /// Drops outliers of nodes that are not listed.
    pub fn retain(&mut self, nodes: &BTreeSet<String>) {
        for status in self.all.iter_mut().filter_map(|policy| policy.status.as_mut()) {
            status.outliers.retain(|outlier| nodes.contains(&outlier.node));
        }
    }

    /// Policy that validates a node; `None` also if a policy that cannot be read may be it.
    pub fn find(&self, node: &Node) -> Option<&PerfValidationPolicy> {
        let label = |key: &str| node.labels().get(key).map(String::as_str);
        let selects = |policy: &&PerfValidationPolicy| Selection::new(&policy.spec.node_selector).matches(label);
        // The older of two policies has the node.
        let found = self.all.iter().filter(|_| self.is_known).filter(selects);
        found.min_by_key(|policy| (policy.creation_timestamp(), policy.name_any()))
    }

    /// Returns true if the policy of a node validates it although it is cordoned.
    pub fn tolerates_cordon(&self, node: &Node) -> bool {
        let taint = Taint {
            key: UNSCHEDULABLE.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        };
        let policy = self.find(node);
        policy.is_some_and(|policy| tolerated(&taint, &policy.spec.validation_template.spec.placement.tolerations))
    }

    /// Reason for which a usable node has no measurement, as far as the policies and its last run show it.
    pub fn obstacle(&self, node: &Node, last_run: Option<&String>) -> String {
        if !self.is_known {
            return "no run has measured it".to_owned();
        }
        let Some(policy) = self.find(node) else {
            return "no run has measured it, and no policy selects it".to_owned();
        };
        let name = policy.name_any();
        if policy.spec.suspend {
            return format!("policy {name} is suspended");
        }
        let status = policy.status.as_ref();
        let mut conditions = status.iter().flat_map(|status| &status.conditions);
        let ready = conditions.find(|condition| condition.type_ == READY);
        // The nodes of an overlap are another policy's.
        let waits = |ready: &Condition| ready.status != "True" && ready.reason != PolicyReason::Overlapping.as_str();
        match (ready, status.and_then(|status| status.nodes)) {
            (Some(ready), _) if waits(ready) => {
                format!("policy {name} has not validated it yet: {}", ready.reason)
            }
            (Some(_), Some(nodes)) => last_run.cloned().unwrap_or_else(|| {
                format!(
                    "policy {name} has not validated it yet (running: {}, busy: {}; its condition Ready shows obstacles)",
                    nodes.running, nodes.busy
                )
            }),
            _ => format!("the operator has not read policy {name} yet"),
        }
    }

    /// Notes that a list of outliers is not complete.
    pub fn note_cut_off(&self, screen: &mut Screen) {
        let is_full = |policy: &&PerfValidationPolicy| {
            let status = policy.status.as_ref();
            status.is_some_and(|status| status.outliers.len() >= MOST_OUTLIERS)
        };
        for policy in self.all.iter().filter(is_full) {
            screen.note(&format!(
                "Policy {} lists at most {MOST_OUTLIERS} outliers, so others may be missing here.",
                policy.name_any()
            ));
        }
    }

    /// Highest confidence with which a comparison calls a node slow.
    pub fn confidence(&self, node: &str) -> Option<OutlierConfidence> {
        self.outliers(node).filter_map(|outlier| outlier.confidence).max()
    }

    /// The worst comparison that a node lost, such as `Confirmed: 88% of peers`. A missed gate is in the verdict.
    pub fn words(&self, node: &str) -> Option<String> {
        let compared = self.outliers(node).filter(|outlier| outlier.confidence.is_some());
        let worst = compared.max_by_key(|outlier| (outlier.confidence, outlier.percent.map(|percent| -percent)))?;
        let subject = if worst.gpu.is_some() { "GPU " } else { "" };
        let reference = match worst.reason {
            OutlierReason::SlowerThanItself => "past",
            OutlierReason::SlowerThanPeers => "peers",
            OutlierReason::BelowGate => "gate",
        };
        let percent = worst.percent.map_or_else(String::new, |percent| format!("{percent}% "));
        let confidence: &str = worst.confidence?.into();
        Some(format!("{confidence}: {subject}{percent}of {reference}"))
    }

    fn outliers<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Outlier> {
        let statuses = self.all.iter().filter_map(|policy| policy.status.as_ref());
        let outliers = statuses.flat_map(|status| &status.outliers);
        outliers.filter(move |outlier| outlier.node == node)
    }
}
