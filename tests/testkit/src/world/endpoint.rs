//! What the frontends answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use serde_json::json;

use super::{World, condition, leaves, whose};

/// What a frontend answers to a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Some text.
    Completion,
    /// No such model: another one is served.
    NotFound,
    /// Nothing at all in it.
    Empty,
}

/// Frontends that answer, by namespace and Service.
#[derive(Clone, Default)]
pub(super) struct Endpoints(Arc<Mutex<Answers>>);

type Answers = BTreeMap<(String, String), Option<Answer>>;

const PORT: u16 = 8000;

impl World {
    pub(super) fn serve_endpoints(&self) {
        let pods = self.server.shared("pods");
        let mut ready: Vec<(String, String)> = Vec::new();
        for pod in pods
            .iter()
            .filter(|pod| !leaves(pod) && condition(pod, "Ready") == Some(true))
        {
            let labels = &pod["metadata"]["labels"];
            if labels["perfvalidation.dev/component"] == "frontend"
                && let Some(run) = labels["perfvalidation.dev/run"].as_str()
            {
                ready.push((whose(pod).0, format!("pv-{run}-frontend")));
            }
        }
        // Lock order: the API server calls backends under its own lock, so none is set under the lock of the answers.
        for of in self.endpoints.replace(ready, self.faults.answer) {
            let (endpoints, (namespace, service)) = (self.endpoints.clone(), of.clone());
            self.server
                .set_backend(&namespace, &service, PORT, move |method, path, _| {
                    endpoints.answer(&of, method, path)
                });
        }
    }
}

impl Endpoints {
    /// Lets these frontends answer, and no other. Returns those that are new.
    fn replace(&self, mut ready: Vec<(String, String)>, with: Answer) -> Vec<(String, String)> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for answer in known.values_mut() {
            *answer = None;
        }
        ready.retain(|of| known.insert(of.clone(), Some(with)).is_none());
        ready
    }

    fn answer(&self, of: &(String, String), method: &Method, path: &str) -> (u16, String) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(answer) = known.get(of).copied().flatten() else {
            return (503, "no endpoints available".to_owned());
        };
        if *method == Method::GET && path == "/v1/models" && answer == Answer::NotFound {
            return (200, json!({"data": [{"id": "lab/other"}]}).to_string());
        }
        if *method == Method::GET || !path.ends_with("/chat/completions") {
            return (404, String::new());
        }
        let text = match answer {
            Answer::NotFound => return (404, "model not found".to_owned()),
            Answer::Completion => "hello",
            Answer::Empty => "",
        };
        (
            200,
            json!({"choices": [{"message": {"role": "assistant", "content": text}}]}).to_string(),
        )
    }
}
