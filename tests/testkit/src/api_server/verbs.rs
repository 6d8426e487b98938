//! What each verb does.

use http::Method;
use serde_json::{Value, json};

use super::call::Address;
use super::kind::Kind;
use super::patch;
use super::refusal::Refusal;
use super::select::{selected, unselectable};
use super::service::Answer;
use super::store::{Key, Store, finalizers};

/// One request to a resource, with everything it may touch.
pub(super) struct Request<'a> {
    pub store: &'a mut Store,
    pub kind: &'a Kind,
    pub address: &'a Address,
    pub method: &'a Method,
    pub metadata_only: bool,
    pub content_type: &'a str,
    pub body: &'a [u8],
}

impl Request<'_> {
    pub(super) fn answer(self) -> Result<Answer, Refusal> {
        if let Some(field) = unselectable(&self.address.query, &self.kind.selectable) {
            let message = format!("field label not supported: {field}");
            return Err(Refusal::new(400, "BadRequest", message));
        }
        let named = self.address.name.is_some();
        match *self.method {
            Method::GET if self.address.query.get("watch").is_some_and(|watch| watch != "false") => Ok(self.watch()),
            Method::GET if named => self.get(),
            Method::GET => Ok(self.list()),
            Method::POST => self.create(),
            Method::PUT => self.update(),
            Method::PATCH => self.patch(),
            Method::DELETE => self.delete(),
            _ => Err(Refusal::new(405, "MethodNotAllowed", "method not allowed")),
        }
    }

    /// Whether an apply would make the object: that takes the right to create, too.
    pub(super) fn makes(&self) -> bool {
        self.address.subresource.is_none() && self.store.get(&self.named()).is_none()
    }

    fn key(&self, name: &str) -> Key {
        let namespace = self.address.namespace.clone().unwrap_or_default();
        (
            self.kind.group.clone(),
            self.kind.plural.clone(),
            namespace,
            name.to_owned(),
        )
    }

    fn named(&self) -> Key {
        self.key(self.address.name.as_deref().unwrap_or_default())
    }

    fn current(&self) -> Result<Value, Refusal> {
        let key = self.named();
        let found = self.store.get(&key).cloned();
        found.ok_or_else(|| Refusal::not_found(&key.1, &key.3))
    }

    fn render(&self, object: &Value) -> Value {
        render(
            object,
            &self.kind.api_version(&self.address.version),
            &self.kind.kind,
            self.metadata_only,
        )
    }

    fn object(&self, code: u16, object: &Value) -> Answer {
        Answer::Json(code, self.render(object))
    }

    fn read_body(&self) -> Result<Value, Refusal> {
        // kube sends an apply as JSON, which is YAML too.
        serde_json::from_slice(self.body).map_err(|error| Refusal::new(400, "BadRequest", error.to_string()))
    }

    fn get(&self) -> Result<Answer, Refusal> {
        Ok(self.object(200, &self.current()?))
    }

    fn list(&self) -> Answer {
        let Address { namespace, query, .. } = self.address;
        let number = |key: &str| query.get(key).and_then(|text| text.parse::<usize>().ok());
        let (from, limit) = (number("continue").unwrap_or(0), number("limit").unwrap_or(usize::MAX));
        let found: Vec<&Value> = self
            .store
            .of_kind(&self.kind.group, &self.kind.plural, namespace.as_deref())
            .filter(|object| selected(query, object))
            .collect();
        let to = from.saturating_add(limit).min(found.len());
        let page = found.get(from..to).unwrap_or_default();
        let mut items: Vec<Value> = page.iter().map(|object| self.render(object)).collect();
        if self.kind.is_built_in() && !self.metadata_only {
            for item in &mut items {
                remove(item, "apiVersion");
                remove(item, "kind");
            }
        }
        let mut meta = json!({"resourceVersion": self.store.version().to_string()});
        if to < found.len() {
            meta["continue"] = to.to_string().into();
        }
        Answer::Json(
            200,
            json!({
                "apiVersion": self.kind.api_version(&self.address.version),
                "kind": format!("{}List", self.kind.kind),
                "metadata": meta,
                "items": items,
            }),
        )
    }

    fn watch(self) -> Answer {
        let Address {
            namespace,
            query,
            version,
            ..
        } = self.address;
        let (api_version, kind) = (self.kind.api_version(version), self.kind.kind.clone());
        let metadata_only = self.metadata_only;
        let of = (self.kind.group.clone(), self.kind.plural.clone(), namespace.clone());
        let render = move |object: &Value| render(object, &api_version, &kind, metadata_only);
        Answer::Stream(self.store.watch(of, query.clone(), Box::new(render)))
    }

    fn create(self) -> Result<Answer, Refusal> {
        let mut object = self.read_body()?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(Refusal::new(422, "Invalid", "metadata.name: Required value"));
        }
        let key = self.key(&name);
        if self.store.get(&key).is_some() {
            return Err(Refusal::already_exists(&key.1, &name));
        }
        if let Some(namespace) = &self.address.namespace {
            object["metadata"]["namespace"] = namespace.clone().into();
        }
        if self.kind.status {
            remove(&mut object, "status");
        }
        self.kind.prune(&mut object);
        if let Some(manager) = self.address.query.get("fieldManager") {
            object["metadata"]["managedFields"] = json!([{"manager": manager, "operation": "Update"}]);
        }
        let object = self.store.newborn(object, self.kind);
        if self.address.is_dry_run() {
            return Ok(self.object(201, &object));
        }
        let stored = self.store.put(&key, object);
        Ok(self.object(201, &stored))
    }

    fn update(self) -> Result<Answer, Refusal> {
        let wanted = self.read_body()?;
        let current = self.current()?;
        let needs_version = !self.kind.is_built_in() || self.kind.plural == "leases";
        if needs_version && wanted["metadata"]["resourceVersion"].is_null() {
            let message = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
            return Err(Refusal::new(422, "Invalid", message).about(&self.named().3));
        }
        hold(&wanted, &current)?;
        let next = self.split(&current, wanted);
        self.store_and_answer(&current, next)
    }

    fn patch(self) -> Result<Answer, Refusal> {
        let body = self.read_body()?;
        let key = self.named();
        let subresource = self.address.subresource.clone().unwrap_or_default();
        let applies = self.content_type.contains("apply-patch");
        let current = match self.store.get(&key) {
            Some(current) => current.clone(),
            // A version alone does not keep an apply from creating.
            None if applies && subresource.is_empty() && !body["metadata"]["uid"].is_null() => {
                let message = "uid mismatch: the provided object specified a uid, and no existing object was found";
                return Err(Refusal::conflict(message));
            }
            None if applies && subresource.is_empty() => self.store.newborn(body.clone(), self.kind),
            None => return Err(Refusal::not_found(&key.1, &key.3)),
        };
        let mut next = current.clone();
        if applies {
            let manager = self.address.query.get("fieldManager").cloned().unwrap_or_default();
            let mut wish = body;
            if subresource == "status" {
                // Metadata of a status is ignored, except the version. Nobody applies the status of a built-in kind.
                remove(&mut wish["metadata"], "uid");
            }
            hold(&wish, &current)?;
            for field in ["uid", "resourceVersion"] {
                remove(&mut wish["metadata"], field);
            }
            let before = self.store.last_applied(&key, &manager, &subresource, &wish);
            patch::apply(&mut next, before.as_ref(), &wish);
        } else if self.content_type.contains("json-patch") {
            patch::json(&mut next, &body)?;
        } else {
            json_patch::merge(&mut next, &body);
        }
        hold(&next, &current)?;
        let next = self.split(&current, next);
        self.store_and_answer(&current, next)
    }

    fn delete(self) -> Result<Answer, Refusal> {
        let options: Value = serde_json::from_slice(self.body).unwrap_or_default();
        let wanted = &options["preconditions"];
        hold(&json!({"metadata": wanted}), &self.current()?)?;
        let key = self.named();
        let deleted = self.store.delete(&key)?;
        Ok(self.object(200, &deleted))
    }

    /// A write to the object leaves its status alone, a write to its status all else.
    fn split(&self, current: &Value, wanted: Value) -> Value {
        if !self.kind.status {
            return wanted;
        }
        let (mut base, status) = if self.address.subresource.as_deref() == Some("status") {
            (current.clone(), wanted["status"].clone())
        } else {
            (wanted, current["status"].clone())
        };
        if status.is_null() {
            remove(&mut base, "status");
        } else {
            base["status"] = status;
        }
        base
    }

    fn store_and_answer(self, current: &Value, mut next: Value) -> Result<Answer, Refusal> {
        let key = self.named();
        let is_new = |finalizer: &&Value| !finalizers(current).contains(finalizer);
        if !current["metadata"]["deletionTimestamp"].is_null()
            && let Some(new) = finalizers(&next).iter().find(is_new)
        {
            let message = format!(
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {new}"
            );
            return Err(Refusal::new(422, "Invalid", message).about(&key.3));
        }
        self.kind.prune(&mut next);
        let next = if self.address.is_dry_run() {
            next
        } else {
            self.store.put(&key, next)
        };
        Ok(self.object(200, &next))
    }
}

/// The optimistic lock: a uid or resourceVersion in a request must be the current one.
fn hold(wanted: &Value, current: &Value) -> Result<(), Refusal> {
    for field in ["uid", "resourceVersion"] {
        let (wanted, current) = (&wanted["metadata"][field], &current["metadata"][field]);
        if !wanted.is_null() && wanted != current {
            return Err(Refusal::conflict(format!(
                "Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {current}"
            )));
        }
    }
    Ok(())
}

fn render(object: &Value, api_version: &str, kind: &str, metadata_only: bool) -> Value {
    if metadata_only {
        return json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"],
        });
    }
    let mut object = object.clone();
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object
}

fn remove(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(field);
    }
}
