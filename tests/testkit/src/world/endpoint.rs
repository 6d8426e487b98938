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
    /// No such model.
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
        let mut known = self.endpoints.0.lock().unwrap_or_else(PoisonError::into_inner);
        for answer in known.values_mut() {
            *answer = None;
        }
        for of in ready {
            let is_new = known.insert(of.clone(), Some(self.faults.answer)).is_none();
            if is_new {
                let (endpoints, (namespace, service)) = (self.endpoints.clone(), of.clone());
                self.server
                    .set_backend(&namespace, &service, PORT, move |method, path, _| {
                        endpoints.answer(&of, method, path)
                    });
            }
        }
    }
}

impl Endpoints {
    fn answer(&self, of: &(String, String), method: &Method, path: &str) -> (u16, String) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(answer) = known.get(of).copied().flatten() else {
            return (503, "no endpoints available".to_owned());
        };
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
