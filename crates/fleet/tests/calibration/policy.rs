//! A `PerfValidationPolicy` over a simulated fleet: whole passes of its own decisions, with what the product stores.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use perfval_api::fleet::{
    ComparisonRules, NodeIdentity, NodePerformance, NodePerformanceStatus, Outlier, OutlierConfidence, PerfBaseline,
    PerfValidationPolicy, ValidationReference,
};
use perfval_api::{PerfValidation, Verdict};
use perfval_fleet::baseline::Approved;
use perfval_fleet::baselines;
use perfval_fleet::detectable::DetectableLoss;
use perfval_fleet::margin::own_past_margin;
use perfval_fleet::measurement::Measurement;
use perfval_fleet::node::{NodeChange, decide as record};
use perfval_fleet::policy::{
    NodeComparison, Outline, PolicyFacts, RunState, SelectedNode, Snapshot, ValidationFacts, compare_nodes, decide,
};
use serde_json::json;

use crate::world::{Fault, Fleet, Shape, name};
use perfval_fleet::prior::PriorSpread;

/// Age at which all verdicts are stale.
const WEEK: TimeDelta = TimeDelta::hours(168);
/// Length of a run.
const RUN: TimeDelta = TimeDelta::minutes(10);
/// Rounds of a pass: one run of each node, up to three confirmations, and one round for a node that is suspected late.
const ROUNDS: usize = 5;
/// Microseconds per second.
const MICRO: f64 = 1e6;

/// Fault of a node (by number) in a run of a pass: 0 is the first, and the others are confirmations.
pub type Faults<'a> = &'a dyn Fn(usize, usize) -> Fault;

/// Fleet with the objects that the API server has about it.
#[derive(Clone)]
pub struct PolicyFleet {
    pub fleet: Fleet,
    policy: PerfValidationPolicy,
    objects: BTreeMap<String, NodePerformance>,
    validations: Vec<ValidationFacts>,
    now: DateTime<Utc>,
    /// Nodes that have booted again, the first ones.
    pub rebooted: usize,
    /// Norms with which few nodes are compared.
    pub approved: Approved,
}

/// Result of a pass.
pub struct PolicyPass {
    pub comparison: NodeComparison,
    /// Trials of all runs.
    pub trials: usize,
}

impl PolicyPass {
    /// Outliers that new deployments confirmed.
    pub fn reported(&self) -> impl Iterator<Item = &Outlier> {
        let outliers = self.comparison.outliers.iter();
        outliers.filter(|outlier| outlier.confidence >= Some(OutlierConfidence::Confirmed))
    }

    /// Outliers at the level that acts.
    pub fn acted(&self) -> impl Iterator<Item = &Outlier> {
        self.reported()
            .filter(|outlier| outlier.confidence == Some(OutlierConfidence::Actionable))
    }
}

impl PolicyFleet {
    pub fn new(nodes: usize, spread: PriorSpread, shape: Shape, seed: u64) -> Self {
        let policy = json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy",
            "metadata": {"name": "p", "uid": "uid-p", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "nodeSelector": {}, "budgets": [{"nodes": "100%"}],
                "validationTemplate": {
                    "metadata": {"namespace": "perf"},
                    "spec": {
                        "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}},
                        "gates": [{"name": "g", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "5"}],
                    },
                },
            },
        });
        Self {
            fleet: Fleet::new(nodes, spread, shape, seed),
            policy: serde_json::from_value(policy).expect("a policy"),
            objects: BTreeMap::new(),
            validations: Vec::new(),
            now: DateTime::from_timestamp(1_770_000_000, 0).expect("a time"),
            rebooted: 0,
            approved: Approved::new(),
        }
    }

    /// The same with runs of this number of trials.
    pub fn with_trials(mut self, trials: i32) -> Self {
        self.policy.spec.validation_template.spec.trials.min = Some(trials);
        self
    }

    /// The same with a budget of so many nodes at a time.
    pub fn with_budget(mut self, nodes: usize) -> Self {
        self.policy.spec.budgets = serde_json::from_value(json!([{"nodes": nodes}])).expect("a budget");
        self
    }

    /// Healthy passes that are learned from.
    pub fn learn(mut self, passes: usize) -> Self {
        for _ in 0..passes {
            self.pass(&|_, _| Fault::None);
        }
        self
    }

    /// Same fleet and past, with other noise from here on.
    pub fn branch(&self, number: usize) -> Self {
        let mut fleet = self.clone();
        fleet.fleet.dice.branch(number);
        fleet
    }

    /// One pass a week later: the policy measures all nodes and then confirms, until it has nothing to do.
    pub fn pass(&mut self, faults: Faults<'_>) -> PolicyPass {
        self.now += WEEK;
        let mut trials = 0;
        for round in 0.. {
            let comparison = self.compare();
            let created = self.follow(&comparison);
            if created.is_empty() {
                return PolicyPass { comparison, trials };
            }
            assert!(round < ROUNDS, "a pass does not end");
            self.now += RUN;
            for child in created {
                trials += self.run(&child, round, faults);
            }
        }
        unreachable!("the rounds end")
    }

    /// One pass a week later in as many rounds as its budget needs. `look` gets the comparison before each of them.
    pub fn pass_in_rounds(&mut self, faults: Faults<'_>, mut look: impl FnMut(&NodeComparison)) {
        self.now += WEEK;
        loop {
            let comparison = self.compare();
            look(&comparison);
            let created = self.follow(&comparison);
            if created.is_empty() {
                return;
            }
            self.now += RUN;
            for child in created {
                self.run(&child, 0, faults);
            }
        }
    }

    /// Healthy runs a week later, without their confirmations. Returns the speed of each node in percent of its own past, and the
    /// published margin.
    pub fn measure(&mut self) -> Vec<(f64, f64)> {
        self.now += WEEK;
        let comparison = self.compare();
        for child in self.follow(&comparison) {
            self.run(&child, 0, &|_, _| Fault::None);
        }
        let statuses = self.statuses().into_values();
        let shown = |status: &NodePerformanceStatus| {
            let percent = status.percent_of_own_past.expect("a known past");
            let margin = own_past_margin(status).expect("a known past");
            (f64::from(i32::try_from(percent).expect("some hundred")), margin)
        };
        statuses.map(shown).collect()
    }

    fn statuses(&self) -> BTreeMap<String, &NodePerformanceStatus> {
        let objects = self.objects.iter();
        let statuses = objects.filter_map(|(name, object)| Some((name.clone(), object.status.as_ref()?)));
        statuses.collect()
    }

    fn compare(&self) -> NodeComparison {
        compare_nodes(&ComparisonRules::default(), &self.statuses(), &self.approved, |_| true)
    }

    /// Losses that the policy calls detectable.
    pub fn detectable(&self) -> DetectableLoss {
        self.compare().detectable.unwrap_or_default()
    }

    /// Norms of [`Self::baseline`].
    pub fn approve(&self, is_learned: impl Fn(&str) -> bool) -> Approved {
        baselines::approved(&[&self.baseline(is_learned)])
    }

    /// Returns true if the nodes have shifted against a baseline.
    pub fn has_shifted(&self, baseline: &PerfBaseline) -> bool {
        let decided = baselines::decide(&[baseline], &self.statuses(), |_| true, self.now);
        let mut conditions = decided.statuses[0].conditions.iter();
        conditions.any(|condition| condition.type_ == "Shifted" && condition.status == "True")
    }

    /// Baseline that the operator learns from the nodes that `is_learned` accepts, approved by a person.
    pub fn baseline(&self, is_learned: impl Fn(&str) -> bool) -> PerfBaseline {
        let mut statuses = self.statuses();
        statuses.retain(|name, _| is_learned(name));
        let mut baseline = baselines::decide(&[], &statuses, |_| true, self.now).create.remove(0);
        for approved in [None, Some(1)] {
            baseline.spec.approved_revision = approved;
            let status = baselines::decide(&[&baseline], &statuses, |_| true, self.now)
                .statuses
                .remove(0);
            baseline.status = Some(status);
        }
        baseline
    }

    /// Lets the policy decide. Deletes what it deletes, and returns what it creates.
    fn follow(&mut self, comparison: &NodeComparison) -> Vec<PerfValidation> {
        let node = |at: usize| SelectedNode {
            name: name(at),
            hostname: Some(name(at)),
            is_free: true,
            ..SelectedNode::default()
        };
        let nodes: Vec<SelectedNode> = (0..self.fleet.len()).map(node).collect();
        let facts = PolicyFacts {
            policy: &self.policy,
            nodes: &nodes,
            comparison,
            refusal: None,
            set_back: &BTreeMap::new(),
            missed_since: &BTreeMap::new(),
        };
        let snapshot = Snapshot {
            policies: &[facts],
            measured: &self.statuses(),
            baselines: &BTreeMap::new(),
            validations: &self.validations,
            now: self.now,
        };
        let decision = decide(&snapshot).swap_remove(0);
        let deleted: Vec<&str> = decision.delete.iter().map(|deletion| deletion.uid.as_str()).collect();
        self.validations.retain(|known| !deleted.contains(&known.uid.as_str()));
        decision.create
    }

    /// One run, recorded as the operator records it. Returns the number of its trials.
    fn run(&mut self, child: &PerfValidation, round: usize, faults: Faults<'_>) -> usize {
        let mut metadata = child.metadata.clone();
        let child_name = metadata.name.clone().expect("a name");
        metadata.uid = Some(child_name.clone());
        let hostname = &child.spec.placement.node_selector["kubernetes.io/hostname"];
        let at: usize = hostname
            .rsplit('-')
            .next()
            .and_then(|at| at.parse().ok())
            .expect("a number");
        let annotations = metadata.annotations.as_ref().expect("annotations");
        let is_confirmation = annotations["perfvalidation.dev/due-reason"] == "Confirmation";
        let outline = Outline {
            hostname: Some(hostname.as_str().into()),
            state: RunState::Ended {
                at: self.now,
                verdict: Some(Verdict::Passed),
            },
            ..Outline::default()
        };
        self.validations.push(ValidationFacts::new(&metadata, outline));
        let trials = child
            .spec
            .trials
            .min
            .and_then(|min| usize::try_from(min).ok())
            .unwrap_or(1);
        let speeds = self.fleet.measure(at, trials, faults(at, round));
        #[expect(clippy::cast_possible_truncation, reason = "some thousands")]
        let time = |speed: f64| (MICRO / speed).round() as i64;
        let measured = Measurement {
            node: hostname.clone(),
            validation: ValidationReference {
                namespace: "perf".to_owned(),
                name: child_name.clone(),
                uid: child_name,
                run: 1,
                policy: Some("p".to_owned()),
            },
            judged_run: None,
            is_confirmation,
            verdict: Verdict::Passed,
            reason: None,
            began_at: self.now,
            ended_at: self.now,
            environment: Some("0123456789ab".to_owned()),
            product: Some("NVIDIA H100".to_owned()),
            gpu_count: 8,
            output_tokens_per_second: None,
            percent_of_gate: None,
            percent_of_peers: None,
            gpus: speeds
                .iter()
                .map(|(uuid, speeds)| (uuid.clone(), speeds.iter().map(|speed| time(*speed)).collect()))
                .collect(),
        };
        let identity = NodeIdentity {
            uid: "uid".to_owned(),
            created_at: DateTime::UNIX_EPOCH,
            boot_id: Some(if at < self.rebooted { "second" } else { "first" }.to_owned()),
        };
        let change = record(&measured, &identity, self.objects.values(), std::iter::empty(), |_| {
            None
        });
        let NodeChange::Write(object) = change else {
            panic!("{change:?}")
        };
        self.objects.insert(hostname.clone(), *object);
        trials
    }
}
