//! Next steps of the baselines: those to create, and the status of each.
//!
//! [`decide`] has no memory. A revision never changes: a newer one stands beside the approved one until a person approves it.

mod condition;
mod stored;

use std::collections::BTreeMap;

use chrono::{DateTime, SubsecRound as _, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ResourceExt as _;
use perfval_api::fleet::{
    BaselineEnvironment, BaselineRevision, BaselineSource, NodePerformanceStatus, PerfBaseline, PerfBaselineSpec,
    PerfBaselineStatus, baselines_in_use,
};

use self::condition::{BaselineSituation, conditions};
use self::stored::{norm, provided, revision};
use crate::baseline::{Approved, Baseline, SpeedNorm};
use crate::prior::{PriorSpread, prior};
use crate::reading::NodePass;
use crate::shift::CommonShift;
use crate::strata::strata;

/// Most environments for which baselines are created: those with the most nodes.
const MOST: usize = 32;
/// Growth of the sample that makes a new revision.
const GROWTH: i64 = 2;
/// Longest part of a product's name in that of a baseline.
const LONGEST: usize = 48;

/// Next steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BaselineDecision {
    /// Baselines to create.
    pub create: Vec<PerfBaseline>,
    /// Status of each baseline, in their order.
    pub statuses: Vec<PerfBaselineStatus>,
}

/// Nodes with one environment.
struct MeasuredEnvironment<'a> {
    product: &'a str,
    passes: BTreeMap<String, NodePass>,
    learned: Option<Baseline>,
}

/// Decides the next steps of all baselines. `is_selected` accepts the nodes of policies. A baseline is created only for environments
/// of runs of policies on them.
pub fn decide(
    baselines: &[&PerfBaseline],
    measured: &BTreeMap<String, &NodePerformanceStatus>,
    is_selected: impl Fn(&str) -> bool,
    now: DateTime<Utc>,
) -> BaselineDecision {
    let now = now.trunc_subsecs(0);
    let environments = learn(measured);
    // The revisions first: an approval of this look decides which baseline counts.
    let revised: Vec<PerfBaseline> = baselines
        .iter()
        .map(|baseline| revise(baseline, &environments, now))
        .collect();
    let in_use = baselines_in_use(&revised);
    let statuses = revised.iter().map(|baseline| {
        let digest = baseline.spec.environment.digest.as_str();
        let preferred = in_use
            .get(digest)
            .filter(|preferred| preferred.is_approved() && preferred.uid() != baseline.uid());
        let preferred = preferred.map(|preferred| preferred.name_any());
        decide_status(baseline, preferred, &environments, now)
    });
    BaselineDecision {
        statuses: statuses.collect(),
        create: create(baselines, measured, &environments, is_selected),
    }
}

/// Norms with which nodes may be compared: those of approved revisions, by digest.
pub fn approved(baselines: &[&PerfBaseline]) -> Approved {
    let in_use = baselines_in_use(baselines.iter().copied()).into_iter();
    let approved =
        in_use.filter_map(|(digest, baseline)| Some((digest.to_owned(), norm(&baseline.approved()?.metrics)?)));
    approved.collect()
}

/// Environments of the measured nodes, by digest.
fn learn<'a>(measured: &'a BTreeMap<String, &NodePerformanceStatus>) -> BTreeMap<&'a str, MeasuredEnvironment<'a>> {
    let strata = strata(measured).into_iter().map(|((digest, product), stratum)| {
        let passes = stratum.screen;
        let learned = Baseline::learn(&passes);
        let environment = MeasuredEnvironment {
            product,
            passes,
            learned,
        };
        (digest, environment)
    });
    strata.collect()
}

/// A baseline with its newest and its approved revision.
fn revise(
    baseline: &PerfBaseline,
    environments: &BTreeMap<&str, MeasuredEnvironment<'_>>,
    now: DateTime<Utc>,
) -> PerfBaseline {
    let known = baseline.status.clone().unwrap_or_default();
    let environment = environments.get(baseline.spec.environment.digest.as_str());
    let newest = match baseline.spec.source {
        BaselineSource::Learned => next_learned(baseline, &known, environment, now),
        BaselineSource::Provided => next_provided(baseline, &known, now),
    };
    let approved = baseline.spec.approved_revision.and_then(|approved| {
        // An import may replace a learned baseline. Its approval is not for the revision that this operator learned.
        let is_expected =
            |known: &&BaselineRevision| is_learned(known) == (baseline.spec.source == BaselineSource::Learned);
        let kept = known.approved.as_ref().filter(is_expected);
        let shown = known.newest.as_ref().filter(is_expected);
        let mut revisions = [kept, shown, newest.as_ref()].into_iter().flatten();
        let found = revisions.find(|revision| revision.revision == approved);
        // With a wrong number no revision is in use, but the earlier one is not lost.
        found.or(kept).cloned()
    });
    PerfBaseline {
        status: Some(PerfBaselineStatus {
            observed_generation: baseline.metadata.generation.unwrap_or_default(),
            newest,
            approved,
            conditions: known.conditions,
        }),
        ..baseline.clone()
    }
}

/// Status of a revised baseline. `preferred` is the approved baseline of its environment that counts instead.
fn decide_status(
    baseline: &PerfBaseline,
    preferred: Option<String>,
    environments: &BTreeMap<&str, MeasuredEnvironment<'_>>,
    now: DateTime<Utc>,
) -> PerfBaselineStatus {
    let revised = baseline.status.clone().unwrap_or_default();
    let environment = environments.get(baseline.spec.environment.digest.as_str());
    let shift = match (baseline.approved(), environment) {
        (Some(approved), Some(environment)) => Some(shift(approved, environment, SpeedNorm::compare)),
        _ => None,
    };
    let learned = environment.and_then(|environment| environment.learned.as_ref());
    let situation = BaselineSituation {
        baseline,
        preferred,
        newest: revised.newest.as_ref(),
        approved: baseline.approved(),
        measured: learned.map(|learned| (learned.nodes, learned.gpus)),
        shift,
        others: environments.keys().copied().collect(),
    };
    let conditions = conditions(&situation, now);
    PerfBaselineStatus { conditions, ..revised }
}

/// Newest revision of a learned baseline: a new one if the nodes that it learns have shifted, or if there are twice as many.
fn next_learned(
    baseline: &PerfBaseline,
    known: &PerfBaselineStatus,
    environment: Option<&MeasuredEnvironment<'_>>,
    now: DateTime<Utc>,
) -> Option<BaselineRevision> {
    let newest = known.newest.as_ref().filter(|newest| is_learned(newest));
    let Some((environment, learned)) = environment.and_then(|found| Some((found, found.learned.as_ref()?))) else {
        return newest.cloned();
    };
    if learned.is_provisional() {
        return newest.cloned();
    }
    let is_current = newest.is_some_and(|newest| {
        let nodes = i64::try_from(learned.nodes).unwrap_or(i64::MAX);
        let has_grown = newest.nodes.is_some_and(|known| nodes >= GROWTH * known);
        // A shift of other nodes would make one revision after another, all of them with the same numbers.
        let shift = shift(newest, environment, SpeedNorm::compare_learned);
        !has_grown && !shift.is_environment
    });
    if is_current {
        return newest.cloned();
    }
    // A person may have approved a number before it existed. No new revision gets such a number.
    let seen = baseline.spec.approved_revision.unwrap_or_default();
    Some(revision(learned, last(known).max(seen).saturating_add(1), now))
}

fn next_provided(baseline: &PerfBaseline, known: &PerfBaselineStatus, now: DateTime<Utc>) -> Option<BaselineRevision> {
    let metrics = &baseline.spec.metrics;
    let newest = known.newest.as_ref();
    if newest.is_some_and(|newest| newest.metrics == *metrics) {
        return newest.cloned();
    }
    Some(provided(metrics, last(known) + 1, now))
}

/// Largest number of a revision so far.
fn last(known: &PerfBaselineStatus) -> i64 {
    let revisions = [&known.newest, &known.approved].into_iter().flatten();
    revisions.map(|revision| revision.revision).max().unwrap_or_default()
}

/// Returns true if nodes are behind it. A provided revision excludes nothing.
fn is_learned(revision: &BaselineRevision) -> bool {
    revision.excluded_nodes.is_some()
}

/// Shift of the nodes that `compare` takes against a revision.
fn shift(
    revision: &BaselineRevision,
    environment: &MeasuredEnvironment<'_>,
    compare: fn(&SpeedNorm, &BTreeMap<String, NodePass>, &PriorSpread) -> CommonShift,
) -> CommonShift {
    let norm = norm(&revision.metrics);
    norm.map(|norm| compare(&norm, &environment.passes, &prior(environment.product)))
        .unwrap_or_default()
}

/// Baselines of the environments that have none, those with the most nodes first.
fn create(
    baselines: &[&PerfBaseline],
    measured: &BTreeMap<String, &NodePerformanceStatus>,
    environments: &BTreeMap<&str, MeasuredEnvironment<'_>>,
    is_selected: impl Fn(&str) -> bool,
) -> Vec<PerfBaseline> {
    // The runs of users could have any number of environments.
    let is_of_policy = |node: &String| {
        let run = measured.get(node).map(|status| &status.validation);
        is_selected(node) && run.is_some_and(|run| run.policy.is_some())
    };
    let mut seen: Vec<(&str, &MeasuredEnvironment<'_>)> = environments
        .iter()
        .filter(|(digest, environment)| is_digest(digest) && environment.passes.keys().any(is_of_policy))
        .map(|(digest, environment)| (*digest, environment))
        .collect();
    seen.sort_by_key(|(digest, environment)| (std::cmp::Reverse(environment.passes.len()), *digest));
    seen.truncate(MOST);
    let missing = seen.into_iter().filter(|(digest, _)| {
        let has_baseline = |baseline: &&PerfBaseline| baseline.spec.environment.digest == *digest;
        !baselines.iter().any(has_baseline)
    });
    let created = missing.map(|(digest, environment)| {
        let nodes = environment.passes.keys().filter_map(|node| measured.get(node));
        PerfBaseline {
            metadata: ObjectMeta {
                name: Some(name(environment.product, digest)),
                ..ObjectMeta::default()
            },
            spec: PerfBaselineSpec {
                environment: BaselineEnvironment {
                    digest: digest.to_owned(),
                    product: Some(environment.product.to_owned()).filter(|product| !product.is_empty()),
                    gpu_count: nodes.filter_map(|status| status.gpu_count).find(|gpus| *gpus > 0),
                },
                source: BaselineSource::Learned,
                metrics: Vec::new(),
                approved_revision: None,
            },
            status: None,
        }
    });
    created.collect()
}

fn is_digest(text: &str) -> bool {
    text.len() == 12
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Name of a learned baseline, such as `nvidia-h100-80gb-hbm3-0123456789ab`.
fn name(product: &str, digest: &str) -> String {
    let lower = product.to_ascii_lowercase();
    let words = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words {
        if name.len() + word.len() > LONGEST {
            break;
        }
        name = name + word + "-";
    }
    name + digest
}
