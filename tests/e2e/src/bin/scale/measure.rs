//! Reads a served cluster and decides, with the eyes on CPU time and memory.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::{Client, Config};
use nix::time::{ClockId, clock_gettime};
use perfval_api::PerfValidation;
use perfval_cluster::{Cluster, EndpointAccess, Look};
use perfval_sizing::{Fleet, HeldNodes, Sizing};
use serde::{Deserialize, Serialize};
use serde_json::{from_value, json};

use super::Outcome;

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
    /// CPU of a later look.
    pub again_ms: f64,
    /// Memory after the first look.
    pub kept_mib: f64,
    pub peak_mib: f64,
}

#[tokio::main(flavor = "current_thread")]
pub async fn measure(nodes: usize) -> Outcome<()> {
    let small = Server::of(1)?;
    let large = Server::of(nodes)?;
    // The first look loads what every process needs once.
    look(&small.cluster()?).await?;
    let idle = memory("VmRSS:")?;
    std::fs::write("/proc/self/clear_refs", "5")?;

    let served = large.ask("/served/cpu").await?;
    let (began, cpu) = (Instant::now(), cpu_seconds()?);
    let cluster = large.cluster()?;
    let survey = look(&cluster).await?;
    let (observe, observe_cpu) = (began.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    let server_cpu = large.ask("/served/cpu").await? - served;
    let object = object()?;
    let mut decide = f64::INFINITY;
    for _ in 0..DECISIONS {
        let cpu = cpu_seconds()?;
        let sizing = size(&survey, &object)?;
        decide = decide.min(cpu_seconds()? - cpu);
        let Sizing::Chosen(plan) = &sizing else {
            return Err(format!("no plan: {sizing:?}").into());
        };
        if plan.gpus != 8 {
            return Err(format!("another plan than expected: {plan:?}").into());
        }
    }
    let kept_mib = (memory("VmRSS:")? - idle) / 1024.0;
    drop(survey);
    let cpu = cpu_seconds()?;
    look(&cluster).await?;
    let again_ms = (cpu_seconds()? - cpu) * 1e3;
    let cost = Cost {
        again_ms,
        kept_mib,
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
    fn of(nodes: usize) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["serve", &nodes.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        BufReader::new(process.stdout.take().ok_or("no output of the server")?).read_line(&mut url)?;
        let url = url.trim().to_owned();
        Ok(Self { process, url })
    }

    fn cluster(&self) -> Outcome<Cluster> {
        Ok(cluster(&Client::try_from(Config::new(self.url.parse()?))?))
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

/// A cluster that nothing was read of yet.
pub fn cluster(client: &Client) -> Cluster {
    let access = EndpointAccess::ServiceProxy;
    let (cluster, _) = Cluster::new(client.clone(), client.clone(), access, "bench".into());
    cluster
}

/// Reads what sizing counts: all of it the first time, and later only what changed.
pub async fn look(cluster: &Cluster) -> Outcome<Look> {
    Ok(cluster.survey(&[&object()?.spec]).await)
}

/// Sizes a run.
pub fn size(survey: &Look, run: &PerfValidation) -> Outcome<Sizing> {
    let of_run = survey.for_spec(&run.spec).ok_or("the device class was not read")?;
    let nobody: HeldNodes = [].into_iter().collect();
    Ok(Fleet::new(survey.inventory()).choose(of_run, &run.spec, &nobody, &[]))
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
