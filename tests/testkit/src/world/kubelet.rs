//! The kubelets: containers that start, run, end, and leave.

use std::sync::Arc;

use serde_json::{Value, json};

use super::play::ENDS;
use super::result::{self, TrialResult};
use super::{KUBELET, World, condition, leaves, uid, whose};

/// A trial lasts this long (s).
const TRIAL: i64 = 12;
/// The weights are there after (s).
const FILL: i64 = 5;
/// The pod garbage collector leaves pods of a node that is gone alone for so long (s).
const QUARANTINE: i64 = 40;

impl World {
    /// The kubelets report how they are, by their own clock.
    pub(super) fn report_nodes(&mut self) {
        let ready = !self.faults.nodes_unready;
        let state = |world: &Self| Some((world.server.version_of("nodes"), ready));
        if self.reported == state(self) {
            return;
        }
        for node in self.server.shared("nodes") {
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
        self.reported = state(self);
    }

    /// Runs the pods, and nothing else: in a cluster with controllers and a scheduler of its own.
    pub fn run_kubelets(&mut self) {
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
        self.server.exists("nodes", "", node)
    }

    /// Ends a pod that is being deleted. Where its node is gone the garbage collector of pods does it, later.
    fn end_pod(&mut self, pod: &Value) {
        let bound = pod["spec"]["nodeName"].is_string();
        let ends = if !bound {
            0
        } else if self.node_lives(pod) {
            self.play.as_ref().map_or(ENDS, |play| play.ends_after(pod))
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
        let starts_after = match &self.play {
            Some(play) => play.starts_after(pod),
            None => self.faults.starts_after,
        };
        if !self.has_lasted(&uid(pod), "starting", starts_after) {
            // A server loads its weights.
            if !matches!(container.as_str(), "aiperf" | "fill") {
                self.report(pod, "Running", &container, false, &json!({"running": {}}));
            }
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
        if is_worker && self.play.as_ref().is_some_and(|play| play.crashes(pod)) {
            return self.crash(pod, container);
        }
        let ready = !(is_worker && self.faults.never_ready);
        self.report(pod, "Running", container, ready, &json!({"running": {}}));
    }

    /// The container has ended twice and waits for its next start.
    fn crash(&self, pod: &Value, container: &str) {
        let waits =
            json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s restarting failed container"}});
        if pod["status"]["containerStatuses"][0]["state"] == waits {
            return;
        }
        self.report(pod, "Running", container, false, &waits);
        let ((namespace, name), ended) = (whose(pod), self.by_nodes());
        self.server.edit("pods", &namespace, &name, |pod| {
            let status = &mut pod["status"]["containerStatuses"][0];
            status["restartCount"] = json!(2);
            status["lastState"] = json!({"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": ended}});
        });
    }

    fn run_trial(&mut self, pod: &Value) {
        self.report(pod, "Running", "aiperf", true, &json!({"running": {}}));
        let lasts = self.play.as_ref().map_or(TRIAL, |play| play.trial_lasts(pod));
        if !self.has_lasted(&uid(pod), "measuring", lasts) {
            if let Some(line) = result::progress(pod, self.lasted(&uid(pod), "measuring")) {
                let (namespace, name) = whose(pod);
                self.server.set_log(&namespace, &name, "aiperf", line);
            }
            return;
        }
        let result = match &self.play {
            Some(play) => result::played(pod, play.measure(pod, &self.workers_next_to(pod))),
            None => self.result(pod),
        };
        // Without one it hangs until its Job's deadline.
        let Some(result) = result else { return };
        let (namespace, name) = whose(pod);
        self.server.set_log(&namespace, &name, "aiperf", result.log);
        let ended = self.by_nodes();
        let code = result.exit_code;
        let state = json!({"terminated": {"exitCode": code, "finishedAt": ended, "message": result.message}});
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        self.report(pod, phase, "aiperf", false, &state);
    }

    fn result(&self, pod: &Value) -> Option<TrialResult> {
        let trial = result::number(pod).unwrap_or(1);
        let index = usize::try_from(trial - 1).unwrap_or_default();
        let shows = self.faults.trials.get(index).or(self.faults.trials.last()).copied();
        let workers = self.workers_next_to(pod);
        let address = |pod: &Arc<Value>| pod["status"]["podIP"].as_str().map(str::to_owned);
        let addresses: Vec<String> = workers.iter().filter_map(address).collect();
        result::of(pod, shows.unwrap_or_default(), &addresses)
    }

    fn workers_next_to(&self, pod: &Value) -> Vec<Arc<Value>> {
        let run = &pod["metadata"]["labels"]["perfvalidation.dev/run"];
        let is_worker = |other: &Arc<Value>| {
            let labels = &other["metadata"]["labels"];
            labels["perfvalidation.dev/run"] == *run
                && labels["perfvalidation.dev/component"] == "worker"
                && !leaves(other)
        };
        let mut pods = self.server.shared("pods");
        pods.retain(is_worker);
        pods
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
        // An API server adds an empty start to a state that runs.
        let is_shown =
            shown["state"] == *state || (shown["state"]["running"].is_object() && state["running"].is_object());
        if pod["status"]["phase"] == phase && shown["ready"] == ready && is_shown {
            return;
        }
        let (namespace, name) = whose(pod);
        let address = address(&uid(pod));
        let truth = if ready { "True" } else { "False" };
        self.server.edit("pods", &namespace, &name, |pod| {
            let status = &mut pod["status"];
            status["phase"] = phase.into();
            status["podIP"] = address.into();
            status["conditions"] = json!([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": truth}]);
            status["containerStatuses"] = json!([{
                "name": container, "image": "i", "imageID": "sha256:1", "ready": ready, "restartCount": 0, "state": state,
            }]);
        });
    }
}

/// Address of a pod, in the network that is shared by no machine of the internet (RFC 6598): 22 bits of its uid.
fn address(uid: &str) -> String {
    let digits = uid.get(uid.len().saturating_sub(6)..).unwrap_or_default();
    let number = u32::from_str_radix(digits, 16).unwrap_or_default();
    let [_, high, middle, low] = number.to_be_bytes();
    format!("100.{}.{middle}.{low}", 64 + (high & 63))
}
