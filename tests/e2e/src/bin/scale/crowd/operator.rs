//! The operator's program in a bounded memory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::{Client, Config};
use perfval_e2e::process::Process;
use serde_json::json;

use super::Outcome;

const GROUPS: &str = "/sys/fs/cgroup";
/// Each poll makes the operator write the metrics of all objects, as a scrape does every 15 s or less often.
const POLL: Duration = Duration::from_secs(1);
/// Lines of the log of a process that ended, and characters of each.
const LAST_LINES: usize = 30;
const LINE: usize = 400;

/// A running operator; it ends with this value.
pub struct Operator {
    child: Child,
    group: PathBuf,
    metrics: Client,
    log: PathBuf,
    pub process: Process,
}

impl Operator {
    /// Starts the program in a group with so much memory (MiB).
    pub fn start(program: &Path, folder: &Path, kubeconfig: &Path, mebibytes: u64) -> Outcome<Self> {
        let group = group(mebibytes << 20)?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = folder.join("log");
        let output = File::options().create(true).append(true).open(&log)?;
        let child = Command::new("sh")
            .args(["-c", "echo $$ > \"$1/cgroup.procs\" && shift && exec \"$@\"", "sh"])
            .arg(&group)
            .arg(program)
            .args([
                "run",
                "--identity",
                "crowd",
                "--endpoint-access",
                "service-proxy",
                "--benchmark-images",
                "localhost",
                "--log-format",
                "text",
            ])
            .args(["--log", "info,perfval_operator=debug"])
            .arg("--metrics-addr")
            .arg(format!("127.0.0.1:{port}"))
            .arg("--in-flight-file")
            .arg(folder.join("in-flight"))
            .env("KUBECONFIG", kubeconfig)
            // As config/operator has it.
            .env("MIMALLOC_PURGE_DELAY", "0")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        let process = Process::of(child.id());
        let metrics = Client::try_from(Config::new(format!("http://127.0.0.1:{port}").parse()?))?;
        Ok(Self {
            child,
            group,
            metrics,
            log,
            process,
        })
    }

    /// Fails with the last lines of the log if the process ended.
    pub fn lives(&mut self) -> Outcome<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("the operator ended: {status}\n{}", self.last_lines()).into()),
        }
    }

    /// The folder of the log goes with the bench.
    fn last_lines(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let from = log.lines().count().saturating_sub(LAST_LINES);
        let lines = log.lines().skip(from).map(|line| line.chars().take(LINE).collect());
        lines.collect::<Vec<String>>().join("\n")
    }

    /// Seconds until the sum of its passes and of the runs in its plan is so many. An object may have several passes.
    pub async fn looked_at(&mut self, objects: usize, limit: Duration) -> Outcome<f64> {
        let began = Instant::now();
        let mut seen = 0;
        while began.elapsed() < limit {
            self.lives()?;
            let passes = self.sum("perfvalidation_reconcile_duration_seconds_count").await;
            let queued = self.sum("perfvalidation_planned_runs").await;
            seen = passes + queued;
            if seen >= objects {
                return Ok(self.process.age().unwrap_or_default());
            }
            tokio::time::sleep(POLL).await;
        }
        Err(format!(
            "{seen} of {objects} objects were looked at within {} s",
            limit.as_secs()
        )
        .into())
    }

    /// Most resident memory of the process since its start (MiB), with the pages of its program.
    pub fn peak(&self) -> Option<f64> {
        self.process.peak()
    }

    /// The times of all looks of the queue in its log (s).
    pub fn looks(&self) -> Vec<f64> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines()
            .filter(|line| line.contains("looked for the queue"))
            .filter_map(|line| seconds(line.split("took=").nth(1)?.split_whitespace().next()?))
            .collect()
    }

    /// How often its log has a word.
    pub fn logged(&self, word: &str) -> usize {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.matches(word).count()
    }

    /// Kills it, as the kernel does where memory is short.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir(&self.group);
    }

    /// The sum of a series; 0 while it does not listen yet.
    async fn sum(&self, series: &str) -> usize {
        let Ok(request) = http::Request::get("/metrics").body(Vec::new()) else {
            return 0;
        };
        let text = self.metrics.request_text(request).await.unwrap_or_default();
        let values = text.lines().filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            value
                .parse::<usize>()
                .ok()
                .filter(|_| name.split('{').next() == Some(series))
        });
        values.sum()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.end();
    }
}

/// A kubeconfig of a server without users.
pub fn kubeconfig(folder: &Path, server: &str) -> Outcome<PathBuf> {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    let path = folder.join("kubeconfig");
    fs::write(&path, config.to_string())?;
    Ok(path)
}

/// A new cgroup with so much memory (bytes), in either version of cgroups.
fn group(bytes: u64) -> Outcome<PathBuf> {
    let root = Path::new(GROUPS);
    let (parent, limit) = if root.join("cgroup.controllers").exists() {
        (root.to_owned(), "memory.max")
    } else {
        (root.join("memory"), "memory.limit_in_bytes")
    };
    let group = parent.join(format!("perfval-crowd-{}", std::process::id()));
    let made = fs::create_dir_all(&group).and_then(|()| fs::write(group.join(limit), bytes.to_string()));
    made.map_err(|error| {
        format!(
            "no memory cgroup {} can be made, which takes root: {error}",
            group.display()
        )
    })?;
    Ok(group)
}

/// A duration as Rust prints it (s).
fn seconds(text: &str) -> Option<f64> {
    for (unit, factor) in [("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9), ("s", 1.0)] {
        if let Some(number) = text.strip_suffix(unit) {
            return Some(number.parse::<f64>().ok()? * factor);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn durations_are_read_as_they_are_printed() {
        let read = |text| seconds(text).map(|seconds| (seconds * 1e6).round());
        assert_eq!(
            [read("1.5s"), read("20ms"), read("3µs")],
            [Some(1.5e6), Some(2e4), Some(3.0)]
        );
        assert_eq!(read("soon"), None);
    }
}
