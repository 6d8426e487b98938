//! A Prometheus with the scrape configuration of docs/install.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use perfval_e2e::{Lab, eventually};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::Outcome;

const ADDRESS: &str = "127.0.0.1:9090";
/// How the page names the target: a name of the cluster's DNS, which a process beside the cluster cannot resolve.
const TARGET: &str = "perfvalidation-operator-metrics.perfvalidation-system.svc";

/// A running one; it goes with this value.
pub struct Prometheus {
    promtool: PathBuf,
    _data: TempDir,
    _process: Child,
}

impl Prometheus {
    /// Starts Debian's, and waits until it has read the operator's series.
    pub async fn start(lab: &Lab, programs: &Path, scrape_configs: &str) -> Outcome<Self> {
        let address = [
            "get",
            "service",
            "-n",
            "perfvalidation-system",
            "perfvalidation-operator-metrics",
        ];
        let address = lab
            .kubectl(&[&address[..], &["-o", "jsonpath={.spec.clusterIP}"]].concat())
            .await;
        if !scrape_configs.contains(TARGET) {
            return Err(format!("the page's scrape_configs do not name {TARGET}").into());
        }
        let data = tempfile::tempdir()?;
        let file = data.path().join("prometheus.yml");
        // A run of the lab takes a minute.
        let global = "global: {scrape_interval: 2s, scrape_timeout: 2s}\n";
        fs::write(&file, format!("{global}{}", scrape_configs.replace(TARGET, &address)))?;
        let process = Command::new(programs.join("prometheus"))
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", data.path().join("data").display()))
            .arg(format!("--web.listen-address={ADDRESS}"))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let prometheus = Self {
            promtool: programs.join("promtool"),
            _data: data,
            _process: process,
        };
        eventually("Prometheus scrapes the operator", Duration::from_mins(1), || async {
            let up = prometheus.instant("up{job=\"perfvalidation-operator\"} == 1").await;
            up.map_err(|error| error.to_string())?
                .pop()
                .ok_or("it is not up".to_owned())
        })
        .await;
        Ok(prometheus)
    }

    /// The series that a query gives now.
    pub async fn instant(&self, query: &str) -> Outcome<Vec<Value>> {
        self.query(&["instant", &url(), query]).await
    }

    /// The series that a query gives in the last half hour.
    pub async fn range(&self, query: &str) -> Outcome<Vec<Value>> {
        let start = format!("--start={}", chrono::Utc::now().timestamp() - 1800);
        self.query(&["range", &start, "--step=5s", &url(), query]).await
    }

    async fn query(&self, arguments: &[&str]) -> Outcome<Vec<Value>> {
        let mut promtool = Command::new(&self.promtool);
        let output = promtool.args(["query", "-o", "json"]).args(arguments).output().await?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

fn url() -> String {
    format!("http://{ADDRESS}")
}
