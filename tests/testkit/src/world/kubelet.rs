//! The kubelets: containers that start, run, end, and leave.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{KUBELET, World, condition, leaves, result, uid, whose};

/// A trial lasts this long (s).
const TRIAL: i64 = 12;
/// The weights are there after (s).
const FILL: i64 = 5;
/// A pod ends within (s).
const ENDS: i64 = 2;
/// The pod garbage collector leaves pods of a node that is gone alone for so long (s).
const QUARANTINE: i64 = 40;

impl World {
    /// The kubelets report how they are, by their own clock.
    pub(super) fn report_nodes(&self) {
        for node in self.server.shared("nodes") {
            let ready = !self.faults.nodes_unready;
            if condition(&node, "Ready") == Some(ready) {
                continue;
            }
            let (name, now) = (whose(&node).1, self.by_nodes());
            let status = if ready { "True" } else { "False" };
            self.server.edit("nodes", "", &name, |node| {
                node["status"]["conditions"] = json!([{
                    "type": "Ready", "status": status, "reason": "r", "message": "m", "lastTransitionTime": now,
                }]);
            });
        }
    }

    pub(super) fn run_kubelets(&mut self) {
        for pod in self.server.shared("pods") {
            if leaves(&pod) {
                self.end_pod(&pod);
            } else if pod["spec"]["nodeName"].is_string() {
                if self.node_lives(&pod) {
                    self.since.remove(&(uid(&pod), "lost"));
                    self.run_pod(&pod);
                } else {
                    self.collect_pod(&pod);
                }
            }
        }
    }

    fn node_lives(&self, pod: &Value) -> bool {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        self.server.get("nodes", "", node).is_some()
    }

    /// Ends a pod that is being deleted. Where its node is gone the garbage collector of pods does it, later.
    fn end_pod(&mut self, pod: &Value) {
        let bound = pod["spec"]["nodeName"].is_string();
        let ends = if !bound {
            0
        } else if self.node_lives(pod) {
            ENDS
        } else {
            QUARANTINE
        };
        let holds = bound && self.faults.stuck && self.node_lives(pod);
        if !holds && self.has_lasted(&uid(pod), "leaving", ends) {
            self.without_finalizer("pods", pod, KUBELET);
        }
    }

    /// As the garbage collector of pods does: those of a node that is gone are deleted by force.
    fn collect_pod(&mut self, pod: &Value) {
        if self.has_lasted(&uid(pod), "lost", QUARANTINE) {
            let (namespace, name) = whose(pod);
            self.server.delete("pods", &namespace, &name);
            self.without_finalizer("pods", pod, KUBELET);
        }
    }

    fn run_pod(&mut self, pod: &Value) {
        if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
            return;
        }
        let container = pod["spec"]["containers"][0]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if !self.has_lasted(&uid(pod), "starting", self.faults.starts_after) {
            return;
        }
        match container.as_str() {
            "aiperf" => self.run_trial(pod),
            "fill" => self.run_fill(pod),
            _ => self.serve(pod, &container),
        }
    }

    fn serve(&mut self, pod: &Value, container: &str) {
        let is_worker = pod["metadata"]["labels"]["perfvalidation.dev/component"] == "worker";
        let ready = !(is_worker && self.faults.never_ready);
        self.report(pod, "Running", container, ready, &json!({"running": {}}));
    }

    fn run_trial(&mut self, pod: &Value) {
        self.report(pod, "Running", "aiperf", true, &json!({"running": {}}));
        if !self.has_lasted(&uid(pod), "measuring", TRIAL) {
            return;
        }
        let workers = self.workers_next_to(pod);
        let trial = result::number(pod).unwrap_or(1);
        let index = usize::try_from(trial - 1).unwrap_or_default();
        let shows = self.faults.trials.get(index).or(self.faults.trials.last()).copied();
        let Some(result) = result::of(pod, shows.unwrap_or_default(), &workers) else {
            // It hangs until its Job's deadline.
            return;
        };
        let (namespace, name) = whose(pod);
        self.server.set_log(&namespace, &name, "aiperf", result.log);
        let ended = self.by_nodes();
        let code = result.exit_code;
        let state = json!({"terminated": {"exitCode": code, "finishedAt": ended, "message": result.message}});
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        self.report(pod, phase, "aiperf", false, &state);
    }

    fn workers_next_to(&self, pod: &Value) -> Vec<String> {
        let run = &pod["metadata"]["labels"]["perfvalidation.dev/run"];
        let is_worker = |other: &Arc<Value>| {
            let labels = &other["metadata"]["labels"];
            labels["perfvalidation.dev/run"] == *run
                && labels["perfvalidation.dev/component"] == "worker"
                && !leaves(other)
        };
        let pods = self.server.shared("pods");
        let address = |pod: &Arc<Value>| pod["status"]["podIP"].as_str().map(str::to_owned);
        pods.iter().filter(|pod| is_worker(pod)).filter_map(address).collect()
    }

    fn run_fill(&mut self, pod: &Value) {
        self.report(pod, "Running", "fill", true, &json!({"running": {}}));
        if !self.has_lasted(&uid(pod), "filling", FILL) {
            return;
        }
        let (phase, code) = if self.faults.cache_fails {
            ("Failed", 1)
        } else {
            ("Succeeded", 0)
        };
        self.report(pod, phase, "fill", false, &json!({"terminated": {"exitCode": code}}));
    }

    fn report(&self, pod: &Value, phase: &str, container: &str, ready: bool, state: &Value) {
        let shown = &pod["status"]["containerStatuses"][0];
        if pod["status"]["phase"] == phase && shown["ready"] == ready && shown["state"] == *state {
            return;
        }
        let (namespace, name) = whose(pod);
        let uid = uid(pod);
        let number: u64 = uid
            .rsplit('-')
            .next()
            .and_then(|last| last.parse().ok())
            .unwrap_or_default();
        let truth = if ready { "True" } else { "False" };
        self.server.edit("pods", &namespace, &name, |pod| {
            pod["status"] = json!({
                "phase": phase,
                "podIP": format!("10.1.{}.{}", number / 250, number % 250),
                "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": truth}],
                "containerStatuses": [{
                    "name": container, "image": "i", "imageID": "sha256:1", "ready": ready, "restartCount": 0, "state": state,
                }],
            });
        });
    }
}
