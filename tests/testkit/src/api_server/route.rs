//! From a request to the code that answers it.

use http::{HeaderMap, Method, header};
use serde_json::{Value, json};

use super::call::{Address, Call, Target};
use super::kind::{Kind, is_built_in};
use super::refusal::Refusal;
use super::service::Answer;
use super::{State, fault, log, verbs};

/// Verbs of a role.
pub const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];

/// Version that `/version` reports.
pub const KUBERNETES: &str = "v1.36.4";

impl State {
    pub(super) fn handle(
        &mut self,
        method: &Method,
        uri: &http::Uri,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Answer, Refusal> {
        let nowhere = || Refusal::new(404, "NotFound", "404 page not found");
        match Target::of(uri).ok_or_else(nowhere)? {
            Target::Version => Ok(Answer::Json(200, version())),
            Target::Discovery { group, version } => self.discover(&group, &version).ok_or_else(nowhere),
            Target::Resource(address) => self.resource(method, &address, headers, body),
        }
    }

    fn discover(&self, group: &str, version: &str) -> Option<Answer> {
        let served = |kind: &&Kind| kind.group == group && kind.versions.iter().any(|served| served == version);
        let resources: Vec<Value> = self.kinds.iter().filter(served).flat_map(Kind::resources).collect();
        let group_version = format!("{group}/{version}");
        let group_version = group_version.trim_start_matches('/');
        (!resources.is_empty()).then(|| {
            Answer::Json(
                200,
                json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}),
            )
        })
    }

    fn resource(
        &mut self,
        method: &Method,
        address: &Address,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Answer, Refusal> {
        let call = address
            .call(method)
            .ok_or_else(|| Refusal::new(405, "MethodNotAllowed", "method not allowed"))?;
        self.calls.push(call.clone());
        let mut faults = self.faults.iter_mut();
        match faults.find_map(|fault| fault.strikes(&call, &address.query).then(|| fault.effect.clone())) {
            Some(fault::Effect::Refuse { code, reason, message }) => {
                // With a name: a refused 404 is a missing object, not a kind that is not served.
                Err(Refusal::new(code, &reason, message).about("fault"))
            }
            Some(fault::Effect::Hang) => Ok(Answer::Never),
            Some(fault::Effect::LoseAnswer) => {
                // Done, whatever came of it; the answer is lost.
                let _ = self.carry_out(method, address, headers, body);
                Ok(Answer::Never)
            }
            None if address.plural.ends_with("subjectaccessreviews") => self.review(body),
            None => self.carry_out(method, address, headers, body),
        }
    }

    /// Whether a call would be allowed: unless a fault refuses it with 403.
    fn review(&self, body: &[u8]) -> Result<Answer, Refusal> {
        let mut review: Value =
            serde_json::from_slice(body).map_err(|error| Refusal::new(400, "BadRequest", error.to_string()))?;
        let asked = review["spec"]["resourceAttributes"].clone();
        let text = |field: &str| asked[field].as_str().unwrap_or_default().to_owned();
        let subresource = Some(text("subresource")).filter(|subresource| !subresource.is_empty());
        let forbidden = self.faults.iter().any(|fault| {
            VERBS.into_iter().filter(|verb| *verb == text("verb")).any(|verb| {
                fault.forbids(&Call {
                    verb,
                    group: text("group"),
                    resource: match &subresource {
                        Some(subresource) => format!("{}/{subresource}", text("resource")),
                        None => text("resource"),
                    },
                    namespace: Some(text("namespace")).filter(|namespace| !namespace.is_empty()),
                    name: None,
                    dry_run: false,
                })
            })
        });
        review["status"] = json!({"allowed": !forbidden});
        Ok(Answer::Json(201, review))
    }

    fn carry_out(
        &mut self,
        method: &Method,
        address: &Address,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Answer, Refusal> {
        let served = |kind: &&Kind| {
            kind.group == address.group && kind.plural == address.plural && kind.versions.contains(&address.version)
        };
        let Some(kind) = self.kinds.iter().find(served).cloned() else {
            // Groups of the API server itself answer in JSON, those of CRDs in text.
            return if is_built_in(&address.group) {
                Err(Refusal::new(
                    404,
                    "NotFound",
                    "the server could not find the requested resource",
                ))
            } else {
                Ok(Answer::Plain(404, b"404 page not found\n".to_vec()))
            };
        };
        match address.subresource.as_deref() {
            Some("log") => return self.log(address),
            Some("proxy") => return Ok(self.proxy(method, address, body)),
            _ => {}
        }
        let creates = *method == Method::POST || method == Method::PATCH && self.is_missing(address);
        if creates && let Some(namespace) = address.namespace.as_ref().filter(|of| self.terminating.contains(*of)) {
            return Err(Refusal::new(
                403,
                "Forbidden",
                format!(
                    "{} is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
                    address.plural
                ),
            )
            .about(address.name.as_deref().unwrap_or("object"))
            .because("NamespaceTerminating"));
        }
        let header = |name| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
        };
        let content_type = header(header::CONTENT_TYPE);
        let request = verbs::Request {
            metadata_only: header(header::ACCEPT).contains("as=PartialObjectMetadata"),
            content_type,
            store: &mut self.store,
            kind: &kind,
            address,
            method,
            body,
        };
        if content_type.contains("apply-patch") && request.makes() {
            self.calls.extend(address.call(&Method::POST));
        }
        request.answer()
    }

    fn is_missing(&self, address: &Address) -> bool {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let key = (
            address.group.clone(),
            address.plural.clone(),
            text(&address.namespace),
            text(&address.name),
        );
        self.store.get(&key).is_none()
    }

    fn log(&self, address: &Address) -> Result<Answer, Refusal> {
        let text = |key: &str| address.query.get(key).cloned().unwrap_or_default();
        let (namespace, pod) = (
            address.namespace.clone().unwrap_or_default(),
            address.name.clone().unwrap_or_default(),
        );
        let key = self.key("pods", &namespace, &pod);
        if self.store.get(&key).is_none() {
            return Err(Refusal::not_found("pods", &pod));
        }
        let waiting = || {
            Refusal::new(
                400,
                "BadRequest",
                format!("container in pod \"{pod}\" is waiting to start"),
            )
        };
        let logs = if text("previous") == "true" {
            &self.previous_logs
        } else {
            &self.logs
        };
        let whole = logs
            .get(&(namespace, pod.clone(), text("container")))
            .ok_or_else(waiting)?;
        let whole = log::shown(whole, text("timestamps") == "true");
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let tail = text("tailLines").parse().unwrap_or(usize::MAX).min(lines.len());
        let mut bytes = lines[lines.len() - tail..].concat();
        bytes.truncate(text("limitBytes").parse().unwrap_or(usize::MAX));
        Ok(Answer::Plain(200, bytes))
    }

    fn proxy(&mut self, method: &Method, address: &Address, body: &[u8]) -> Answer {
        let of = (
            address.namespace.clone().unwrap_or_default(),
            address.name.clone().unwrap_or_default(),
        );
        if let Some(backend) = self.backends.get_mut(&of) {
            let (code, text) = backend(method, &format!("/{}", address.rest), body);
            return Answer::Plain(code, text.into_bytes());
        }
        let refusal = Refusal::new(
            503,
            "ServiceUnavailable",
            format!("no endpoints available for service {:?}", of.1),
        );
        Answer::Json(refusal.code, refusal.status())
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": KUBERNETES, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "", "goVersion": "", "compiler": "gc", "platform": "linux/amd64",
    })
}
