//! `just bench-crowd`: the operator's program among 5,000 validations, 5,000 nodes and 100,000 pods, in the memory of its pod.
//!
//! The API server is a stub on loopback that shares the cores with the operator, so its own time is part of every time here.
//! Prints a table beside the goals, and asserts nothing.

pub mod cluster;
pub mod operator;
mod tenant;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use perfval_api::meta;
use perfval_testkit::world::{Measured, Play};
use serde_json::{Value, json};

use super::Outcome;
use cluster::{Cluster, validation};
use operator::{Operator, kubeconfig};

use super::fleet::hardware::random;
pub use tenant::tenant;

/// How large the crowd is.
#[derive(Clone, Copy)]
pub struct Size {
    pub nodes: usize,
    pub objects: usize,
    /// Memory of the operator's pod (MiB).
    pub mebibytes: u64,
}

impl Default for Size {
    /// The size of the goals, in the memory of the shipped pod.
    fn default() -> Self {
        Self {
            nodes: 5_000,
            objects: 5_000,
            mebibytes: 256,
        }
    }
}

/// Nodes with free GPUs: so many runs are active at once.
const ACTIVE: usize = 50;
const NAMESPACE: &str = "fleet";
/// Simulated times (s): until a container runs, and of a trial.
const STARTS: std::ops::Range<i64> = 5..65;
const LASTS: std::ops::Range<i64> = 20..40;
/// Longest wait for anything.
const LIMIT: Duration = Duration::from_mins(10);
/// Time without a change after which nothing of the start is left.
const STEADY: Duration = Duration::from_mins(1);

/// Runs that begin together and do not stay together: what ends at the same moment waits for the others.
struct Apart;

impl Play for Apart {
    fn starts_after(&self, pod: &Value) -> i64 {
        let name = &pod["metadata"]["labels"][meta::NAME_LABEL];
        random(&name.as_str()).i64(STARTS)
    }

    fn trial_lasts(&self, pod: &Value) -> i64 {
        random(&pod["metadata"]["name"].as_str()).i64(LASTS)
    }

    fn measure(&self, _: &Value, workers: &[Arc<Value>]) -> Measured {
        Measured::usual(workers)
    }

    fn crashes(&self, _: &Value) -> bool {
        false
    }
}

#[tokio::main]
pub async fn crowd(program: &Path, size: Size) -> Outcome<()> {
    let Size {
        nodes,
        objects,
        mebibytes: limit,
    } = size;
    println!("{objects} validations of {nodes} nodes with 20 pods each; {ACTIVE} nodes have free GPUs; {limit} MiB");
    let goal = format!("{limit} MiB are enough");
    let folder = tempfile::tempdir()?;
    let (cluster, resting) = Cluster::new(nodes, ACTIVE);
    for index in 0..objects {
        cluster
            .server
            .put(validation(NAMESPACE, &format!("node-{index:05}"), index % nodes)?);
    }
    let config = kubeconfig(folder.path(), &cluster.serve(resting).await?)?;
    cluster.live(Some(Box::new(Apart)), |_| ());

    let mut operator = Operator::start(program, folder.path(), &config, limit)?;
    let first = operator.looked_at(objects, LIMIT).await?;
    row("start, all looked at", &format!("{first:.1} s"), "≤ 10 s");
    until("all runs are active", &mut operator, || active(&cluster) >= ACTIVE).await?;
    cluster.take_reactions();
    let (requests, cpu) = (cluster.requests.load(Ordering::Relaxed), operator.process.cpu_seconds());
    let began = Instant::now();
    until("half of the runs are over", &mut operator, || {
        finished(&cluster) >= ACTIVE / 2
    })
    .await?;
    let seconds = began.elapsed().as_secs_f64();
    let share = (operator.process.cpu_seconds().unwrap_or_default() - cpu.unwrap_or_default()) / seconds * 100.0;
    let asked = u32::try_from(cluster.requests.load(Ordering::Relaxed) - requests)?;
    let rate = f64::from(asked) / seconds;
    let reactions = cluster.take_reactions();
    let at = |share: usize| {
        reactions
            .get(reactions.len() * share / 100)
            .copied()
            .unwrap_or_default()
    };
    row(
        "end of a trial to write, 50 runs active",
        &format!(
            "{:.0} ms median, {:.0} ms p90 of {}",
            at(50).as_secs_f64() * 1e3,
            at(90).as_secs_f64() * 1e3,
            reactions.len()
        ),
        "≤ 50 ms",
    );
    row("operator's CPU meanwhile", &format!("{share:.0} % of a core"), "");
    row("requests meanwhile", &format!("{rate:.0}/s"), "");
    let looks = operator.looks();
    let longest = looks.iter().skip(1).copied().fold(0.0, f64::max);
    let lists = looks.first().copied().unwrap_or_default();
    row(
        "first look of the queue, with its lists",
        &format!("{lists:.2} s"),
        "≤ 2 s",
    );
    row(
        "longest later look",
        &format!("{longest:.2} s of {}", looks.len()),
        "≤ 2 s",
    );
    row("peak memory", &mebibytes(&operator), &goal);

    operator.kill();
    let mut operator = Operator::start(program, folder.path(), &config, limit)?;
    let again = operator.looked_at(objects, LIMIT).await?;
    row(
        "restart in the middle, all looked at",
        &format!("{again:.1} s"),
        "≤ 10 s",
    );
    until("all runs are over", &mut operator, || finished(&cluster) >= ACTIVE).await?;
    row("runs that passed", &format!("{} of {ACTIVE}", passed(&cluster)), "all");
    tokio::time::sleep(STEADY).await;
    row("peak memory after the restart", &mebibytes(&operator), &goal);
    row(
        "lease lost, passes given up",
        &format!("{}, {}", operator.logged("is lost"), operator.logged("pass given up")),
        "0, 0",
    );
    operator.kill();

    finish_all(&cluster)?;
    let mut operator = Operator::start(program, folder.path(), &config, limit)?;
    let finished = operator.looked_at(objects, LIMIT).await?;
    row(
        "restart, all finished with ten runs each",
        &format!("{finished:.1} s"),
        "≤ 10 s",
    );
    row("peak memory", &mebibytes(&operator), &goal);
    operator.lives()
}

pub fn row(what: &str, value: &str, goal: &str) {
    println!("{what:<42} {value:<36} {goal}");
}

fn mebibytes(operator: &Operator) -> String {
    let memory = operator.peak().zip(operator.process.of_files());
    memory.map_or_else(
        || "?".to_owned(),
        |(peak, files)| format!("{peak:.0} MiB, {files:.0} of them the program's file"),
    )
}

async fn until(what: &str, operator: &mut Operator, is: impl Fn() -> bool) -> Outcome<()> {
    let began = Instant::now();
    while !is() {
        operator.lives()?;
        if began.elapsed() > LIMIT {
            return Err(format!("never: {what}").into());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

fn count(cluster: &Cluster, is: impl Fn(&Value) -> bool) -> usize {
    let all = cluster.server.shared("perfvalidations");
    all.iter().filter(|object| is(&object["status"])).count()
}

fn active(cluster: &Cluster) -> usize {
    count(cluster, |status| {
        !matches!(status["phase"].as_str(), None | Some("Pending" | "Sizing"))
    })
}

fn finished(cluster: &Cluster) -> usize {
    count(cluster, |status| status["phase"] == "Completed")
}

fn passed(cluster: &Cluster) -> usize {
    count(cluster, |status| status["verdict"] == "Passed")
}

/// Gives every object the status of one that has passed, and a history of ten runs.
fn finish_all(cluster: &Cluster) -> Outcome<()> {
    let objects = cluster.server.shared("perfvalidations");
    let done = objects.iter().find(|object| object["status"]["verdict"] == "Passed");
    let mut status = done.ok_or("no run has passed")?["status"].clone();
    let entry = json!({
        "run": 1, "verdict": "Passed", "reason": "GatesMet", "throughput": "18000.5", "ttftP99Ms": "900.1",
        "environment": "0123456789ab", "slowGpus": [], "completedAt": "2026-11-20T10:10:00Z",
        "phases": [["Sizing", 2], ["Deploying", 90], ["Benchmarking", 120]],
    });
    let history = &mut status["operatorState"]["history"];
    if history.as_array().is_none_or(Vec::is_empty) {
        *history = json!([entry]);
    }
    let entry = history[0].clone();
    *history = Value::Array(vec![entry; 10]);
    for object in objects.iter().filter(|object| object["status"]["phase"] != "Completed") {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        cluster.server.edit("perfvalidations", NAMESPACE, name, |object| {
            object["status"] = status.clone();
            object["metadata"]["finalizers"] = json!([]);
        });
    }
    Ok(())
}
