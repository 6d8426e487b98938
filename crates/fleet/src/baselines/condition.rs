//! Conditions of a baseline. Each message contains the remedy.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ResourceExt as _;
use perfval_api::condition::{APPROVED, LEARNED, SHIFTED};
use perfval_api::fleet::{BaselineRevision, BaselineSource, PerfBaseline};

use crate::baseline::{GPUS, NODES};
use crate::condition::{condition, number};
use crate::numbers::percent;
use crate::shift::CommonShift;

/// Most environments that a message lists.
const LISTED: usize = 3;

/// Facts on which the conditions depend.
pub(super) struct BaselineSituation<'a> {
    pub(super) baseline: &'a PerfBaseline,
    /// Approved baseline of the same environment that is used instead.
    pub(super) preferred: Option<String>,
    pub(super) newest: Option<&'a BaselineRevision>,
    pub(super) approved: Option<&'a BaselineRevision>,
    /// Nodes and GPUs that were measured in the environment, without those that are left out.
    pub(super) measured: Option<(usize, usize)>,
    /// Shift of these nodes against the approved revision.
    pub(super) shift: Option<CommonShift>,
    /// Environments of all measured nodes.
    pub(super) others: Vec<&'a str>,
}

/// Status, reason and message.
type ConditionText = (&'static str, &'static str, String);

/// Conditions `Learned`, `Approved` and `Shifted`.
pub(super) fn conditions(situation: &BaselineSituation<'_>, now: DateTime<Utc>) -> Vec<Condition> {
    let baseline = situation.baseline;
    let earlier = baseline.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let words = [
        (LEARNED, learned(situation)),
        (APPROVED, approved(situation)),
        (SHIFTED, shifted(situation)),
    ];
    let conditions = words.into_iter().map(|(type_, (status, reason, message))| {
        condition((&baseline.metadata, earlier), type_, (status, reason), message, now)
    });
    conditions.collect()
}

fn learned(situation: &BaselineSituation<'_>) -> ConditionText {
    let Some(newest) = situation.newest else {
        let digest = situation.baseline.spec.environment.digest.as_str();
        if !situation.others.contains(&digest) {
            return ("False", "OtherEnvironment", not_measured(situation));
        }
        // Its nodes may all be Failed or Inconclusive.
        let (nodes, gpus) = situation.measured.unwrap_or_default();
        let message = format!(
            "A baseline needs {NODES} nodes and {GPUS} GPUs. {} and {} with verdict Passed are measured in this environment. Validate more \
             nodes.",
            number(nodes, "node", "nodes"),
            number(gpus, "GPU", "GPUs")
        );
        return ("False", "TooFewNodes", message);
    };
    let revision = newest.revision;
    if situation.baseline.spec.source == BaselineSource::Provided {
        let message = format!("Revision {revision} has the numbers of spec.metrics.");
        return ("True", "Provided", message);
    }
    let message = format!(
        "Revision {revision} was learned from {} and {}. {} left out.",
        number(count(newest.nodes), "node", "nodes"),
        number(count(newest.gpus), "GPU", "GPUs"),
        number(count(newest.excluded_nodes), "node was", "nodes were")
    );
    ("True", "Learned", message)
}

fn approved(situation: &BaselineSituation<'_>) -> ConditionText {
    let command = format!("kubectl perfval approve {}", situation.baseline.name_any());
    if let Some(preferred) = &situation.preferred {
        let why = if situation.approved.is_some() {
            "is older"
        } else {
            "has an approved revision"
        };
        let message = format!(
            "PerfBaseline {preferred} of the same environment is used, because it {why}. Delete one of the two."
        );
        return ("False", "Duplicate", message);
    }
    let newest = situation.newest.map(|newest| newest.revision);
    // Shifted nodes are not compared with it.
    let is_used = situation.shift.is_some_and(|shift| !shift.is_environment);
    let state = if is_used { "in use" } else { "approved" };
    match (situation.approved, situation.baseline.spec.approved_revision, newest) {
        (Some(approved), _, Some(newest)) if newest > approved.revision => {
            let message = format!(
                "Revision {} is {state}, and the newer revision {newest} waits for approval: {command}",
                approved.revision
            );
            ("True", "NewerRevision", message)
        }
        // Nodes that did not pass are compared too, although nothing is learned from them.
        (Some(approved), ..) if situation.shift.is_none() => {
            let message = format!(
                "Revision {} is approved. {}",
                approved.revision,
                not_measured(situation)
            );
            ("True", "Approved", message)
        }
        (Some(approved), ..) => (
            "True",
            "Approved",
            format!("Revision {} is {state}.", approved.revision),
        ),
        (None, Some(missing), Some(newest)) => {
            let message = format!(
                "Revision {missing} does not exist, so the baseline is not used. Approve revision {newest}: {command}"
            );
            ("False", "RevisionMissing", message)
        }
        (None, None, Some(newest)) => {
            let message = format!("Revision {newest} is not used until a person approves it: {command}");
            ("False", "WaitingForApproval", message)
        }
        (None, _, None) => {
            let message = "There is no revision to approve yet. The condition Learned shows what is missing.";
            ("False", "NoRevision", message.to_owned())
        }
    }
}

fn shifted(situation: &BaselineSituation<'_>) -> ConditionText {
    let Some(approved) = situation.approved.filter(|_| situation.preferred.is_none()) else {
        let message = "No revision of this baseline is in use, so there is nothing to compare the nodes with.";
        return ("Unknown", "NotApproved", message.to_owned());
    };
    let Some(shift) = situation.shift else {
        return ("Unknown", "OtherEnvironment", not_measured(situation));
    };
    let revision = approved.revision;
    if shift.nodes == 0 {
        let message = format!("A shift shows on {NODES} nodes or more, and fewer are measured. Validate more nodes.");
        return ("Unknown", "TooFewNodes", message);
    }
    if !shift.is_environment {
        let message = format!("The nodes are as fast as revision {revision}, or differ by at most 2 % or by chance.");
        return ("False", "AsApproved", message);
    }
    let change = percent(shift.value);
    let remedy = match situation.baseline.spec.source {
        BaselineSource::Learned => "approve the newest revision",
        BaselineSource::Provided => "write new numbers in spec.metrics and approve them",
    };
    let message = format!(
        "{} are {:.0} % {} than revision {revision} at the median, so they are not compared with it. If the change is intended, {remedy}; \
         else look for its cause, such as a power limit.",
        number(shift.nodes, "node", "nodes"),
        change.abs(),
        if change < 0.0 { "slower" } else { "faster" }
    );
    ("True", "CentreMoved", message)
}

fn not_measured(situation: &BaselineSituation<'_>) -> String {
    let digest = &situation.baseline.spec.environment.digest;
    let others: Vec<&str> = situation.others.iter().copied().take(LISTED).collect();
    let more = if situation.others.len() > LISTED { ", …" } else { "" };
    let nodes = if others.is_empty() {
        "No node has a usable measurement: validate nodes.".to_owned()
    } else {
        format!(
            "The nodes have environment {}{more}: a baseline of another environment is never used.",
            others.join(", ")
        )
    };
    format!("No node is measured in environment {digest}, so this baseline is not used. {nodes}")
}

fn count(number: Option<i64>) -> usize {
    number
        .and_then(|number| usize::try_from(number).ok())
        .unwrap_or_default()
}
