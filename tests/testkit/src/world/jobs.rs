//! The Job controller: one pod a Job, and a condition when it is over.

use serde_json::{Value, json};

use super::{World, condition, leaves, owner, uid, whose};

const JOB_NAME: &str = "batch.kubernetes.io/job-name";

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
            if let Some(pod) = pod {
                let (namespace, name) = whose(pod);
                self.server.delete("pods", &namespace, &name);
            }
            return self.end_job(job, "Failed", "DeadlineExceeded");
        }
        match pod {
            Some(pod) if pod["status"]["phase"] == "Succeeded" => self.end_job(job, "Complete", "CompletionsReached"),
            Some(pod) if pod["status"]["phase"] == "Failed" || leaves(pod) => {
                self.end_job(job, "Failed", "BackoffLimitExceeded");
            }
            Some(_) => {}
            None if has_begun => self.end_job(job, "Failed", "BackoffLimitExceeded"),
            None if !self.may_create(job) => {}
            None => {
                let pod_name = format!("{name}-{}", self.suffix());
                let template = &job["spec"]["template"];
                let mut labels = template["metadata"]["labels"].clone();
                labels[JOB_NAME] = name.as_str().into();
                self.create_pod(&namespace, &pod_name, &owner(job), &labels, &template["spec"]);
                let now = self.by_controllers();
                self.server
                    .edit("jobs", &namespace, &name, |job| job["status"]["startTime"] = now);
            }
        }
    }

    fn end_job(&self, job: &Value, condition: &str, reason: &str) {
        let (namespace, name) = whose(job);
        let now = self.by_controllers();
        self.server.edit("jobs", &namespace, &name, |job| {
            job["status"]["conditions"] = json!([
                {"type": condition, "status": "True", "reason": reason, "message": reason, "lastTransitionTime": now},
            ]);
        });
    }
}
