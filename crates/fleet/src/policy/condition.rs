//! Conditions of a policy. Each message contains the remedy.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::ResourceExt as _;
use perfval_api::condition::{COMPARISON_RELIABLE, READY};
use perfval_api::fleet::{DueReason, MOST_OUTLIERS, PerfValidationPolicy, PerfValidationPolicyStatus, PolicyNodes};
use strum::IntoStaticStr;

use super::comparison::{EnvironmentShift, NodeComparison};
use super::facts::{CreateRefusal, ValidationFacts};
use super::share::Overlap;
use crate::condition::number;
use crate::detectable::DetectableLoss;

/// Longest message of the API server that a condition repeats (characters).
const LONGEST: usize = 512;

/// Reason of the condition `Ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
pub enum PolicyReason {
    /// The operator follows the policy.
    Reconciled,
    /// `spec.suspend` is set.
    Suspended,
    /// No node with GPUs matches the selector, or none of them can be validated.
    NoNodes,
    /// Some nodes belong to an older policy.
    Overlapping,
    /// No budget allows a validation of the due nodes.
    BudgetZero,
    /// The namespace of the validations does not exist.
    NamespaceMissing,
    /// A cron text or the time zone cannot be used.
    ScheduleInvalid,
    /// No validation can be created.
    Refused,
    /// The operator cannot read the nodes.
    NodesUnreadable,
}

impl PolicyReason {
    /// Word in the condition.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Status of the condition. A suspended policy does what its spec requests.
    const fn status(self) -> &'static str {
        match self {
            Self::Reconciled | Self::Suspended => "True",
            Self::NodesUnreadable => "Unknown",
            _ => "False",
        }
    }
}

/// Fewest p-values that show whether they keep their promise.
const LEAST_VALUES: usize = 100;

/// Facts on which the condition `Ready` depends.
#[derive(Default)]
pub(super) struct PolicySituation<'a> {
    pub(super) nodes: PolicyNodes,
    /// Number of all outliers.
    pub(super) outliers: usize,
    pub(super) overlap: Option<Overlap<'a>>,
    /// Reasons of nodes without a fresh verdict and without an active validation.
    pub(super) due: Vec<DueReason>,
    /// Due nodes with fewer whole GPUs than a validation needs.
    pub(super) too_small: Vec<&'a str>,
    /// Due nodes with another obstacle that no wait for GPUs removes, and the obstacle.
    pub(super) unusable: Vec<(&'a str, &'a str)>,
    /// Nodes that could be validated now, but whose last validation did not start.
    pub(super) set_back: Vec<&'a str>,
    /// Due nodes that a budget of zero leaves without a validation, by reason.
    pub(super) blocked: BTreeMap<DueReason, usize>,
    /// Cron texts and time zones that cannot be used.
    pub(super) errors: &'a [String],
    pub(super) refusal: Option<&'a CreateRefusal>,
    /// Last validations of due nodes that pause because it measured nothing.
    pub(super) unmeasured: Vec<&'a ValidationFacts>,
}

/// Condition `Ready` of a policy whose nodes are known.
pub(super) fn ready(policy: &PerfValidationPolicy, situation: &PolicySituation<'_>, now: DateTime<Utc>) -> Condition {
    let (reason, mut message) = explain(policy, situation);
    // None of these may hide nodes that are never measured, or a gate that no node meets.
    let is_set_up = matches!(
        reason,
        PolicyReason::Reconciled | PolicyReason::Suspended | PolicyReason::Overlapping | PolicyReason::Refused
    );
    let PolicyNodes { failed, selected, .. } = situation.nodes;
    if is_set_up && 2 * failed > selected {
        let _ = write!(
            message,
            " {failed} of {selected} nodes failed: check spec.validationTemplate, such as its gates."
        );
    }
    if situation.outliers > MOST_OUTLIERS {
        let _ = write!(
            message,
            " status.outliers lists the worst {MOST_OUTLIERS} of {}.",
            situation.outliers
        );
    }
    if let Some(remedy) = describe_unfit(policy, situation).filter(|_| is_set_up) {
        let _ = write!(message, " {remedy}");
    }
    if matches!(reason, PolicyReason::Reconciled | PolicyReason::Overlapping) {
        for (due, nodes) in &situation.blocked {
            let _ = write!(
                message,
                " {} ({}), but spec.budgets allows no validation for this reason. Write a budget above 0.",
                number(*nodes, "node is due", "nodes are due"),
                due.as_str()
            );
        }
    }
    if let Some(example) = situation
        .set_back
        .first()
        .filter(|_| reason == PolicyReason::Reconciled)
    {
        let _ = write!(
            message,
            " The last validations of {} did not start, such as that of {example}. If this repeats, check the quotas of namespace {}, the \
             requests of the template and the operator's log.",
            number(situation.set_back.len(), "node", "nodes"),
            policy.spec.validation_template.metadata.namespace
        );
    }
    // Last, because it ends with a command.
    if let Some(example) = situation
        .unmeasured
        .first()
        .filter(|_| reason == PolicyReason::Reconciled)
    {
        let _ = write!(
            message,
            " The last validations of {} measured nothing. See why: kubectl describe perfval -n {} {}",
            number(situation.unmeasured.len(), "node", "nodes"),
            example.namespace,
            example.name
        );
    }
    condition(policy, READY, (reason.status(), reason.as_str()), message, now)
}

/// Condition `ComparisonReliable`: False while losses may be missing, or none is Actionable.
pub(super) fn reliable(policy: &PerfValidationPolicy, compared: &NodeComparison, now: DateTime<Utc>) -> Condition {
    let calibration = compared.calibration;
    let (status, reason, message) = if calibration.is_poor {
        let message = format!(
            "Healthy nodes look slow {:.0} times as often as the method promises, so no outlier is Actionable. Let all runs have idle nodes \
             and the same load, and compare nodes with different hardware in different policies.",
            calibration.ratio
        );
        ("False", "CalibrationPoor", message)
    } else if let Some(nodes) = compared.too_many {
        let message = format!(
            "{nodes} nodes are slow at once, so the cause is likely shared and no outlier is Actionable. Look for a change that they have in \
             common, such as a rack, a power limit or a network."
        );
        ("False", "ManyOutliers", message)
    } else if let Some(shift) = &compared.shifted {
        ("False", "EnvironmentShifted", describe_shift(shift))
    } else if compared.lacks_speeds {
        let message = "No node has a decode speed by GPU UUID, so only gates judge. GPUs of a device plugin, MIG devices and some engines \
                       have none: use DRA with whole GPUs and vLLM.";
        ("Unknown", "NothingToCompare", message.to_owned())
    } else if calibration.values < LEAST_VALUES {
        let message = format!(
            "The check of the p-values needs {LEAST_VALUES} comparisons, as of twelve nodes of eight GPUs (six with five learned runs), \
             and there are {}. Validate more nodes.{}",
            calibration.values,
            compared.detectable.map(describe).unwrap_or_default()
        );
        ("Unknown", "TooFewRuns", message)
    } else {
        let message = format!(
            "Healthy nodes look slow as rarely as the method promises.{}",
            compared.detectable.map(describe).unwrap_or_default()
        );
        ("True", "Calibrated", message)
    };
    condition(policy, COMPARISON_RELIABLE, (status, reason), message, now)
}

/// Common change of an environment, with its remedy.
fn describe_shift(shift: &EnvironmentShift) -> String {
    format!(
        "The {} nodes of environment {} are {} % {} than their own earlier runs at the median, so only the GPUs of each node are compared. \
         Look for a change that they have in common, such as a kernel or a power limit. If it is intended, delete their NodePerformances.",
        shift.nodes,
        shift.environment,
        shift.percent.abs(),
        if shift.percent < 0 { "slower" } else { "faster" }
    )
}

/// Losses that are found, in words. Whole percents, so that the message seldom changes.
fn describe(detectable: DetectableLoss) -> String {
    let loss = |what: &str, percent: f64| format!("{what} that is {:.0} % slower", percent.ceil());
    match (detectable.gpu, detectable.node) {
        (Some(gpu), Some(node)) => format!(
            " Nine of ten passes report {} and {}.",
            loss("a GPU", gpu),
            loss("a node", node)
        ),
        (Some(gpu), None) => format!(
            " Nine of ten passes report {}. Runs vary too much to show that a whole node is slow.",
            loss("a GPU", gpu)
        ),
        (None, Some(node)) => format!(" Nine of ten passes report {}.", loss("a node", node)),
        (None, None) => String::new(),
    }
}

fn explain(policy: &PerfValidationPolicy, situation: &PolicySituation<'_>) -> (PolicyReason, String) {
    let nodes = situation.nodes;
    if policy.spec.suspend {
        let remedy = "No new validation starts. Write spec.suspend: false to continue.";
        return (PolicyReason::Suspended, remedy.to_owned());
    }
    if let Some(error) = situation.errors.first() {
        let remedy =
            format!("{error}. Nothing is due by it until you correct it. A budget with such a window applies always.");
        return (PolicyReason::ScheduleInvalid, remedy);
    }
    if nodes.selected == 0 && situation.overlap.is_none() {
        let remedy = "No node with GPUs matches spec.nodeSelector. Compare it with: kubectl get nodes --show-labels";
        return (PolicyReason::NoNodes, remedy.to_owned());
    }
    // An active validation or a fresh verdict shows that some node is fit.
    let unfit = situation.too_small.len() + situation.unusable.len();
    let all_are_unfit = nodes.fresh == 0 && nodes.running == 0 && unfit == situation.due.len();
    if let Some(remedy) = describe_unfit(policy, situation).filter(|_| all_are_unfit) {
        return (PolicyReason::NoNodes, remedy);
    }
    if let Some(refusal) = situation.refusal {
        return if refusal.is_namespace_missing {
            let namespace = &policy.spec.validation_template.metadata.namespace;
            let remedy = format!(
                "Namespace {namespace} does not exist. Create it, or create another policy with an existing one."
            );
            (PolicyReason::NamespaceMissing, remedy)
        } else {
            let answer: String = refusal.message.chars().take(LONGEST).collect();
            let remedy = format!(
                "No validation can be created: {answer}. Remove the cause; the operator tries again every few minutes."
            );
            (PolicyReason::Refused, remedy)
        };
    }
    if !situation.due.is_empty() && situation.blocked.values().sum::<usize>() == situation.due.len() {
        let remedy = format!(
            "{}, but spec.budgets allows no validation. Write a budget above 0.",
            number(situation.due.len(), "node is due", "nodes are due")
        );
        return (PolicyReason::BudgetZero, remedy);
    }
    if let Some(overlap) = situation.overlap {
        let remedy = format!(
            "{} to the older policy {}, such as {}. Exclude them in spec.nodeSelector of one of the two policies.",
            number(overlap.nodes, "selected node belongs", "selected nodes belong"),
            overlap.policy.name_any(),
            overlap.example
        );
        return (PolicyReason::Overlapping, remedy);
    }
    let message = format!("{} of {} nodes have a fresh verdict.", nodes.fresh, nodes.selected);
    (PolicyReason::Reconciled, message)
}

/// Due nodes that no wait for GPUs makes free, with the remedies.
fn describe_unfit(policy: &PerfValidationPolicy, situation: &PolicySituation<'_>) -> Option<String> {
    let remedies = [describe_too_small(policy, situation), describe_unusable(situation)];
    let remedies: Vec<String> = remedies.into_iter().flatten().collect();
    (!remedies.is_empty()).then(|| remedies.join(" "))
}

/// Due nodes with an obstacle other than too few GPUs, and one such obstacle.
fn describe_unusable(situation: &PolicySituation<'_>) -> Option<String> {
    let (example, obstacle) = situation.unusable.first()?;
    let obstacle: String = obstacle.chars().take(LONGEST).collect();
    Some(format!(
        "{} be validated, such as {example}: {obstacle}.",
        number(situation.unusable.len(), "due node cannot", "due nodes cannot")
    ))
}

/// Due nodes on which the template has too few whole GPUs, with the remedy.
fn describe_too_small(policy: &PerfValidationPolicy, situation: &PolicySituation<'_>) -> Option<String> {
    let example = situation.too_small.first()?;
    let spec = &policy.spec.validation_template.spec;
    // A run needs one whole worker at least, so a lower minGPUs does not always help.
    let remedy = match (spec.min_workers(), spec.gpus_per_worker()) {
        (2.., _) => "Else lower placement.minGPUs in the template, or exclude such nodes",
        (_, 2..) => "Else lower workload.dynamo.worker.gpus in the template, or exclude such nodes",
        _ => "Else exclude such nodes",
    };
    Some(format!(
        "{} fewer whole GPUs than a validation needs, such as {example}. If GPUs are missing there, repair it. {remedy} in spec.nodeSelector.",
        number(situation.too_small.len(), "due node has", "due nodes have")
    ))
}

/// Status of a policy whose nodes cannot be read. The numbers stay as they were.
pub fn unreadable(policy: &PerfValidationPolicy, why: &str, now: DateTime<Utc>) -> PerfValidationPolicyStatus {
    let why: String = why.chars().take(LONGEST).collect();
    let message = format!("The operator starts no validation: {why}. Check its rights and its log.");
    let reason = PolicyReason::NodesUnreadable;
    let known = policy.status.clone().unwrap_or_default();
    let others = known.conditions.iter().filter(|condition| condition.type_ != READY);
    let ready = condition(policy, READY, (reason.status(), reason.as_str()), message, now);
    let conditions = std::iter::once(ready).chain(others.cloned()).collect();
    PerfValidationPolicyStatus {
        observed_generation: policy.metadata.generation.unwrap_or_default(),
        conditions,
        ..known
    }
}

fn condition(
    policy: &PerfValidationPolicy,
    type_: &str,
    word: (&str, &str),
    message: String,
    now: DateTime<Utc>,
) -> Condition {
    let earlier = policy.status.as_ref().map_or(&[][..], |status| &status.conditions);
    crate::condition::condition((&policy.metadata, earlier), type_, word, message, now)
}
