mod kinds;
mod saved;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    self, LimitRange, PersistentVolume, PersistentVolumeClaim, Pod, PodStatus, ResourceQuota,
};
use k8s_openapi::api::resource::v1::DeviceClass;
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use perfval_api::PerfValidationStatus;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::saved::Saved;
use super::{ClaimUse, Interned, Node, PodUse, Slice};
use crate::{OtherRun, holds_node};

/// Objects of a cluster that were saved before, in any order.
#[derive(Debug, Default)]
pub struct Dump {
    interned: Interned,
    classes: Vec<DeviceClass>,
    slices: Vec<Slice>,
    taint_rules: Vec<Value>,
    nodes: Vec<Node>,
    pods: Vec<PodUse>,
    quotas: Vec<ResourceQuota>,
    limit_ranges: Vec<LimitRange>,
    volume_claims: Vec<PersistentVolumeClaim>,
    volumes: Vec<PersistentVolume>,
    promises: Vec<ClaimUse>,
    claims: Vec<ClaimUse>,
    /// Objects by kind; a kind whose typed list is empty is there with none.
    found: BTreeMap<String, usize>,
    /// The first pod that uses a claim.
    claim_user: Option<String>,
    runs: Vec<OtherRun>,
}

impl Dump {
    /// Adds an object, or all objects of a list.
    pub fn add(&mut self, mut object: Value) -> Result<(), DumpError> {
        let Some(kind) = object["kind"].as_str().map(str::to_owned) else {
            return Err(DumpError::NotAnObject(object.to_string().chars().take(80).collect()));
        };
        match (kind.strip_suffix("List"), object.get_mut("items")) {
            (Some(of), Some(Value::Array(items))) => {
                let items = std::mem::take(items);
                self.add_list(of, &object["apiVersion"], items)
            }
            _ => self.add_one(&kind, object),
        }
    }

    /// The items of a typed list, as from `kubectl get --raw`, have neither kind nor version of their own.
    fn add_list(&mut self, kind: &str, version: &Value, items: Vec<Value>) -> Result<(), DumpError> {
        if !kind.is_empty() {
            self.found.entry(kind.to_owned()).or_default();
        }
        items.into_iter().try_for_each(|mut item| {
            if item["kind"].is_null() && item.is_object() && !kind.is_empty() {
                item["kind"] = kind.into();
                if version.is_string() {
                    item["apiVersion"] = version.clone();
                }
            }
            self.add(item)
        })
    }

    fn add_one(&mut self, kind: &str, object: Value) -> Result<(), DumpError> {
        *self.found.entry(kind.to_owned()).or_default() += 1;
        match kind {
            "Node" => self
                .nodes
                .push(Node::read(&read::<v1::Node>(kind, object)?, &mut self.interned)),
            "Pod" => self.add_pod(&read(kind, object)?),
            "ResourceSlice" => {
                let slice = read(kind, object)?;
                self.slices.push(Slice::read(&slice, &mut self.interned));
            }
            "ResourceClaim" => {
                let claim = read(kind, object)?;
                self.claims.extend(ClaimUse::read(&claim, &mut self.interned));
            }
            "DeviceClass" => self.classes.push(read(kind, object)?),
            "DeviceTaintRule" => self.taint_rules.push(object),
            "ResourceQuota" => self.quotas.push(read(kind, object)?),
            "LimitRange" => self.limit_ranges.push(read(kind, object)?),
            "PersistentVolumeClaim" => self.volume_claims.push(read(kind, object)?),
            "PersistentVolume" => self.volumes.push(read(kind, object)?),
            "BindRequest" => {
                let request: DynamicObject = read(kind, object)?;
                let promised = ClaimUse::promised(&request, &mut self.interned);
                self.promises.extend(promised.map_err(|why| DumpError::Malformed {
                    kind: kind.to_owned(),
                    name: request.name_any(),
                    why,
                })?);
            }
            "PerfValidation" => self.runs.extend(holder(&object)),
            _ => {}
        }
        Ok(())
    }

    fn add_pod(&mut self, pod: &Pod) {
        let used = PodUse::read(pod, &mut self.interned);
        let asks = pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_ref());
        let is_served = |status: &PodStatus| status.extended_resource_claim_status.is_some();
        let has_claim = asks.is_some_and(|claims| !claims.is_empty()) || pod.status.as_ref().is_some_and(is_served);
        if self.claim_user.is_none() && has_claim {
            self.claim_user = used
                .as_ref()
                .filter(|used| !used.node.is_empty())
                .map(|_| format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()));
        }
        self.pods.extend(used);
    }
}

/// Reason why saved objects cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// Something that is no Kubernetes object.
    #[error("{0:?} is no Kubernetes object: give what `kubectl get -o yaml` printed")]
    NotAnObject(String),
    /// An object that its kind does not allow.
    #[error("{kind} {name} cannot be read: {why}")]
    Malformed {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Error of the parser.
        why: serde_json::Error,
    },
    /// A kind that every cluster has, or that others refer to, is not among the objects.
    #[error("there is no {kind} in it{why}: save it again with `kubectl get {}`", kinds::all())]
    Missing {
        /// The kind.
        kind: &'static str,
        /// Object that refers to the missing one.
        why: String,
    },
}

/// The node of a run that holds one. Another version may have written the object; what cannot be read of it is not over.
fn holder(object: &Value) -> Option<OtherRun> {
    let node = object["status"]["placement"]["node"].as_str()?;
    let status: Result<PerfValidationStatus, _> = serde_json::from_value(object["status"].clone());
    if status.is_ok_and(|status| !holds_node(&status)) {
        return None;
    }
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Some(OtherRun {
        name: format!("{}/{}", text("namespace"), text("name")),
        node: node.to_owned(),
    })
}

fn read<K: DeserializeOwned>(kind: &str, object: Value) -> Result<K, DumpError> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    serde_json::from_value(object).map_err(|why| DumpError::Malformed {
        kind: kind.to_owned(),
        name,
        why,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node() -> Value {
        json!({ "kind": "Node", "metadata": { "name": "n1" } })
    }

    fn pod() -> Value {
        json!({ "kind": "Pod", "metadata": { "name": "p", "namespace": "ns" }, "spec": { "nodeName": "n1", "containers": [] } })
    }

    fn parsed(objects: &[Value]) -> Result<Saved, String> {
        let mut dump = Dump::default();
        for object in objects {
            dump.add(object.clone()).map_err(|error| error.to_string())?;
        }
        dump.finish("gpu.nvidia.com", "perf", Some("weights"))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn items_of_a_typed_list_have_its_kind() {
        let mut bare = pod();
        bare.as_object_mut().unwrap().remove("kind");
        let pods = json!({ "kind": "PodList", "items": [bare] });
        let claims = json!({ "kind": "ResourceClaimList", "items": [] });
        let saved = parsed(&[node(), pods, claims]).unwrap();
        assert_eq!(saved.inventory.pods.present().map(Vec::len), Some(1));
        let missing = |note: &String| note.contains("taken to have none") && note.contains("resourceclaims");
        assert!(!saved.notes.iter().any(missing), "{:?}", saved.notes);
    }

    #[test]
    fn items_of_a_typed_list_have_its_version() {
        let rule = json!({ "metadata": { "name": "r" }, "spec": { "taint": { "key": "k", "effect": "NoSchedule" } } });
        let version = "resource.k8s.io/v1";
        let rules = json!({ "kind": "DeviceTaintRuleList", "apiVersion": version, "items": [rule] });
        let saved = parsed(&[node(), pod(), rules]).unwrap();
        assert_eq!(saved.inventory.taint_rules.present().unwrap()[0]["apiVersion"], version);
    }

    #[test]
    fn the_claim_that_serves_a_pod_must_be_there() {
        let mut served = pod();
        let claim = json!({ "resourceClaimName": "c", "requestMappings": [] });
        served["status"] = json!({ "extendedResourceClaimStatus": claim });
        let error = parsed(&[node(), served]).unwrap_err();
        let says = "there is no ResourceClaim in it, and the pod ns/p uses one";
        assert!(error.starts_with(says), "{error}");
    }

    #[test]
    fn the_volume_of_the_model_cache_is_found_or_missed() {
        let claim = json!({
            "kind": "PersistentVolumeClaim", "metadata": { "name": "weights", "namespace": "perf" }, "spec": { "volumeName": "v" },
        });
        let terms = json!([{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n1"] }] }]);
        let volume = json!({
            "kind": "PersistentVolume", "metadata": { "name": "v" }, "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": terms } } },
        });
        let saved = parsed(&[node(), pod(), claim.clone(), volume]).unwrap();
        let found = saved.inventory.cache_volume.present().map(|volume| &*volume.claim);
        assert_eq!(found, Some("weights"));
        for (objects, says) in [
            (vec![node(), pod()], "PersistentVolumeClaim perf/weights is not in it"),
            (vec![node(), pod(), claim], "PersistentVolume v is not in it"),
        ] {
            let saved = parsed(&objects).unwrap();
            assert!(saved.inventory.cache_volume.is_absent());
            assert!(
                saved.notes.iter().any(|note| note.starts_with(says)),
                "{:?}",
                saved.notes
            );
        }
    }

    #[test]
    fn the_volume_of_a_run_without_a_namespace_is_not_missed() {
        let mut dump = Dump::default();
        for object in [node(), pod()] {
            dump.add(object).unwrap();
        }
        let notes = dump.finish("gpu.nvidia.com", "", Some("weights")).unwrap().notes;
        let has = |text: &str| notes.iter().any(|note| note.contains(text));
        assert!(has("no namespace is given") && !has("weights"), "{notes:?}");
    }

    #[test]
    fn a_saved_run_holds_its_node_until_it_is_over() {
        let run = |phase: &str| {
            let status = json!({
                "phase": phase, "placement": { "node": "n1", "allocation": "DRA", "gpus": 1, "nodeGPUs": 8 },
                "conditions": [{
                    "type": "CleanedUp", "status": "True", "reason": "r", "message": "", "lastTransitionTime": "2026-11-20T10:00:00Z",
                }],
            });
            json!({ "kind": "PerfValidation", "metadata": { "name": "r", "namespace": "ns" }, "status": status })
        };
        let busy = |phase: &str| parsed(&[node(), pod(), run(phase)]).unwrap().busy.len();
        assert_eq!(
            (busy("Benchmarking"), busy("OfANewerVersion"), busy("Completed")),
            (1, 1, 0)
        );
    }
}
