//! The installed operator as a user sees it: its pod and its metrics.

use std::time::{Duration, Instant};

use kube::{Client, Config, ResourceExt as _};
use perfval_e2e::{Lab, Operator, eventually};

use crate::reached::Reached;
use crate::{LIMIT, Outcome};
use perfval_e2e::process::Process;

/// How often a starting operator is asked.
const POLL: Duration = Duration::from_millis(50);

/// One pod of the operator, and the process in it.
pub struct Running {
    name: String,
    uid: String,
    metrics: Client,
    pub process: Process,
}

impl Running {
    /// A fresh pod that leads: memory and watches of an earlier round count for nothing.
    pub async fn fresh(operator: &Operator) -> Outcome<Self> {
        operator.scale(0).await;
        operator.scale(1).await;
        let pod = operator.pod().await;
        let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        let address = format!("http://{}:8080", address.ok_or("the operator's pod has no address")?);
        let uid = pod.uid().ok_or("the operator's pod has no uid")?;
        let running = Self {
            name: pod.name_any(),
            process: Process::operator(&uid)?.ok_or("the operator's process is not in /proc")?,
            uid,
            metrics: Client::try_from(Config::new(address.parse()?))?,
        };
        eventually("the operator leads", LIMIT, || async {
            let leads = running
                .sum("perfvalidation_leader")
                .await
                .map_err(|error| error.to_string())?;
            if leads > 0 {
                Ok(())
            } else {
                Err("it stands by".to_owned())
            }
        })
        .await;
        Ok(running)
    }

    /// Kills the process and waits until its successor has looked at as many objects. Seen by its metrics: its planner has
    /// looked for those that wait, and each other one had a pass. The time counts from the start of
    /// the new process: how soon the kubelet starts it is not the operator's.
    pub async fn restart(&mut self, lab: &Lab, objects: usize) -> Outcome<Reached> {
        lab.run(&["fault", "kill", &format!("perfvalidation-system/{}", self.name)])
            .await;
        let killed = self.process.clone();
        let began = Instant::now();
        let mut looked_at = 0;
        while began.elapsed() < LIMIT {
            match Process::operator(&self.uid)? {
                Some(process) if process != killed => self.process = process,
                _ => {
                    tokio::time::sleep(POLL).await;
                    continue;
                }
            }
            // It does not listen yet.
            let passes = self
                .sum("perfvalidation_reconcile_duration_seconds_count")
                .await
                .unwrap_or(0);
            let queued = self.sum("perfvalidation_planned_runs").await.unwrap_or(0);
            looked_at = (passes + queued).min(objects);
            if looked_at == objects {
                let seconds = self.process.age().ok_or("the new operator is gone again")?;
                return Ok(Reached::After(seconds));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(Reached::Only(looked_at, objects))
    }

    /// How often its container was started again.
    pub async fn restarts(&self, operator: &Operator) -> i32 {
        let status = operator.pod().await.status.unwrap_or_default();
        let containers = status.container_statuses.unwrap_or_default();
        containers.iter().map(|container| container.restart_count).sum()
    }

    /// The sum of a series over its labels.
    async fn sum(&self, series: &str) -> Outcome<usize> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        let text = self.metrics.request_text(request).await?;
        Ok(total(&text, series))
    }
}

fn total(metrics: &str, series: &str) -> usize {
    let values = metrics.lines().filter_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        let name = name.split('{').next()?;
        value.parse::<usize>().ok().filter(|_| name == series)
    });
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_summed_over_its_labels_and_no_longer_name_is_taken_for_it() {
        let metrics = "# TYPE passes histogram\npasses_count{outcome=\"ok\"} 3\npasses_count{outcome=\"conflict\"} 4\n\
            passes_counted 9\npasses_sum{outcome=\"ok\"} 0.5\n# EOF\n";
        assert_eq!(total(metrics, "passes_count"), 7);
    }
}
