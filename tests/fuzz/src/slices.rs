//! Kubernetes' protobuf: `ResourceSlice`s, and by the first byte nodes, pods and claims; then sizing with them.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use perfval_cli::size;
use perfval_sizing::inventory::protobuf::{Message, page};
use perfval_sizing::inventory::{self, ClaimUse, Interned, Inventory, PodUse, Slice};
use perfval_sizing::{Naming, Seen, explain};
use serde_json::{from_value, json};

pub fn run(input: &[u8]) -> bool {
    let Some((kind, body)) = input.split_first() else {
        return false;
    };
    let mut cluster = small();
    let interned = &mut Interned::default();
    let read = match kind % 4 {
        0 => add(body, &mut cluster.slices, |slice: ResourceSlice| {
            Some(Slice::read(&slice, interned))
        }),
        1 => add(body, &mut cluster.nodes, |node: Node| {
            Some(inventory::Node::read(&node, interned))
        }),
        2 => add(body, &mut cluster.pods, |pod: Pod| PodUse::read(&pod, interned)),
        _ => add(body, &mut cluster.claims, |claim: ResourceClaim| {
            ClaimUse::read(&claim, interned)
        }),
    };
    let spec = size::defaults().expect("the CRD's defaults").spec;
    let (reports, _) = explain(&cluster, &spec, &[]);
    for report in reports {
        assert!((0..=report.total).contains(&report.free), "{report:?}");
        assert!((0..=report.free).contains(&report.usable), "{report:?}");
    }
    read
}

fn add<K: Message, R>(body: &[u8], list: &mut Seen<Vec<R>>, mut reduce: impl FnMut(K) -> Option<R>) -> bool {
    let mut found = Vec::new();
    let read = page(body, |object: K| found.extend(reduce(object))).is_ok();
    let any = !found.is_empty();
    if let Seen::Present(list) = list {
        list.extend(found);
    }
    read && any
}

/// A node with two GPUs, one of which is held.
fn small() -> Inventory {
    let interned = &mut Interned::default();
    let node: Node = from_value(
        json!({"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}]}}),
    )
    .expect("a node");
    let device = |name: &str| {
        json!({"name": name, "attributes": {"type": {"string": "gpu"}, "memory": {"string": "80Gi"}},
        "capacity": {"memory": {"value": "80Gi"}}})
    };
    let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": [device("gpu-0"), device("gpu-1")]}})).expect("a slice");
    let class = from_value(
        json!({"metadata": {"name": "gpu.nvidia.com"}, "spec": {"selectors": [{"cel": {"expression":
        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]}}),
    )
    .expect("a class");
    let claim: ResourceClaim = from_value(json!({"metadata": {"name": "c", "namespace": "team"}, "spec": {"devices": {}},
        "status": {"allocation": {"devices": {"results": [{"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0", "request": "r"}]}}}})).expect("a claim");
    Inventory {
        device_class: Seen::Present(class),
        slices: Seen::Present(vec![Slice::read(&slice, interned)]),
        taint_rules: Seen::Present(Vec::new()),
        nodes: Seen::Present(vec![inventory::Node::read(&node, interned)]),
        pods: Seen::Present(Vec::new()),
        quotas: Seen::Present(Vec::new()),
        limit_ranges: Seen::Present(Vec::new()),
        cache_volume: Seen::Absent,
        promises: Seen::Absent,
        claims: Seen::Present(ClaimUse::read(&claim, interned).into_iter().collect()),
        naming: Naming::All,
    }
}
