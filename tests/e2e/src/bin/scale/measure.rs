//! Reads a served cluster and decides, with the eyes on CPU time and memory.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::{Client, Config};
use nix::time::{ClockId, clock_gettime};
use perfval_api::PerfValidation;
use perfval_cluster::{Cluster, EndpointAccess};
use perfval_run::observed::Need;
use perfval_run::{Needs, Observed, Run, Settings};
use perfval_sizing::{Sizing, choose};
use serde::{Deserialize, Serialize};
use serde_json::{from_value, json};

use super::Outcome;
use super::serve::Form;

/// Decisions of which the cheapest counts: the others were interrupted.
const DECISIONS: usize = 7;

/// What one look costs.
#[derive(Serialize, Deserialize)]
pub struct Cost {
    pub megabytes: f64,
    pub observe: f64,
    pub observe_cpu: f64,
    pub server_cpu: f64,
    pub decide_ms: f64,
    pub peak_mib: f64,
}

#[tokio::main(flavor = "current_thread")]
pub async fn measure(nodes: usize, form: Form) -> Outcome<()> {
    let small = Server::of(1, form)?;
    let large = Server::of(nodes, form)?;
    // The first look loads what every process needs once.
    small.look().await?;
    let idle = memory("VmRSS:")?;
    std::fs::write("/proc/self/clear_refs", "5")?;

    let served = large.ask("/served/cpu").await?;
    let (began, cpu) = (Instant::now(), cpu_seconds()?);
    let observed = large.look().await?;
    let (observe, observe_cpu) = (began.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    let server_cpu = large.ask("/served/cpu").await? - served;
    let inventory = observed.inventory.present().ok_or("the inventory was not read")?;

    let object = object()?;
    let mut decide = f64::INFINITY;
    for _ in 0..DECISIONS {
        let cpu = cpu_seconds()?;
        let sizing = choose(inventory, &object.spec, &[]);
        decide = decide.min(cpu_seconds()? - cpu);
        let Sizing::Chosen(plan) = &sizing else {
            return Err(format!("no plan: {sizing:?}").into());
        };
        if plan.gpus != 8 {
            return Err(format!("another plan than expected: {plan:?}").into());
        }
    }
    let cost = Cost {
        megabytes: large.ask("/served").await? / 1e6,
        observe,
        observe_cpu,
        server_cpu,
        decide_ms: decide * 1e3,
        peak_mib: (memory("VmHWM:")? - idle) / 1024.0,
    };
    println!("{}", serde_json::to_string(&cost)?);
    Ok(())
}

/// A served cluster; its process ends with this value.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn of(nodes: usize, form: Form) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["serve", &nodes.to_string(), form.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        BufReader::new(process.stdout.take().ok_or("no output of the server")?).read_line(&mut url)?;
        let url = url.trim().to_owned();
        Ok(Self { process, url })
    }

    async fn look(&self) -> Outcome<Observed> {
        look(&Client::try_from(Config::new(self.url.parse()?))?).await
    }

    /// Bytes that were served, or the CPU time that it took.
    async fn ask(&self, path: &str) -> Outcome<f64> {
        let client = Client::try_from(Config::new(self.url.parse()?))?;
        let request = http::Request::get(path).body(Vec::new())?;
        Ok(client.request::<f64>(request).await?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads what sizing counts, as a pass does.
pub async fn look(client: &Client) -> Outcome<Observed> {
    let (cluster, _) = Cluster::new(
        client.clone(),
        client.clone(),
        EndpointAccess::ServiceProxy,
        "bench".into(),
    );
    let (object, settings) = (object()?, Settings::default());
    let needs = Needs {
        parts: BTreeSet::from([Need::Inventory]),
        ..Needs::default()
    };
    Ok(cluster.observe(&Run::new(&object, &settings), &needs).await)
}

/// A run that leaves every choice to its default.
pub fn object() -> Outcome<PerfValidation> {
    Ok(from_value(json!({
        "metadata": { "name": "bench", "namespace": "bench" },
        "spec": { "model": { "name": "m" }, "workload": { "dynamo": { "image": "i:1" } } },
    }))?)
}

/// CPU time of this thread, which does everything. Not `schedstat`, which is only as fine as the scheduler's tick of 4 ms.
pub fn cpu_seconds() -> Outcome<f64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(Duration::from(time).as_secs_f64())
}

/// A line of this process's status (KiB).
fn memory(line: &str) -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let value = status.lines().find_map(|found| found.strip_prefix(line));
    Ok(value
        .ok_or("no such line of status")?
        .trim()
        .trim_end_matches(" kB")
        .parse()?)
}
