//! Objects come out of protobuf as they come out of JSON. The fixtures are Kubernetes' own: every field of a kind is set.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use perfval_sizing::inventory::protobuf::{self, ListMeta, Malformed, Message};
use perfval_sizing::inventory::{self, ClaimUse, Interned, PodUse, Slice};
use perfval_testkit::inventory::{ClaimBuilder, Cluster};
use perfval_testkit::protobuf::{body, envelope, item, list};
use proptest::prelude::{any, prop_assert_eq, proptest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_slice, from_value, json, to_value};

/// Reads an object of Kubernetes in both forms. Checks the decoded fields of the protobuf form, and returns both
/// objects.
#[track_caller]
fn fixture<K: Message + DeserializeOwned + Serialize>(json: &[u8], bytes: &[u8], decoded: &[&str]) -> [K; 2] {
    let whole: K = from_slice(json).expect("Kubernetes' own");
    let part: K = protobuf::object(bytes).expect("Kubernetes' own");
    let tree = |object: &K| to_value(object).expect("it came from JSON");
    let (whole_tree, part_tree) = (tree(&whole), tree(&part));
    let mut leaves = BTreeSet::new();
    walk(&part_tree, &whole_tree, String::new(), &mut leaves);
    leaves.retain(|path| path != "/apiVersion" && path != "/kind");
    let expected: BTreeSet<String> = decoded.iter().map(|path| (*path).to_owned()).collect();
    assert_eq!(leaves, expected, "what is decoded");
    [whole, part]
}

/// Collects the paths of a tree's leaves; each must be in another tree too.
#[track_caller]
fn walk(part: &Value, whole: &Value, path: String, leaves: &mut BTreeSet<String>) {
    match part {
        Value::Object(fields) => {
            for (name, value) in fields {
                walk(value, &whole[name], format!("{path}/{name}"), leaves);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                walk(value, &whole[index], path.clone(), leaves);
            }
        }
        // Required, and not read: the fixtures set every field to something else.
        leaf if [json!(""), json!(false), json!(0)].contains(leaf) => {}
        leaf => {
            assert_eq!(leaf, whole, "{path}");
            leaves.insert(path);
        }
    }
}

macro_rules! of_kubernetes {
    ($kind:literal, $decoded:expr) => {
        fixture(
            include_bytes!(concat!("fixtures/kubernetes-1.36/", $kind, ".json")),
            include_bytes!(concat!("fixtures/kubernetes-1.36/", $kind, ".pb")),
            $decoded,
        )
    };
}

#[test]
fn a_node_is_decoded() {
    let both: [Node; 2] = of_kubernetes!(
        "Node",
        &[
            "/metadata/deletionTimestamp",
            "/metadata/labels/labelsKey",
            "/metadata/name",
            "/metadata/namespace",
            "/spec/taints/effect",
            "/spec/taints/key",
            "/spec/taints/timeAdded",
            "/spec/taints/value",
            "/spec/unschedulable",
            "/status/allocatable/allocatableKey",
            "/status/capacity/capacityKey",
            "/status/conditions/status",
            "/status/conditions/type"
        ]
    );
    let [json, protobuf] = both.map(|node| inventory::Node::read(&node, &mut Interned::default()));
    assert_eq!(json, protobuf);
}

#[test]
fn a_pod_is_decoded() {
    let both: [Pod; 2] = of_kubernetes!(
        "Pod",
        &[
            "/metadata/deletionTimestamp",
            "/metadata/labels/labelsKey",
            "/metadata/name",
            "/metadata/namespace",
            "/spec/containers/name",
            "/spec/containers/resources/limits/limitsKey",
            "/spec/containers/resources/requests/requestsKey",
            "/spec/containers/restartPolicy",
            "/spec/initContainers/name",
            "/spec/initContainers/resources/limits/limitsKey",
            "/spec/initContainers/resources/requests/requestsKey",
            "/spec/initContainers/restartPolicy",
            "/spec/nodeName",
            "/spec/overhead/overheadKey",
            "/spec/resources/limits/limitsKey",
            "/spec/resources/requests/requestsKey",
            "/status/allocatedResources/allocatedResourcesKey",
            "/status/conditions/reason",
            "/status/conditions/type",
            "/status/containerStatuses/allocatedResources/allocatedResourcesKey",
            "/status/containerStatuses/allocatedResourcesStatus/name",
            "/status/containerStatuses/allocatedResourcesStatus/resources/resourceID",
            "/status/containerStatuses/name",
            "/status/containerStatuses/resources/limits/limitsKey",
            "/status/containerStatuses/resources/requests/requestsKey",
            "/status/extendedResourceClaimStatus/requestMappings/containerName",
            "/status/extendedResourceClaimStatus/requestMappings/resourceName",
            "/status/initContainerStatuses/allocatedResources/allocatedResourcesKey",
            "/status/initContainerStatuses/allocatedResourcesStatus/name",
            "/status/initContainerStatuses/allocatedResourcesStatus/resources/resourceID",
            "/status/initContainerStatuses/name",
            "/status/initContainerStatuses/resources/limits/limitsKey",
            "/status/initContainerStatuses/resources/requests/requestsKey",
            "/status/nominatedNodeName",
            "/status/phase",
            "/status/resources/limits/limitsKey",
            "/status/resources/requests/requestsKey"
        ]
    );
    let [json, protobuf] = both.map(|pod| PodUse::read(&pod, &mut Interned::default()).expect("it is bound"));
    assert_eq!(json, protobuf);
}

#[test]
fn a_claim_is_decoded() {
    let both: [ResourceClaim; 2] = of_kubernetes!(
        "ResourceClaim",
        &[
            "/metadata/deletionTimestamp",
            "/metadata/labels/labelsKey",
            "/metadata/name",
            "/metadata/namespace",
            "/status/allocation/devices/results/adminAccess",
            "/status/allocation/devices/results/device",
            "/status/allocation/devices/results/driver",
            "/status/allocation/devices/results/pool",
            "/status/allocation/devices/results/shareID"
        ]
    );
    for mut claim in both {
        let result = &mut claim
            .status
            .as_mut()
            .unwrap()
            .allocation
            .as_mut()
            .unwrap()
            .devices
            .as_mut()
            .unwrap()
            .results;
        result.as_mut().unwrap()[0].admin_access = None;
        let held = ClaimUse::read(&claim, &mut Interned::default()).expect("it is allocated");
        assert!(held.devices[0].shared);
    }
}

#[test]
fn a_slice_is_decoded() {
    let both: [ResourceSlice; 2] = of_kubernetes!(
        "ResourceSlice",
        &[
            "/metadata/deletionTimestamp",
            "/metadata/labels/labelsKey",
            "/metadata/name",
            "/metadata/namespace",
            "/spec/allNodes",
            "/spec/devices/allNodes",
            "/spec/devices/allowMultipleAllocations",
            "/spec/devices/attributes/attributesKey/bool",
            "/spec/devices/attributes/attributesKey/int",
            "/spec/devices/attributes/attributesKey/string",
            "/spec/devices/attributes/attributesKey/version",
            "/spec/devices/bindingConditions",
            "/spec/devices/capacity/capacityKey/value",
            "/spec/devices/consumesCounters/counterSet",
            "/spec/devices/consumesCounters/counters/countersKey/value",
            "/spec/devices/name",
            "/spec/devices/nodeName",
            "/spec/devices/nodeSelector/nodeSelectorTerms/matchExpressions/key",
            "/spec/devices/nodeSelector/nodeSelectorTerms/matchExpressions/operator",
            "/spec/devices/nodeSelector/nodeSelectorTerms/matchExpressions/values",
            "/spec/devices/nodeSelector/nodeSelectorTerms/matchFields/key",
            "/spec/devices/nodeSelector/nodeSelectorTerms/matchFields/operator",
            "/spec/devices/nodeSelector/nodeSelectorTerms/matchFields/values",
            "/spec/devices/taints/effect",
            "/spec/devices/taints/key",
            "/spec/devices/taints/value",
            "/spec/driver",
            "/spec/nodeName",
            "/spec/nodeSelector/nodeSelectorTerms/matchExpressions/key",
            "/spec/nodeSelector/nodeSelectorTerms/matchExpressions/operator",
            "/spec/nodeSelector/nodeSelectorTerms/matchExpressions/values",
            "/spec/nodeSelector/nodeSelectorTerms/matchFields/key",
            "/spec/nodeSelector/nodeSelectorTerms/matchFields/operator",
            "/spec/nodeSelector/nodeSelectorTerms/matchFields/values",
            "/spec/perDeviceNodeSelection",
            "/spec/pool/generation",
            "/spec/pool/name",
            "/spec/pool/resourceSliceCount",
            "/spec/sharedCounters/counters/countersKey/value",
            "/spec/sharedCounters/name"
        ]
    );
    let [json, protobuf] = both.map(|slice| Slice::read(&slice, &mut Interned::default()));
    assert_eq!(json, protobuf);
}

/// Reads a page in both forms.
fn pages<K: Message + DeserializeOwned, T: Debug + PartialEq>(
    kind: &str,
    objects: &[Value],
    read: impl Fn(&K) -> T,
) -> [Vec<T>; 2] {
    let json = objects
        .iter()
        .map(|object| read(&from_value(object.clone()).expect("of its kind")));
    let list = json!({ "kind": format!("{kind}List"), "apiVersion": "v1", "metadata": {}, "items": objects });
    let mut protobuf = Vec::new();
    let next = protobuf::page(&body(&list).expect("a known kind"), |object: K| {
        protobuf.push(read(&object));
    });
    assert_eq!(next, Ok(ListMeta::default()));
    [json.collect(), protobuf]
}

fn interned() -> Interned {
    Interned::default()
}

/// Objects of a kind in a cluster of builders.
fn of_kind(cluster: &Cluster, kind: &str) -> Vec<Value> {
    cluster
        .objects()
        .into_iter()
        .filter(|object| object["kind"] == kind)
        .collect()
}

#[test]
fn both_forms_give_the_same_inventory() {
    let pods = pods();
    let [json, protobuf] = pages("Pod", &pods, |pod: &Pod| PodUse::read(pod, &mut interned()));
    assert_eq!(json, protobuf);
    assert_eq!(
        json.iter().flatten().count(),
        pods.len() - 1,
        "all but the finished one"
    );
    let cluster = Cluster::of_gpus(3).claim(ClaimBuilder::named("held").holds("n1", "gpu-1"));
    let [json, protobuf] = pages(
        "ResourceClaim",
        &of_kind(&cluster, "ResourceClaim"),
        |claim: &ResourceClaim| ClaimUse::read(claim, &mut interned()),
    );
    assert!(json == protobuf && json.iter().flatten().count() == 1);
    let [json, protobuf] = pages(
        "ResourceSlice",
        &of_kind(&cluster, "ResourceSlice"),
        |slice: &ResourceSlice| Slice::read(slice, &mut interned()),
    );
    assert!(json == protobuf && json[0].devices.len() == 3);
    let [json, protobuf] = pages("Node", &of_kind(&cluster, "Node"), |node: &Node| {
        inventory::Node::read(node, &mut interned())
    });
    assert!(json == protobuf && json.len() == 1);
}

/// Pods that each count in another way.
fn pods() -> Vec<Value> {
    let cpu =
        |amount: &str| json!({ "requests": { "cpu": amount, "memory": "1Gi" }, "limits": { "nvidia.com/gpu": "1" } });
    let container = |name: &str, amount: &str| json!({ "name": name, "resources": cpu(amount) });
    let mut sidecar = container("s", "2");
    sidecar["restartPolicy"] = json!("Always");
    let pod = |spec: Value, status: Value| json!({ "metadata": { "name": "p", "namespace": "ns" }, "spec": spec, "status": status });
    let bound = |containers: Value| json!({ "nodeName": "n1", "containers": containers });
    let one = || bound(json!([container("a", "500m")]));
    let mut all = one();
    all["initContainers"] = json!([sidecar, container("i", "4")]);
    all["overhead"] = json!({ "cpu": "250m" });
    let mut whole = one();
    whole["resources"] = json!({ "requests": { "cpu": "8" } });
    let resized = json!([{
        "name": "a", "resources": cpu("3"), "allocatedResources": { "cpu": "5" },
        "allocatedResourcesStatus": [{ "name": "nvidia.com/gpu", "resources": [{ "resourceID": "GPU-1", "health": "Healthy" }] }],
    }]);
    let infeasible = json!([{ "type": "PodResizePending", "status": "True", "reason": "Infeasible" }]);
    let mapping = json!([{ "containerName": "a", "resourceName": "nvidia.com/gpu", "requestName": "r" }]);
    vec![
        pod(one(), json!({ "phase": "Running" })),
        pod(one(), json!({ "phase": "Succeeded" })),
        pod(all, json!({})),
        pod(whole.clone(), json!({})),
        pod(
            whole,
            json!({ "resources": cpu("10"), "allocatedResources": { "cpu": "12" } }),
        ),
        pod(
            json!({ "nodeName": "", "containers": [] }),
            json!({ "nominatedNodeName": "n2" }),
        ),
        pod(one(), json!({ "containerStatuses": resized })),
        pod(one(), json!({ "containerStatuses": resized, "conditions": infeasible })),
        pod(
            one(),
            json!({ "extendedResourceClaimStatus": { "requestMappings": mapping, "resourceClaimName": "c" } }),
        ),
    ]
}

#[test]
fn a_page_names_the_next_one_and_a_refusal_its_reason() {
    let page = envelope("v1", "PodList", &list("7", "more", &[]));
    let metadata = ListMeta {
        version: Some("7".to_owned()),
        next: Some("more".to_owned()),
    };
    assert_eq!(protobuf::page(&page, |_: Pod| ()), Ok(metadata));
    let refusal = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "no", "reason": "Expired",
        "code": 410, "details": { "name": "p" },
    });
    let status = protobuf::status(&body(&refusal).unwrap()).unwrap();
    assert_eq!((status.code, &*status.reason, &*status.message), (410, "Expired", "no"));
    assert_eq!(status.details.unwrap().name, "p");
}

proptest! {
    /// A page that breaks off is an error and never a shorter list, and no bytes make it panic.
    #[test]
    fn a_truncated_body_is_malformed(cut in 1_usize..200, noise in proptest::collection::vec(any::<u8>(), 0..64), at in 0_usize..600) {
        let item = item("Pod", &pods()[2]).unwrap();
        let whole = envelope("v1", "PodList", &list("7", "", &item));
        let short = &whole[..whole.len().saturating_sub(cut + 4)];
        prop_assert_eq!(protobuf::page(short, |_: Pod| ()), Err(Malformed));
        let mut noisy = whole;
        for (place, byte) in noisy.iter_mut().skip(at).zip(noise) {
            *place = byte;
        }
        let _ = protobuf::page(&noisy, |_: Pod| ());
    }
}
