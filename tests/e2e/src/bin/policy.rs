//! `just policy`: a policy over several real nodes of the lab. One GPU is slow, one node leaves during its run and comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use clap::Parser;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use perfval_api::fleet::{NodePerformance, Outlier, OutlierConfidence, PerfValidationPolicy};
use perfval_api::meta::{DUE_REASON, NODE_LABEL};
use perfval_api::{PerfValidation, Phase, Verdict};
use perfval_e2e::{Gpus, Lab, Operator, leftovers_of_all};
use serde_json::{Value, json};

const NAMESPACE: &str = "perf";
const POLICY: &str = "every-node";
/// Nodes of the lab, each with two GPUs.
const NODES: usize = 3;
/// A GPU of the second node, and its speed.
const SLOW_GPU: u32 = 3;
const SLOW: f64 = 0.8;
const SLOW_NODE: &str = "gpu-node-2";
/// Node that leaves during its run.
const LEAVES: &str = "gpu-node-3";
/// Longest time without the end of a validation: an Error pauses its node for ten minutes.
const STALLED: Duration = Duration::from_mins(15);
/// Time without a validation after which no confirmation follows: a policy compares its nodes once a minute.
const SETTLED: Duration = Duration::from_secs(90);
/// Validations of a pass with one slow GPU: one for each node, and two confirmations.
const LAST_PASS: usize = NODES + 2;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// A policy over several nodes of the lab.
#[derive(Parser)]
struct Cli {
    /// The lab's program.
    #[arg(long)]
    lab: PathBuf,
    /// The project's config folder.
    #[arg(long)]
    config: PathBuf,
    /// Validations that have to end with a verdict.
    #[arg(long)]
    validations: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let lab = Lab::at(cli.lab.clone()).await;
    let config = cli.config.to_string_lossy().into_owned();
    Operator::install(&lab, &config).await;
    lab.namespace(NAMESPACE).await;
    let sample = std::fs::read_to_string(cli.config.join("samples/demo.yaml"));
    let sample: Value = serde_saphyr::from_str(&sample.expect("the sample")).expect("its YAML");
    lab.apply(&policy(&sample)).await;
    match Seen::new(lab).follow(cli.validations).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(broken) => {
            eprintln!("{broken}");
            ExitCode::FAILURE
        }
    }
}

/// A policy for all nodes, with the spec of the demo and one trial a run.
fn policy(sample: &Value) -> Value {
    let mut spec = sample["spec"].clone();
    spec["placement"] = json!({"minGPUs": 2, "maxGPUs": 2});
    spec["trials"] = json!({"errorBoundPercent": 10});
    // The slow GPU is found by the comparison, and not by a gate.
    spec["gates"] = spec["gates"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|gate| gate["metric"] == "TimeToFirstToken")
        .cloned()
        .collect();
    json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "metadata": {"name": POLICY},
        "spec": {
            "nodeSelector": {}, "budgets": [{"nodes": 1}],
            "validationTemplate": {"metadata": {"namespace": NAMESPACE}, "spec": spec},
        },
    })
}

/// What was seen of the policy and its validations.
struct Seen {
    lab: Lab,
    began: Instant,
    /// Node and start of each validation, by name.
    active: BTreeMap<String, (String, Instant)>,
    ended: BTreeSet<String>,
    verdicts: BTreeMap<String, usize>,
    last: Instant,
}

impl Seen {
    fn new(lab: Lab) -> Self {
        Self {
            lab,
            began: Instant::now(),
            active: BTreeMap::new(),
            ended: BTreeSet::new(),
            verdicts: BTreeMap::new(),
            last: Instant::now(),
        }
    }

    /// Follows the policy over healthy nodes, until a GPU is slow, and until a node has left and come back. Nothing may be left.
    async fn follow(mut self, validations: usize) -> Result<(), String> {
        loop {
            self.pass().await?;
            self.expect_outliers("all GPUs are healthy", |outliers| outliers.is_empty())
                .await?;
            if self.ended.len() + LAST_PASS >= validations {
                break;
            }
            self.measure_again().await;
        }
        let gpu = SLOW_GPU.to_string();
        self.lab.run(&["fault", "slow-gpu", &gpu, &SLOW.to_string()]).await;
        println!("GPU {gpu} of {SLOW_NODE} has {:.0} % of its speed", 100.0 * SLOW);
        self.measure_again().await;
        self.pass().await?;
        self.show().await;
        self.expect_outliers(
            "one GPU is slow",
            |outliers| matches!(outliers, [one] if one.node == SLOW_NODE && one.gpu.is_some()),
        )
        .await?;
        self.lab.run(&["fault", "clear"]).await;
        self.node_leaves().await?;
        self.show().await;
        self.lab.kubectl(&["delete", "perfpol", POLICY, "--timeout=300s"]).await;
        self.nothing_left().await
    }

    async fn pass(&mut self) -> Result<(), String> {
        self.until("every node has a fresh verdict", |policy| policy.is_settled(NODES))
            .await?;
        println!("all nodes are fresh after {} validations", self.ended.len());
        Ok(())
    }

    async fn expect_outliers(&self, what: &str, is_expected: impl Fn(&[&Outlier]) -> bool) -> Result<(), String> {
        let policy = self.policy().await?;
        let outliers = policy.outliers();
        println!("outliers: {outliers:?}");
        if is_expected(&outliers) {
            Ok(())
        } else {
            Err(format!("{what}, and the outliers show something else"))
        }
    }

    async fn policy(&self) -> Result<Policy, String> {
        let policies: Api<PerfValidationPolicy> = Api::all(self.lab.client.clone());
        let policy = policies.get(POLICY).await.map_err(|error| error.to_string())?;
        Ok(Policy(policy))
    }

    /// Makes all nodes due again.
    async fn measure_again(&self) {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let patch = json!({"spec": {"freshness": {"measuredAfter": now}}}).to_string();
        self.lab
            .kubectl(&["patch", "perfpol", POLICY, "--type=merge", "-p", &patch])
            .await;
    }

    async fn until(&mut self, what: &str, is_reached: impl Fn(&Policy) -> bool) -> Result<(), String> {
        self.last = Instant::now();
        let mut reached: Option<Instant> = None;
        loop {
            self.look().await?;
            let is_reached = self.active.is_empty() && is_reached(&self.policy().await?);
            reached = is_reached.then(|| reached.unwrap_or_else(Instant::now));
            if reached.is_some_and(|since| since.elapsed() > SETTLED) {
                return Ok(());
            }
            if self.last.elapsed() > STALLED {
                let policy = self.policy().await?;
                return Err(format!("{what}: nothing ended for {STALLED:?}: {:?}", policy.0.status));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Looks at all validations once: no node may have two active ones, and the budget is one node.
    async fn look(&mut self) -> Result<Vec<PerfValidation>, String> {
        let validations: Api<PerfValidation> = Api::namespaced(self.lab.client.clone(), NAMESPACE);
        let list = validations.list(&ListParams::default()).await;
        let list = list.map_err(|error| error.to_string())?.items;
        let is_over = |object: &PerfValidation| {
            let phase = object.status.as_ref().and_then(|status| status.phase);
            phase == Some(Phase::Completed)
        };
        let active: Vec<&PerfValidation> = list.iter().filter(|object| !is_over(object)).collect();
        let nodes: Vec<&str> = active.iter().filter_map(|object| node(object)).collect();
        if active.len() > 1 {
            return Err(format!("{} validations at once, on {nodes:?}", active.len()));
        }
        for object in &active {
            let start = (node(object).unwrap_or_default().to_owned(), Instant::now());
            self.active.entry(object.name_any()).or_insert(start);
        }
        for object in list.iter().filter(|object| is_over(object)) {
            if let Some(uid) = object.uid().filter(|uid| !self.ended.contains(uid)) {
                self.ended.insert(uid);
                self.end(object);
            }
        }
        let left = |name: &String| list.iter().any(|object| object.name_any() == *name && !is_over(object));
        self.active.retain(|name, _| left(name));
        Ok(list)
    }

    fn end(&mut self, object: &PerfValidation) {
        self.last = Instant::now();
        let name = object.name_any();
        let (node, seconds) = self.active.get(&name).map_or(("?".to_owned(), 0.0), |(node, start)| {
            (node.clone(), start.elapsed().as_secs_f64())
        });
        let reason = object.annotations().get(DUE_REASON).map_or("", String::as_str);
        let status = object.status.as_ref();
        let verdict = status.and_then(|status| status.verdict).map_or("none", Verdict::as_str);
        *self.verdicts.entry(verdict.to_owned()).or_default() += 1;
        let trials = status.map_or(0, |status| status.trials.len());
        println!(
            "{:>7.0} s  {node}  {verdict:<12} {reason:<14} {trials} trials, {seconds:.0} s",
            self.began.elapsed().as_secs_f64()
        );
    }

    /// A node whose kubelet dies is removed during its run, and comes back.
    async fn node_leaves(&mut self) -> Result<(), String> {
        self.measure_again().await;
        self.last = Instant::now();
        loop {
            let list = self.look().await?;
            let measures = |object: &PerfValidation| {
                let phase = object.status.as_ref().and_then(|status| status.phase);
                node(object) == Some(LEAVES) && phase == Some(Phase::Benchmarking)
            };
            if list.iter().any(measures) {
                break;
            }
            if self.last.elapsed() > STALLED {
                return Err(format!("no run on {LEAVES}"));
            }
            tokio::time::sleep(PAUSE).await;
        }
        let number = LEAVES.rsplit('-').next().unwrap_or_default();
        // The pods of a DaemonSet leave with their node too.
        let processes = ["gpu-kubelet-plugin", "kubelet"].map(|name| format!("{name}-{number}"));
        for process in &processes {
            self.lab.run(&["fault", "stop", process]).await;
        }
        self.lab.kubectl(&["delete", "node", LEAVES]).await;
        println!("{LEAVES} left during its run");
        self.until("the other nodes are fresh", |policy| policy.is_settled(NODES - 1))
            .await?;
        let nodes: Api<NodePerformance> = Api::all(self.lab.client.clone());
        let left = nodes.get_opt(LEAVES).await.map_err(|error| error.to_string())?;
        if left.is_some() {
            return Err(format!("the NodePerformance of {LEAVES} is still there"));
        }
        for process in processes.iter().rev() {
            self.lab.run(&["fault", "start", process]).await;
        }
        println!("{LEAVES} is back");
        self.until("the node is measured again", |policy| policy.is_settled(NODES))
            .await
    }

    async fn show(&self) {
        println!();
        print!("{}", self.lab.kubectl(&["get", "nodeperf", "-o", "wide"]).await);
        print!("{}", self.lab.kubectl(&["get", "perfpol,perfbase"]).await);
        let counts: Vec<String> = self
            .verdicts
            .iter()
            .map(|(verdict, count)| format!("{count} {verdict}"))
            .collect();
        println!(
            "{} validations in {:.0} min: {}",
            self.ended.len(),
            self.began.elapsed().as_secs_f64() / 60.0,
            counts.join(", ")
        );
    }

    async fn nothing_left(&self) -> Result<(), String> {
        let (left, gpus) = (
            leftovers_of_all(&self.lab, NAMESPACE).await,
            Gpus::count(&self.lab).await,
        );
        if left.is_empty() && gpus.held.is_empty() {
            println!("nothing is left, and {} of {} GPUs are free", gpus.free(), gpus.all);
            Ok(())
        } else {
            Err(format!("left: {left:?}, and claims of {:?}", gpus.held))
        }
    }
}

fn node(object: &PerfValidation) -> Option<&str> {
    object.labels().get(NODE_LABEL).map(String::as_str)
}

/// The policy as the API server has it.
struct Policy(PerfValidationPolicy);

impl Policy {
    /// True if this number of nodes is selected, and all of them are fresh.
    fn is_settled(&self, nodes: usize) -> bool {
        let Some(status) = &self.0.status else { return false };
        let is_observed = Some(status.observed_generation) == self.0.metadata.generation;
        let counts = status
            .nodes
            .as_ref()
            .map(|nodes| (nodes.selected, nodes.fresh, nodes.running));
        let all = i64::try_from(nodes).unwrap_or_default();
        is_observed && counts == Some((all, all, 0))
    }

    /// Outliers that are not only suspected.
    fn outliers(&self) -> Vec<&Outlier> {
        let outliers = self.0.status.iter().flat_map(|status| &status.outliers);
        let is_sure = |outlier: &&Outlier| outlier.confidence != Some(OutlierConfidence::Suspected);
        outliers.filter(is_sure).collect()
    }
}
