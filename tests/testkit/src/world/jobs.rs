//! The Job controller: one pod a Job, and a status that it writes in the same steps as a real one.

use serde_json::{Value, json};

use super::{World, condition, leaves, owner, uid, whose};

const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The controller looks at a pod so long after its change (s).
const LATER: i64 = 1;

impl World {
    pub(super) fn run_jobs(&mut self) {
        let pods = self.pods_by_owner();
        for job in self.server.shared("jobs") {
            let over = condition(&job, "Complete").is_some() || condition(&job, "Failed").is_some();
            if over || leaves(&job) {
                continue;
            }
            let pod = pods.get(&uid(&job)).and_then(|pods| pods.first());
            self.run_job(&job, pod.map(|pod| &**pod));
        }
    }

    fn run_job(&mut self, job: &Value, pod: Option<&Value>) {
        let (namespace, name) = whose(job);
        let has_begun = job["status"]["startTime"].is_string();
        let limit = job["spec"]["activeDeadlineSeconds"].as_i64().unwrap_or(i64::MAX / 2);
        if self.has_lasted(&uid(job), "active", limit) {
            return match pod {
                Some(pod) => self.stop_job(job, pod),
                None => self.end_job(job, "Failed", "DeadlineExceeded"),
            };
        }
        match pod {
            Some(pod) if pod["status"]["phase"] == "Succeeded" => self.count_end(job, pod, "Complete"),
            Some(pod) if pod["status"]["phase"] == "Failed" => self.count_end(job, pod, "Failed"),
            Some(pod) if leaves(pod) => self.end_job(job, "Failed", "BackoffLimitExceeded"),
            Some(pod) => self.count_ready(job, pod),
            None if has_begun => self.end_job(job, "Failed", "BackoffLimitExceeded"),
            None if !self.may_create(job) => {}
            None => {
                let pod_name = format!("{name}-{}", self.suffix());
                let template = &job["spec"]["template"];
                let mut labels = template["metadata"]["labels"].clone();
                labels[JOB_NAME] = name.as_str().into();
                self.create_pod(&namespace, &pod_name, &owner(job), &labels, &template["spec"]);
                let now = self.by_controllers();
                self.server.edit("jobs", &namespace, &name, |job| {
                    job["status"] = json!({"startTime": now, "active": 1, "ready": 0, "uncountedTerminatedPods": {}});
                });
            }
        }
    }

    fn count_ready(&mut self, job: &Value, pod: &Value) {
        let is_news = condition(pod, "Ready") == Some(true) && job["status"]["ready"] != 1;
        if is_news && self.has_lasted(&uid(pod), "ready", LATER) {
            let (namespace, name) = whose(job);
            self.server
                .edit("jobs", &namespace, &name, |job| job["status"]["ready"] = json!(1));
        }
    }

    /// Counts a pod that has ended, and ends its Job in the next step.
    fn count_end(&mut self, job: &Value, pod: &Value, ends: &str) {
        let (counted, reason) = match ends {
            "Complete" => ("succeeded", "CompletionsReached"),
            _ => ("failed", "BackoffLimitExceeded"),
        };
        if self.has_lasted(&uid(pod), "over", 2 * LATER) {
            return self.end_job(job, ends, reason);
        }
        if job["status"]["active"] != 0 && self.has_lasted(&uid(pod), "over", LATER) {
            let (namespace, name) = whose(job);
            let pod = uid(pod);
            self.server.edit("jobs", &namespace, &name, |job| {
                let status = &mut job["status"];
                (status["active"], status["ready"]) = (json!(0), json!(0));
                status["uncountedTerminatedPods"] = json!({counted: [pod]});
            });
        }
    }

    /// A Job has failed only once its pod is gone.
    fn stop_job(&self, job: &Value, pod: &Value) {
        if condition(job, "FailureTarget").is_none() {
            self.end_job(job, "FailureTarget", "DeadlineExceeded");
        }
        let (namespace, name) = whose(pod);
        self.server.delete("pods", &namespace, &name);
    }

    fn end_job(&self, job: &Value, condition: &str, reason: &str) {
        let (namespace, name) = whose(job);
        let now = self.by_controllers();
        self.server.edit("jobs", &namespace, &name, |job| {
            let ended = json!({
                "type": condition, "status": "True", "reason": reason, "message": reason, "lastTransitionTime": now,
            });
            let before = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
            job["status"]["conditions"] = before.into_iter().chain([ended]).collect();
        });
    }
}
