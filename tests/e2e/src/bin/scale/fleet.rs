//! `just fleet` and `just fleet-lab`: the operator's program with one policy over thousands of nodes, whose runs are played.
//!
//! The program, the policy, the planner, the node measurements and the outliers are real. Pods start and trials end after
//! simulated times, which are shorter by a stated factor, and trials measure what the simulated hardware gives. On the stub of
//! the API server Dynamo, Jobs, the scheduler and the kubelets are `perfval_testkit::world`. On the lab only the kubelets are.
//! Its control plane takes most of two cores for 0.4 runs a second (1,000 nodes), so 5,000 nodes are for the stub.

mod calls;
mod coverage;
pub mod hardware;
mod lab;
mod laws;
mod mirror;
mod play;
mod scene;
mod table;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, TimeDelta, Utc};
use perfval_testkit::api_server::{ApiServer, Call};
use serde_json::json;

use super::Outcome;
use super::crowd::operator::Operator;
use super::serve;
use calls::{Calls, Load};
use coverage::Coverage;
use hardware::{Fault, Hardware};
use laws::{Laws, left_behind, remains};
pub use scene::ControlPlane;
use scene::{Doomed, Scene};
use table::Table;

const NAMESPACE: &str = "perf";
const POLICY: &str = "fleet";
/// Nodes at once in a small fleet, of which 2 % would be one.
const AT_LEAST: usize = 10;
/// Changes that the API server keeps for its watches.
const CHANGES: usize = 50_000;
/// Memory of the operator's pod (MiB), as shipped.
const MEBIBYTES: u64 = 256;
/// Longest time without a node that gets its verdict.
const STALLED: Duration = Duration::from_mins(12);
/// Time in which the operator compares all nodes and writes the outliers: a minute, a look, and a pause between two writes.
const COMPARED: Duration = Duration::from_secs(80);
/// Longest wait until nothing of a deleted policy is left.
const DELETED: Duration = Duration::from_mins(15);
/// Steps of the world from one removal of old Events to the next, and their age then (s): an hour at the usual speed-up.
const SWEEP: usize = 100;
const EVENTS: TimeDelta = TimeDelta::minutes(6);

/// Size of a fleet.
#[derive(Clone, Copy)]
pub struct Size {
    pub nodes: usize,
    /// Simulated seconds in one second.
    pub speedup: f64,
    /// Nodes after which it stops; all, if there are no more.
    pub enough: usize,
}

/// What is seen besides the operator.
struct Watched {
    laws: Laws,
    calls: Calls,
    /// Nodes that left.
    left: BTreeSet<usize>,
    is_freed: bool,
    since: u64,
    steps: usize,
}

#[tokio::main]
pub async fn fleet(program: &Path, size: Size, on: ControlPlane) -> Outcome<()> {
    let hardware = Hardware::new(size.nodes);
    let budget = (size.nodes * 2).div_ceil(100).max(AT_LEAST);
    let pods = if on == ControlPlane::Lab { 2 } else { serve::PODS };
    println!(
        "{} nodes of {} GPUs with {pods} pods each, at most {budget} at once; durations {} times as fast; {MEBIBYTES} MiB",
        size.nodes,
        serve::GPUS,
        size.speedup
    );
    let watched = Arc::new(Mutex::new(Watched {
        laws: Laws::new(budget),
        calls: Calls::default(),
        left: BTreeSet::new(),
        is_freed: false,
        since: 0,
        steps: 0,
    }));
    let folder = tempfile::tempdir()?;
    let scene = Scene::open(on, folder.path(), &hardware, size.speedup, watched.clone()).await?;
    let server = &scene.server;
    let mut operator = Operator::start(program, folder.path(), &scene.kubeconfig, MEBIBYTES)?;
    let mut load = Load::default();
    let (began, mut news) = (Instant::now(), Instant::now());
    let (mut before, mut covered_after, mut is_stopped) = (0, Duration::ZERO, false);
    let mut over = None;
    let mut is_over;
    let mut stop = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            _ = &mut stop => is_stopped = true,
        }
        operator.lives()?;
        let watched = lock(&watched);
        load.sample(began.elapsed(), scene.requests(&watched.calls));
        let coverage = Coverage::of(&hardware, &watched.laws, &watched.left, watched.is_freed);
        if coverage.covered > before {
            let tenth = |covered: usize| covered * 10 / size.nodes;
            if tenth(coverage.covered) > tenth(before) {
                let (after, active) = (began.elapsed().as_secs_f64(), watched.laws.active());
                eprintln!("{after:>5.0} s: {} nodes covered, {active} active", coverage.covered);
            }
            (before, news, covered_after) = (coverage.covered, Instant::now(), began.elapsed());
        }
        // A comparison may ask for another run of a slow node.
        if coverage.due > 0 || watched.laws.active() > 0 {
            over = None;
        } else if over.is_none() {
            let totals = Totals::read(began, &operator, &watched, &scene);
            over = Some((Instant::now(), totals));
        }
        is_over = over.as_ref().is_some_and(|(since, _)| since.elapsed() >= COMPARED);
        if is_over || is_stopped || coverage.covered >= size.enough || !watched.laws.broken.is_empty() {
            break;
        }
        if news.elapsed() > STALLED {
            return Err(format!("no node got a verdict for {} s: {coverage:?}", STALLED.as_secs()).into());
        }
    }
    let totals = over.map(|(_, totals)| totals);
    let Totals {
        wall,
        cpu,
        api_cpu,
        calls,
        requests,
    } = totals.unwrap_or_else(|| Totals::read(began, &operator, &lock(&watched), &scene));
    if !is_stopped && !is_over {
        // The last measurements become outliers with the next comparison.
        tokio::time::sleep(COMPARED).await;
    }
    let is_whole = lock(&watched).laws.active() == 0;
    let left = if is_whole {
        left_behind(server, NAMESPACE)
    } else {
        Vec::new()
    };
    {
        let watched = lock(&watched);
        let coverage = Coverage::of(&hardware, &watched.laws, &watched.left, watched.is_freed);
        Table {
            size,
            hardware: &hardware,
            server,
            watched: &watched.laws,
            calls: &calls,
            pages: requests.saturating_sub(calls.total()),
            load: &load,
            coverage: &coverage,
            operator: &operator,
            saved: &scene.saved.lock().unwrap_or_else(PoisonError::into_inner),
            wall,
            covered_after,
            cpu: cpu.unwrap_or_default(),
            api_server: api_cpu.zip(scene.api_server.as_ref().and_then(|(process, _)| process.peak())),
        }
        .print();
        if !watched.laws.broken.is_empty() {
            return Err(watched.laws.broken.join("\n").into());
        }
    }
    if !left.is_empty() {
        return Err(format!("left behind: {}", left.join(", ")).into());
    }
    delete_policy(&scene, &mut operator).await
}

/// Deletes the policy, and waits until the garbage collector and the operator have removed all of its validations.
async fn delete_policy(scene: &Scene, operator: &mut Operator) -> Outcome<()> {
    let server = &scene.server;
    let count = server.shared("perfvalidations").len();
    let (plural, namespace, name) = ("perfvalidationpolicies", "", POLICY.to_owned());
    scene
        .delete(&Doomed {
            plural,
            namespace,
            name,
        })
        .await?;
    let began = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        operator.lives()?;
        let (validations, remains) = (server.shared("perfvalidations").len(), remains(server, NAMESPACE));
        if validations == 0 && remains.is_empty() {
            break;
        }
        if began.elapsed() > DELETED {
            return Err(format!("{validations} validations of a deleted policy stay, with {remains:?}").into());
        }
    }
    super::crowd::row(
        "policy deleted with its validations",
        &format!(
            "{count} gone after {:.0} s, nothing left",
            began.elapsed().as_secs_f64()
        ),
        "nothing left",
    );
    Ok(())
}

/// Counts at the end of the runs. The wait for the last comparison is none of them.
struct Totals {
    wall: Duration,
    cpu: Option<f64>,
    /// Of the API server of a lab.
    api_cpu: Option<f64>,
    calls: Calls,
    requests: usize,
}

impl Totals {
    fn read(began: Instant, operator: &Operator, watched: &Watched, scene: &Scene) -> Self {
        Self {
            wall: began.elapsed(),
            cpu: operator.process.cpu_seconds(),
            api_cpu: scene
                .api_server
                .as_ref()
                .and_then(|(process, of_set_up)| Some(process.cpu_seconds()? - of_set_up)),
            calls: watched.calls.clone(),
            requests: scene.requests(&watched.calls),
        }
    }
}

impl Watched {
    /// Notes what has changed, and the calls of the operator. The answer is what is to be deleted now.
    fn step(&mut self, server: &ApiServer, calls: Vec<Call>, hardware: &Hardware) -> Vec<Doomed> {
        let version = server.version();
        for changed in server.changes_since(self.since) {
            self.laws.note(&changed);
        }
        self.since = version;
        self.calls.add(calls);
        let mut doomed = Vec::new();
        for (index, _) in hardware.faults().filter(|(_, fault)| *fault == Fault::Leaves) {
            let name = serve::name(index);
            if self.laws.benchmarking.contains(&name) && self.left.insert(index) {
                let (plural, namespace) = ("nodes", "");
                doomed.push(Doomed {
                    plural,
                    namespace,
                    name,
                });
            }
        }
        if !self.is_freed && self.laws.covered.len() * 2 >= hardware.nodes {
            self.is_freed = true;
            let freed = hardware.busy().filter(|(_, for_a_while)| *for_a_while);
            doomed.extend(freed.map(|(index, _)| {
                Doomed {
                    plural: "resourceclaims",
                    namespace: hardware::OTHERS,
                    name: hardware::claim(index)["metadata"]["name"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                }
            }));
        }
        self.steps += 1;
        if self.steps.is_multiple_of(SWEEP) {
            let until = (Utc::now() - EVENTS).to_rfc3339_opts(SecondsFormat::Secs, true);
            server.expire("events", &until);
        }
        doomed
    }
}

fn policy(nodes: usize) -> serde_json::Value {
    let budget = if nodes * 2 / 100 < AT_LEAST {
        json!({"nodes": AT_LEAST})
    } else {
        json!({"nodes": "2%"})
    };
    json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "metadata": {"name": POLICY},
        "spec": {
            "nodeSelector": {"matchLabels": {"nvidia.com/gpu.present": "true"}},
            "budgets": [budget],
            "validationTemplate": {"metadata": {"namespace": NAMESPACE}, "spec": {
                "model": {"name": "lab/tiny"}, "workload": {"dynamo": {"image": "localhost/dynamo:1.4.2"}},
                "placement": {"minGPUs": serve::GPUS, "expectGPUs": serve::GPUS},
                "benchmark": {"image": "localhost/aiperf:test"},
                // As config/samples/policy.yaml: a clear pass needs one trial.
                "trials": {"errorBoundPercent": 10},
                // 85 % of what a usual node gives.
                "gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "3770"}],
            }},
        },
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
