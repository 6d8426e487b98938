use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, ResourceExt as _};
use perfval_api::PerfValidation;
use perfval_api::meta::NAME_LABEL;
use serde_json::{Value, json};

use crate::error::Error;
use crate::session::Session;

/// A kind of objects, at the versions that are tried, the newest first.
pub struct Kind {
    pub group: &'static str,
    pub versions: &'static [&'static str],
    pub name: &'static str,
    pub plural: &'static str,
    /// How an object of a validation is known.
    pub by: By,
}

/// How an object of a validation is known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    Label,
    /// Events name the object that they speak of.
    Subject,
}

const fn kind(
    group: &'static str,
    versions: &'static [&'static str],
    name: &'static str,
    plural: &'static str,
) -> Kind {
    Kind {
        group,
        versions,
        name,
        plural,
        by: By::Label,
    }
}

const DRA: &[&str] = &["v1", "v1beta2", "v1beta1"];

/// What a run creates, and what is said of it. No Secrets.
pub const CHILDREN: [Kind; 8] = [
    Kind {
        by: By::Subject,
        ..kind("", &["v1"], "Event", "events")
    },
    kind("", &["v1"], "Pod", "pods"),
    kind("", &["v1"], "Service", "services"),
    kind("", &["v1"], "PersistentVolumeClaim", "persistentvolumeclaims"),
    kind("batch", &["v1"], "Job", "jobs"),
    kind("resource.k8s.io", DRA, "ResourceClaim", "resourceclaims"),
    kind(
        "resource.k8s.io",
        DRA,
        "ResourceClaimTemplate",
        "resourceclaimtemplates",
    ),
    kind(
        "nvidia.com",
        &["v1beta1", "v1alpha1"],
        "DynamoGraphDeployment",
        "dynamographdeployments",
    ),
];

/// What sizing reads of the whole cluster.
const SIZED: [Kind; 5] = [
    kind("", &["v1"], "Node", "nodes"),
    kind("", &["v1"], "Pod", "pods"),
    kind("resource.k8s.io", DRA, "ResourceSlice", "resourceslices"),
    kind("resource.k8s.io", DRA, "ResourceClaim", "resourceclaims"),
    kind("resource.k8s.io", DRA, "DeviceClass", "deviceclasses"),
];

/// The objects of a kind that belong to a validation.
pub async fn of_validation(session: &Session, object: &PerfValidation, kind: &Kind) -> Result<Vec<Value>, String> {
    let name = object.name_any();
    let params = match kind.by {
        By::Label => ListParams::default().labels(&format!("{NAME_LABEL}={name}")),
        By::Subject => ListParams::default().fields(&format!("involvedObject.name={name}")),
    };
    list(session, kind, Some(&session.namespace), &params).await
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
}

async fn list(
    session: &Session,
    kind: &Kind,
    namespace: Option<&str>,
    params: &ListParams,
) -> Result<Vec<Value>, String> {
    let mut last = String::new();
    for version in kind.versions {
        let resource = ApiResource {
            group: kind.group.to_owned(),
            version: (*version).to_owned(),
            api_version: match kind.group {
                "" => (*version).to_owned(),
                group => format!("{group}/{version}"),
            },
            kind: kind.name.to_owned(),
            plural: kind.plural.to_owned(),
        };
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
            Err(error) => return Err(Error::of_call(&format!("read {}", kind.plural), error).to_string()),
        }
    }
    Err(last)
}
