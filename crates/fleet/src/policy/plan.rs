//! Next steps of one policy.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use perfval_api::fleet::{Budget, DueReason, MOST_OUTLIERS, NodeOrder, Outlier, PerfValidationPolicyStatus};
use perfval_api::{PerfValidation, Verdict};

use super::budget::{GpuUse, Meter};
use super::child::NodeHistory;
use super::condition::{PolicySituation, ready, reliable};
use super::deletion::{Deletion, list_deletions, list_missed};
use super::environments::list_environments;
use super::facts::{CreateRefusal, RunState, SelectedNode, ValidationFacts};
use super::schedule::{PolicyTimes, duration};
use super::share::NodeShare;
use super::snapshot::{PolicyFacts, Snapshot};

/// Steps of the estimated end: a finer estimate would only cause writes.
const ESTIMATE_SECONDS: i64 = 600;
/// Age at which a node should be ready: a GPU driver may take ten minutes.
const NEW: TimeDelta = TimeDelta::minutes(30);
/// Ages beyond which a node comes before all risky ones, as a multiple of `maxAge`.
const OVERDUE: i64 = 2;
/// Factor of the age of a node that did not pass or is an outlier: the square root of its fault rate, roughly four times the usual
/// one. Checks that follow the square root leave faults unseen for the shortest time: 7.5 days where a fixed order leaves 9.3 (rates
/// that differ by a factor of e).
const RISKY: i64 = 2;

/// Next steps of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyDecision {
    /// Validations to create, in this order.
    pub create: Vec<PerfValidation>,
    /// Validations to delete.
    pub delete: Vec<Deletion>,
    /// Facts for the next decision: see [`PolicyFacts::missed_since`].
    pub missed_since: BTreeMap<String, DateTime<Utc>>,
    /// Status to write if it differs.
    pub status: PerfValidationPolicyStatus,
}

/// Decision about one policy while it is made.
pub(super) struct Planner<'a> {
    snapshot: &'a Snapshot<'a>,
    facts: &'a PolicyFacts<'a>,
    share: &'a NodeShare<'a>,
    children: &'a [&'a ValidationFacts],
    by_hostname: HashMap<&'a str, NodeHistory<'a>>,
    /// Nodes by hostname.
    nodes: HashMap<&'a str, &'a SelectedNode>,
    max_age: TimeDelta,
    times: PolicyTimes,
}

/// Due node that could be validated now.
struct DueNode<'a> {
    node: &'a SelectedNode,
    hostname: &'a str,
    reason: DueReason,
    urgency: (bool, i64),
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot<'a>,
        facts: &'a PolicyFacts<'a>,
        share: &'a NodeShare<'a>,
        children: &'a [&'a ValidationFacts],
    ) -> Self {
        let nodes = share.own.iter();
        let nodes = nodes.filter_map(|node| Some((node.hostname.as_deref()?, *node)));
        let nodes: HashMap<&str, &SelectedNode> = nodes.collect();
        let mut by_hostname: HashMap<&str, NodeHistory<'_>> = HashMap::new();
        for child in children {
            if let Some(hostname) = child.hostname() {
                let history = by_hostname.entry(hostname).or_default();
                history.all.push(child);
                if let Some(node) = nodes.get(hostname) {
                    history.created_at = node.created_at;
                }
            }
        }
        Self {
            snapshot,
            facts,
            share,
            children,
            by_hostname,
            nodes,
            max_age: duration(&facts.policy.spec.freshness.max_age),
            times: PolicyTimes::new(&facts.policy.spec, snapshot.now),
        }
    }

    pub(super) fn decide(&self, active: &HashSet<&str>) -> PolicyDecision {
        let (spec, now) = (&self.facts.policy.spec, self.snapshot.now);
        let use_of_gpus = GpuUse::new(self.children, now);
        let selected = i64::try_from(self.share.own.len()).unwrap_or(i64::MAX);
        let budgets = spec.budgets.iter().zip(&self.times.budgets);
        let budgets: Vec<&Budget> = budgets
            .filter(|(_, applies)| **applies)
            .map(|(budget, _)| budget)
            .collect();
        let mut meter = Meter::new(budgets, selected, use_of_gpus);
        let confirms = meter.limit(DueReason::Confirmation) != Some(0);
        for child in self.children.iter().filter(|child| child.is_active()) {
            meter.add(self.reason_of_active(child, confirms));
        }
        let (mut situation, mut candidates, mut fit) = self.sort(active, confirms);
        let is_open = !spec.suspend && self.facts.refusal.is_none_or(|refusal| refusal.until <= now);
        // A window that is closed now opens again.
        let always = spec.budgets.iter().filter(|budget| budget.window.is_none()).collect();
        let always = Meter::new(always, selected, use_of_gpus);
        for reason in situation.due.iter().filter(|reason| always.limit(**reason) == Some(0)) {
            *situation.blocked.entry(*reason).or_default() += 1;
        }
        let mut create = Vec::new();
        if is_open {
            self.order(&mut candidates);
            let empty = NodeHistory::default();
            for candidate in &candidates {
                if meter.allows(candidate.reason) {
                    meter.start(candidate.reason);
                    let history = self.by_hostname.get(candidate.hostname).unwrap_or(&empty);
                    let suspicion = self.facts.comparison.suspects.get(&candidate.node.name);
                    let is_decisive = suspicion.is_some_and(|suspicion| suspicion.is_decisive);
                    create.push(history.next(self.facts.policy, candidate.hostname, (candidate.reason, is_decisive)));
                }
            }
        }
        let mut outliers = self.outliers();
        situation.outliers = outliers.len();
        situation.overlap = self.share.overlap;
        situation.errors = &self.times.errors;
        // An old refusal matters only if there is another attempt.
        let matters = |refusal: &&CreateRefusal| now < refusal.until || !candidates.is_empty();
        situation.refusal = self.facts.refusal.filter(matters);
        outliers.truncate(MOST_OUTLIERS);
        fit.retain(|reason| always.limit(*reason) != Some(0));
        let limits = fit.iter().map(|reason| always.limit(*reason));
        let slots = limits.map(|limit| limit.unwrap_or(selected)).max().unwrap_or(selected);
        let left = situation.nodes.running + i64::try_from(fit.len()).unwrap_or(i64::MAX);
        let end = self.estimate(left, slots).filter(|_| !spec.suspend);
        let last_day = always.last_day(left, &fit, now);
        let end = end.map(|end| last_day.map_or(end, |day| end.max(day)));
        let missed = list_missed(&self.nodes, self.children, self.facts.missed_since, now);
        PolicyDecision {
            create,
            delete: list_deletions(spec, &self.nodes, &self.by_hostname, self.children, (&missed, now)),
            missed_since: missed,
            status: PerfValidationPolicyStatus {
                observed_generation: self.facts.policy.metadata.generation.unwrap_or_default(),
                nodes: Some(situation.nodes),
                fresh_percent: (selected > 0).then(|| 100 * situation.nodes.fresh / selected),
                gpu_minutes_today: Some(use_of_gpus.minutes_today()),
                expected_completion_time: end,
                environments: list_environments(&self.share.own, self.snapshot),
                outliers,
                conditions: vec![
                    ready(self.facts.policy, &situation, now),
                    reliable(self.facts.policy, self.facts.comparison, now),
                ],
            },
        }
    }

    /// Newest verdict of a node by a run of a policy: gates and load of other runs are a user's. The object of the node may be some
    /// seconds behind the validation.
    fn verdict(&self, node: &SelectedNode) -> Option<(DateTime<Utc>, Verdict)> {
        let recorded = self.snapshot.measured.get(&node.name);
        let recorded = recorded.filter(|status| status.validation.policy.is_some());
        let recorded = recorded.map(|status| (status.measured_at, status.verdict));
        let recorded = recorded.filter(|(at, _)| *at >= node.created_at);
        let history = node.hostname.as_deref().and_then(|host| self.by_hostname.get(host));
        let children = history.into_iter().flat_map(|history| &history.all);
        children
            .filter(|child| child.began_after(node.created_at))
            .filter_map(|child| child.measured())
            .chain(recorded)
            .max_by_key(|(at, _)| *at)
    }

    /// Returns true if taints of its start or a driver that offers nothing yet may still go.
    fn is_new(&self, node: &SelectedNode) -> bool {
        self.snapshot.now - node.created_at < NEW
    }

    /// Reason for which a node is due. Unless the budgets allow confirmations (`confirms`), a suspicious node keeps to the schedule.
    fn due(&self, node: &SelectedNode, verdict: Option<(DateTime<Utc>, Verdict)>, confirms: bool) -> Option<DueReason> {
        match verdict {
            None => Some(DueReason::NeverMeasured),
            Some((at, _)) if self.is_stale(at) => Some(DueReason::Stale),
            Some((at, _)) if confirms && self.is_suspicious(node, at) => Some(DueReason::Confirmation),
            Some((at, _)) => self
                .times
                .last
                .is_some_and(|last| at < last)
                .then_some(DueReason::Scheduled),
        }
    }

    /// Returns true if a verdict of this time is too old.
    fn is_stale(&self, at: DateTime<Utc>) -> bool {
        let now = self.snapshot.now;
        let from = self.facts.policy.spec.freshness.measured_after;
        now - at >= self.max_age || from.is_some_and(|from| at < from && from <= now)
    }

    /// Returns true if the newest run of a node, with the time of its end, is to be confirmed. The comparison may be older than
    /// that run. A run with the load of somebody else could not be confirmed by the template's.
    fn is_suspicious(&self, node: &SelectedNode, newest: DateTime<Utc>) -> bool {
        let suspicion = self.facts.comparison.suspects.get(&node.name);
        let recorded = self.snapshot.measured.get(&node.name);
        let policy = recorded.and_then(|status| status.validation.policy.as_deref());
        suspicion.is_some_and(|suspicion| newest <= suspicion.measured_at)
            && policy == self.facts.policy.metadata.name.as_deref()
    }

    fn reason_of_active(&self, child: &ValidationFacts, confirms: bool) -> Option<DueReason> {
        let node = self.nodes.get(child.hostname()?)?;
        child
            .due_reason
            .or_else(|| self.due(node, self.verdict(node), confirms))
    }

    /// Facts about the nodes, the due ones that could be validated now, and the reasons of those in `PolicySituation::due` that no
    /// obstacle rules out.
    fn sort(&self, active: &HashSet<&str>, confirms: bool) -> (PolicySituation<'a>, Vec<DueNode<'a>>, Vec<DueReason>) {
        let empty = NodeHistory::default();
        let suspicious: BTreeSet<&str> = self
            .facts
            .comparison
            .outliers
            .iter()
            .map(|outlier| outlier.node.as_str())
            .collect();
        let (mut sorted, mut candidates, mut fit) = (PolicySituation::default(), Vec::new(), Vec::new());
        for node in self.share.own.iter().copied() {
            let nodes = &mut sorted.nodes;
            nodes.selected += 1;
            let verdict = self.verdict(node);
            match verdict {
                None => nodes.never_measured += 1,
                Some((_, Verdict::Passed)) => nodes.passed += 1,
                Some((_, Verdict::Failed)) => nodes.failed += 1,
                Some(_) => nodes.inconclusive += 1,
            }
            let due = self.due(node, verdict, confirms);
            match due {
                None | Some(DueReason::Confirmation | DueReason::Scheduled) => nodes.fresh += 1,
                Some(DueReason::Stale) => nodes.stale += 1,
                Some(DueReason::NeverMeasured) => {}
            }
            let hostname = node.hostname.as_deref();
            let history = hostname.and_then(|hostname| self.by_hostname.get(hostname));
            let history = history.unwrap_or(&empty);
            let set_back = self.facts.set_back.get(&node.name);
            // Until a validation begins on it.
            let is_set_back = set_back.is_some_and(|at| {
                let mut began = history.all.iter().filter_map(|child| child.outline.began_at);
                began.all(|began| began < *at)
            });
            if history.all.iter().any(|child| child.is_active()) {
                nodes.running += 1;
                let has_gpus = history.all.iter().any(|child| child.outline.state == RunState::Active);
                if is_set_back && !has_gpus {
                    sorted.set_back.push(&node.name);
                }
                continue;
            }
            let Some(reason) = due else { continue };
            let pending = Some(reason).filter(|reason| *reason != DueReason::Confirmation);
            sorted.due.extend(pending);
            let is_taken = active.contains(node.name.as_str()) || hostname.is_none_or(|name| active.contains(name));
            let is_suspended = history
                .all
                .iter()
                .any(|child| child.outline.state == RunState::Suspended);
            let Some(hostname) = hostname.filter(|_| node.is_free && !is_taken && !is_suspended) else {
                if node.is_too_small {
                    sorted.too_small.push(&node.name);
                } else if let Some(obstacle) = node.unusable.as_ref().filter(|_| !self.is_new(node)) {
                    sorted.unusable.push((node.name.as_str(), &**obstacle));
                } else {
                    nodes.busy += 1;
                    fit.extend(pending);
                }
                continue;
            };
            fit.extend(pending);
            if history.rests_until().is_some_and(|until| self.snapshot.now < until) {
                sorted.unmeasured.extend(history.ended().first());
                continue;
            }
            if is_set_back {
                sorted.set_back.push(&node.name);
            }
            let is_risky = suspicious.contains(node.name.as_str())
                || verdict.is_some_and(|(_, verdict)| verdict != Verdict::Passed);
            candidates.push(DueNode {
                node,
                hostname,
                reason,
                urgency: self.urgency(verdict, is_risky),
            });
        }
        (sorted, candidates, fit)
    }

    /// Urgency of a node; the largest comes first. Overdue nodes come before all others, the oldest first, so that each one gets its
    /// turn.
    fn urgency(&self, verdict: Option<(DateTime<Utc>, Verdict)>, is_risky: bool) -> (bool, i64) {
        let age = verdict.map_or(i64::MAX, |(at, _)| (self.snapshot.now - at).num_seconds().max(0));
        let is_overdue = age > OVERDUE * self.max_age.num_seconds();
        let weighs_risk = is_risky && !is_overdue && self.facts.policy.spec.order == NodeOrder::RiskAndAge;
        (is_overdue, if weighs_risk { RISKY * age } else { age })
    }

    /// Puts the most urgent node first: by reason, then by risk and age. Puts nodes whose validation gave up last, the longest ago
    /// first.
    fn order(&self, candidates: &mut [DueNode<'a>]) {
        candidates.sort_by_key(|candidate| {
            let name = candidate.node.name.as_str();
            (
                self.facts.set_back.get(name),
                candidate.reason,
                Reverse(candidate.urgency),
                name,
            )
        });
    }

    /// Estimated time at which every node that can be validated is fresh, from the time for which finished validations held their GPUs.
    fn estimate(&self, left: i64, slots: i64) -> Option<DateTime<Utc>> {
        let held = self.children.iter().filter_map(|child| {
            let (at, _) = child.measured()?;
            Some((at - child.outline.gpus_since?).num_seconds())
        });
        let mut held: Vec<i64> = held.collect();
        held.sort_unstable();
        let usual = held.get(held.len() / 2).copied()?;
        if left == 0 || slots <= 0 {
            return None;
        }
        let rounds = (left + slots - 1) / slots;
        let second = self.snapshot.now.timestamp() + rounds * usual;
        DateTime::from_timestamp(second - second.rem_euclid(ESTIMATE_SECONDS) + ESTIMATE_SECONDS, 0)
    }

    fn outliers(&self) -> Vec<Outlier> {
        let own = &self.share.own;
        let is_own = |name: &str| own.binary_search_by(|node| node.name.as_str().cmp(name)).is_ok();
        let outliers = self
            .facts
            .comparison
            .outliers
            .iter()
            .filter(|outlier| is_own(&outlier.node));
        outliers.cloned().collect()
    }
}
