use std::cmp;

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, TypeMeta};
use kube::{Api, ResourceExt as _};
use perfval_api::PerfValidation;
use perfval_api::meta::NAME_LABEL;
use perfval_run::build::RESULTS;
use perfval_run::names::COMPONENT_LABEL;
use serde_json::{Value, json};

use crate::error::Error;
use crate::session::Session;

/// A kind of objects, at the versions that are tried, the newest first.
pub struct ObjectKind {
    pub group: &'static str,
    pub versions: &'static [&'static str],
    pub name: &'static str,
    pub plural: &'static str,
    /// True if Dynamo's operator makes its objects, so that they may lack the label and are recognised by their owners.
    pub by_owner: bool,
}

/// An object that events may be about.
pub struct EventSubject {
    uid: String,
    kind: String,
    name: String,
}

impl EventSubject {
    pub fn new(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            uid: text(&object["metadata"]["uid"]),
            kind: text(&object["kind"]),
            name: text(&object["metadata"]["name"]),
        }
    }

    fn has_uid(&self, uid: &Value) -> bool {
        uid.as_str().is_some_and(|uid| !uid.is_empty() && uid == self.uid)
    }

    /// A namesake of an earlier run counts: its events show its problems.
    fn is_meant(&self, reference: &Value) -> bool {
        self.has_uid(&reference["uid"])
            || (reference["kind"].as_str() == Some(&self.kind) && reference["name"].as_str() == Some(&self.name))
    }
}

const fn kind(
    group: &'static str,
    versions: &'static [&'static str],
    name: &'static str,
    plural: &'static str,
) -> ObjectKind {
    ObjectKind {
        group,
        versions,
        name,
        plural,
        by_owner: false,
    }
}

/// Events of one call, and calls: a namespace may have more than fit into memory.
const EVENTS: u32 = 500;
const PAGES: usize = 40;
/// Reason why some events are missing.
const TOO_MANY_EVENTS: &str =
    "the namespace has more than 20000 and the rest was not read; `kubectl get events` has all of them";

/// Objects that a run creates, owners before their children. No Secrets.
pub const CHILDREN: [ObjectKind; 9] = [
    kind("", &["v1"], "Pod", "pods"),
    kind("", &["v1"], "Service", "services"),
    kind("", &["v1"], "PersistentVolumeClaim", "persistentvolumeclaims"),
    kind("batch", &["v1"], "Job", "jobs"),
    kind("networking.k8s.io", &["v1"], "NetworkPolicy", "networkpolicies"),
    kind("resource.k8s.io", &["v1"], "ResourceClaim", "resourceclaims"),
    kind(
        "resource.k8s.io",
        &["v1"],
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
    ),
    kind(
        "nvidia.com",
        &["v1beta1", "v1alpha1"],
        "DynamoGraphDeployment",
        "dynamographdeployments",
    ),
    ObjectKind {
        by_owner: true,
        ..kind(
            "nvidia.com",
            &["v1beta1", "v1alpha1"],
            "DynamoComponentDeployment",
            "dynamocomponentdeployments",
        )
    },
];

/// Objects of the whole cluster that sizing reads.
const SIZED: [ObjectKind; 5] = [
    kind("", &["v1"], "Node", "nodes"),
    kind("", &["v1"], "Pod", "pods"),
    kind("resource.k8s.io", &["v1"], "ResourceSlice", "resourceslices"),
    kind("resource.k8s.io", &["v1"], "ResourceClaim", "resourceclaims"),
    kind("resource.k8s.io", &["v1"], "DeviceClass", "deviceclasses"),
];

/// The objects of a kind that belong to a validation, some of whose objects are known already.
pub async fn listed_objects(
    session: &Session,
    object: &PerfValidation,
    kind: &ObjectKind,
    listed: &[EventSubject],
) -> Result<Vec<Value>, String> {
    let name = object.name_any();
    let params = if kind.by_owner {
        ListParams::default()
    } else {
        ListParams::default().labels(&format!("{NAME_LABEL}={name}"))
    };
    let mut items = list(session, kind, Some(&session.namespace), &params).await?;
    if kind.by_owner {
        items.retain(|item| {
            let owners = item["metadata"]["ownerReferences"].as_array();
            let owned = owners
                .into_iter()
                .flatten()
                .any(|owner| listed.iter().any(|subject| subject.has_uid(&owner["uid"])));
            owned || item["metadata"]["labels"][NAME_LABEL].as_str() == Some(&name)
        });
    }
    Ok(items)
}

/// Names of the `ConfigMaps` with results of a validation.
pub async fn saved_results(session: &Session, object: &PerfValidation) -> Result<Vec<String>, String> {
    let labels = format!("{NAME_LABEL}={},{COMPONENT_LABEL}={RESULTS}", object.name_any());
    let api: Api<ConfigMap> = Api::namespaced(session.client.clone(), &session.namespace);
    // Without their content: all of them may have more than fits into memory. The newest first, as the archive has a limit.
    let listed = api.list_metadata(&ListParams::default().labels(&labels)).await;
    let listed = listed.map_err(|error| Error::from_call("read ConfigMaps", error).to_string())?;
    let mut found = listed.items;
    found.sort_by_key(|found| cmp::Reverse(found.metadata.creation_timestamp.clone()));
    Ok(found.into_iter().filter_map(|found| found.metadata.name).collect())
}

/// The events about these objects, and the reason why others may be missing.
pub async fn events(session: &Session, listed: &[EventSubject]) -> (Vec<Value>, Option<String>) {
    let api: Api<DynamicObject> = Api::namespaced_with(
        session.client.clone(),
        &session.namespace,
        &ApiResource::erase::<Event>(&()),
    );
    let mut params = ListParams::default().limit(EVENTS);
    let mut kept = Vec::new();
    for _ in 0..PAGES {
        let page = match api.list(&params).await {
            Ok(page) => page,
            Err(error) => return (kept, Some(Error::from_call("read events", error).to_string())),
        };
        for mut event in page.items {
            if listed
                .iter()
                .any(|subject| subject.is_meant(&event.data["involvedObject"]))
            {
                // Items of a list do not repeat them.
                event.types = Some(TypeMeta::resource::<Event>());
                kept.extend(serde_json::to_value(event));
            }
        }
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return (kept, None);
        }
    }
    (kept, Some(TOO_MANY_EVENTS.to_owned()))
}

/// Everything that sizing reads; one kind that cannot be read makes the rest useless.
pub async fn dump(session: &Session) -> Result<Vec<Value>, String> {
    let mut all = Vec::new();
    for kind in &SIZED {
        let mut items = list(session, kind, None, &ListParams::default()).await?;
        if kind.plural == "pods" {
            items.iter_mut().for_each(strip);
        }
        for item in &mut items {
            if let Some(meta) = item["metadata"].as_object_mut() {
                meta.remove("annotations");
            }
        }
        all.extend(items);
    }
    Ok(all)
}

/// Pods of others: only what they hold and where they are.
fn strip(pod: &mut Value) {
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            let kept = ["name", "resources", "restartPolicy", "ports"].map(|field| (field, container[field].take()));
            *container = json!({});
            for (field, value) in kept.into_iter().filter(|(_, value)| !value.is_null()) {
                container[field] = value;
            }
        }
    }
    if let Some(spec) = pod["spec"].as_object_mut() {
        for field in ["volumes", "imagePullSecrets"] {
            spec.remove(field);
        }
    }
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    // A message may be the end of a log.
    status.remove("message");
    for list in [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ] {
        let containers = status.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.remove("state");
            container.remove("lastState");
        }
    }
}

async fn list(
    session: &Session,
    kind: &ObjectKind,
    namespace: Option<&str>,
    params: &ListParams,
) -> Result<Vec<Value>, String> {
    let mut last = String::new();
    for version in kind.versions {
        let gvk = GroupVersionKind::gvk(kind.group, version, kind.name);
        let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(session.client.clone(), namespace, &resource),
            None => Api::all_with(session.client.clone(), &resource),
        };
        match api.list(params).await {
            Ok(found) => {
                let typed = |item: DynamicObject| {
                    let mut value = serde_json::to_value(item).map_err(|error| error.to_string())?;
                    // Items of a list do not repeat them.
                    value["apiVersion"] = resource.api_version.clone().into();
                    value["kind"] = resource.kind.clone().into();
                    Ok(value)
                };
                return found.items.into_iter().map(typed).collect();
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                "this cluster does not serve them".clone_into(&mut last);
            }
            Err(error) => return Err(Error::from_call(&format!("read {}", kind.plural), error).to_string()),
        }
    }
    Err(last)
}
