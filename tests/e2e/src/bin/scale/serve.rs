//! A cluster that exists only as lists, written before they are asked for.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use serde_json::{Value, json};

use super::Outcome;
use super::measure::cpu_seconds;

/// Per node.
pub const GPUS: usize = 8;
pub const CLAIMS: usize = 8;
pub const PODS: usize = 20;

struct Served {
    lists: HashMap<&'static str, List>,
    bytes: AtomicUsize,
}

/// The objects of a list, written before any request: a page is a part of it. An API server takes time, too, but how
/// much of the look is ours would not be seen next to that.
pub struct List {
    kind: &'static str,
    written: Vec<u8>,
    /// Where each object ends.
    ends: Vec<usize>,
}

/// An object as an item of a list.
pub type Written = Arc<[u8]>;

/// Objects that stand behind a list, at one moment.
#[derive(Clone, Default)]
pub struct Snapshot {
    /// Its number.
    pub number: usize,
    /// Version from which a watch goes on.
    pub version: u64,
    /// The objects.
    pub more: Arc<[Written]>,
}

/// Writes an object as an item of a list.
pub fn write(object: &Value) -> serde_json::Result<Vec<u8>> {
    let mut written = serde_json::to_vec(object)?;
    written.push(b',');
    Ok(written)
}

/// Most objects of a list: a token to go on with is a snapshot and a place in it.
const SNAPSHOT: usize = 100_000_000;

/// Snapshot and place of a request for a further page.
pub fn snapshot_of(uri: &Uri) -> Option<(usize, usize)> {
    query(uri, "continue").map(|token| (token / SNAPSHOT, token % SNAPSHOT))
}

fn query(uri: &Uri, wanted: &str) -> Option<usize> {
    let pairs = uri.query().unwrap_or_default().split('&');
    let mut values = pairs.filter_map(|pair| pair.strip_prefix(wanted)?.strip_prefix('='));
    values.find_map(|value| value.parse::<usize>().ok())
}

impl List {
    pub fn of(kind: &'static str, count: usize, item: impl Fn(usize) -> Value) -> Outcome<Self> {
        let (mut written, mut ends) = (Vec::new(), Vec::with_capacity(count));
        for index in 0..count {
            written.extend(write(&item(index))?);
            ends.push(written.len());
        }
        Ok(Self { kind, written, ends })
    }

    /// The objects of a part of the list.
    fn items(&self, from: usize, to: usize) -> &[u8] {
        let end = |index: usize| index.checked_sub(1).map_or(0, |last| self.ends[last]);
        let count = self.ends.len();
        &self.written[end(from.min(count))..end(to.min(count))]
    }

    /// A page of this list and of the snapshot, whose objects stand behind it. The token of the next page repeats its number.
    pub fn page(&self, snapshot: &Snapshot, uri: &Uri) -> Vec<u8> {
        let Snapshot { number, version, more } = snapshot;
        let own = self.ends.len();
        let count = own + more.len();
        let from = snapshot_of(uri).map_or(0, |(_, from)| from.min(count));
        let to = query(uri, "limit").map_or(count, |limit| count.min(from + limit));
        let next = if to < count {
            (number * SNAPSHOT + to).to_string()
        } else {
            String::new()
        };
        let mut items = self.items(from, to).to_vec();
        for written in &more[from.saturating_sub(own)..to.saturating_sub(own)] {
            items.extend_from_slice(written);
        }
        let kind = format!("{}List", self.kind);
        let head = json!({ "kind": kind, "apiVersion": "v1", "metadata": { "resourceVersion": version.to_string(), "continue": next } });
        let mut page = head.to_string().into_bytes();
        page.pop();
        page.extend_from_slice(b",\"items\":[");
        page.extend_from_slice(items.strip_suffix(b",").unwrap_or(&items));
        page.extend_from_slice(b"]}");
        page
    }
}

/// Serves until the process that began it is gone.
#[tokio::main(flavor = "current_thread")]
pub async fn serve(nodes: usize) -> Outcome<()> {
    std::thread::spawn(|| {
        // Ends with the other side, and not before.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let list = |kind, count, item: fn(usize, usize) -> Value| List::of(kind, count, |index| item(index, nodes));
    let served = Served {
        lists: HashMap::from([
            (
                "/apis/resource.k8s.io/v1/resourceslices",
                list("ResourceSlice", nodes, slice)?,
            ),
            (
                "/apis/resource.k8s.io/v1/resourceclaims",
                list("ResourceClaim", nodes * CLAIMS, claim)?,
            ),
            ("/api/v1/nodes", list("Node", nodes, node)?),
            ("/api/v1/pods", list("Pod", nodes * PODS, pod)?),
        ]),
        bytes: AtomicUsize::new(0),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    std::io::stdout().flush()?;
    let router = Router::new().fallback(answer).with_state(Arc::new(served));
    Ok(axum::serve(listener, router).await?)
}

async fn answer(State(served): State<Arc<Served>>, uri: Uri) -> Response {
    if uri.query().is_some_and(|query| query.contains("watch=true")) {
        // Nothing changes.
        return Response::new(Body::from_stream(stream::pending::<Result<Vec<u8>, Infallible>>()));
    }
    let body = match uri.path() {
        "/served" => json!(served.bytes.load(Ordering::Relaxed)).to_string().into_bytes(),
        "/served/cpu" => json!(cpu_seconds().unwrap_or(f64::NAN)).to_string().into_bytes(),
        "/apis/resource.k8s.io/v1/deviceclasses/gpu.nvidia.com" => class().to_string().into_bytes(),
        "/apis/resource.k8s.io/v1/devicetaintrules" => json!({ "metadata": {}, "items": [] }).to_string().into_bytes(),
        path => match served.lists.get(path) {
            Some(list) => list.page(&Snapshot::default(), &uri),
            None => return (StatusCode::NOT_FOUND, "404 page not found\n").into_response(),
        },
    };
    served.bytes.fetch_add(body.len(), Ordering::Relaxed);
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

pub fn class() -> Value {
    let selector = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'";
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": "gpu.nvidia.com" },
        "spec": { "extendedResourceName": "nvidia.com/gpu", "selectors": [{ "cel": { "expression": selector } }] },
    })
}

/// What NVIDIA's driver publishes of an H100.
pub fn slice(index: usize, _: usize) -> Value {
    let device = |gpu: usize| {
        json!({
            "name": format!("gpu-{gpu}"),
            "attributes": {
                "type": { "string": "gpu" },
                "uuid": { "string": format!("GPU-{index:08x}-0000-0000-0000-{gpu:012x}") },
                "productName": { "string": "NVIDIA H100 80GB HBM3" },
                "brand": { "string": "Nvidia" },
                "architecture": { "string": "Hopper" },
                "cudaComputeCapability": { "version": "9.0.0" },
                "driverVersion": { "version": "580.105.8" },
                "cudaDriverVersion": { "version": "13.0.0" },
                "resource.kubernetes.io/pciBusID": { "string": format!("0000:{gpu:02x}:00.0") },
                "resource.kubernetes.io/pcieRoot": { "string": format!("pci0000:{gpu:02x}") },
            },
            "capacity": { "memory": { "value": "81559Mi" } },
        })
    };
    let devices: Vec<Value> = (0..GPUS).map(device).collect();
    let mut metadata = metadata(&format!("00000-gpu.nvidia.com-node-{index:05}-x2z4q"), index);
    metadata["ownerReferences"] =
        json!([{ "apiVersion": "v1", "kind": "Node", "name": name(index), "uid": uid(index), "controller": true }]);
    json!({
        "metadata": metadata,
        "spec": {
            "driver": "gpu.nvidia.com", "nodeName": name(index), "devices": devices,
            "pool": { "name": name(index), "generation": 1, "resourceSliceCount": 1 },
        },
    })
}

/// Every GPU is held, but for those of the last node: what its claims hold is gone.
pub fn claim(index: usize, nodes: usize) -> Value {
    let (node, gpu) = (index / CLAIMS, index % CLAIMS);
    let pool = if node + 1 == nodes {
        "gone".to_owned()
    } else {
        name(node)
    };
    let mut metadata = metadata(&format!("worker-{node}-{gpu}-gpu-7x9kq"), index);
    metadata["namespace"] = json!(format!("team-{}", node % 40));
    json!({
        "metadata": metadata,
        "spec": { "devices": { "requests": [{ "name": "gpu", "exactly": { "deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 1 } }] } },
        "status": {
            "allocation": {
                "devices": { "results": [{ "request": "gpu", "driver": "gpu.nvidia.com", "pool": pool, "device": format!("gpu-{gpu}") }] },
                "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [name(node)] }] }] },
            },
            "reservedFor": [{ "resource": "pods", "name": format!("worker-{node}-{gpu}"), "uid": uid(index) }],
        },
    })
}

/// One claim on all GPUs of a node.
pub fn held(node: usize) -> Value {
    let mut claim = claim(node * CLAIMS, usize::MAX);
    let result = claim["status"]["allocation"]["devices"]["results"][0].take();
    let results = (0..GPUS).map(|gpu| {
        let mut result = result.clone();
        result["device"] = json!(format!("gpu-{gpu}"));
        result
    });
    claim["spec"]["devices"]["requests"][0]["exactly"]["count"] = json!(GPUS);
    claim["status"] = json!({ "allocation": { "devices": { "results": results.collect::<Vec<_>>() } } });
    claim
}

/// A GPU node with the labels of feature discovery and the images of some weeks.
pub fn node(index: usize, _: usize) -> Value {
    let labels = (0..60).map(|label| {
        (
            format!("feature.node.kubernetes.io/cpu-cpuid.FEATURE{label}"),
            json!("true"),
        )
    });
    let mut labels: serde_json::Map<String, Value> = labels.collect();
    labels.insert("kubernetes.io/hostname".to_owned(), json!(name(index)));
    labels.insert("kubernetes.io/arch".to_owned(), json!("amd64"));
    labels.insert("nvidia.com/gpu.present".to_owned(), json!("true"));
    let image = |number: usize| {
        let digest = format!("registry.example.com/team/image-{number}@sha256:{number:064x}");
        json!({ "names": [digest, format!("registry.example.com/team/image-{number}:v1.{number}.0")], "sizeBytes": 1_000_000 })
    };
    let images: Vec<Value> = (0..50).map(image).collect();
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": "KubeletHasSufficient", "message": "kubelet has sufficient of it",
            "lastHeartbeatTime": "2026-11-20T10:00:00Z", "lastTransitionTime": "2026-11-20T10:00:00Z",
        })
    };
    let conditions = ["MemoryPressure", "DiskPressure", "PIDPressure"].map(|kind| condition(kind, "False"));
    let mut conditions = conditions.to_vec();
    conditions.push(condition("Ready", "True"));
    let amounts = json!({
        "cpu": "192", "memory": "2113496124Ki", "pods": "110", "ephemeral-storage": "7441432Mi", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    let mut metadata = metadata(&name(index), index);
    metadata["labels"] = Value::Object(labels);
    json!({
        "metadata": metadata,
        "spec": { "podCIDR": "10.0.0.0/24", "providerID": format!("cloud:///zone/{index}") },
        "status": {
            "allocatable": amounts, "capacity": amounts, "conditions": conditions, "images": images,
            "addresses": [{ "type": "InternalIP", "address": "10.1.2.3" }, { "type": "Hostname", "address": name(index) }],
        },
    })
}

pub fn pod(index: usize, _: usize) -> Value {
    let (node, number) = (index / PODS, index % PODS);
    let environment: Vec<Value> = (0..20)
        .map(|variable| json!({ "name": format!("VARIABLE_{variable}"), "value": format!("value-{variable}-of-some-length") }))
        .collect();
    let mounts: Vec<Value> = (0..5)
        .map(|mount| json!({ "name": format!("volume-{mount}"), "mountPath": format!("/var/lib/mount-{mount}"), "readOnly": true }))
        .collect();
    let volumes: Vec<Value> = (0..5)
        .map(|volume| json!({ "name": format!("volume-{volume}"), "emptyDir": {} }))
        .collect();
    let container = json!({
        "name": "main", "image": "registry.example.com/team/image:v1.2.3", "env": environment, "volumeMounts": mounts,
        "resources": { "requests": { "cpu": "500m", "memory": "1Gi" }, "limits": { "memory": "2Gi" } },
    });
    let mut metadata = metadata(&format!("worker-{node}-{number}"), index);
    metadata["namespace"] = json!(format!("team-{}", node % 40));
    metadata["labels"] =
        json!({ "app.kubernetes.io/name": "worker", "app.kubernetes.io/instance": format!("worker-{node}") });
    json!({
        "metadata": metadata,
        "spec": { "nodeName": name(node), "containers": [container], "volumes": volumes, "serviceAccountName": "default", "schedulerName": "default-scheduler" },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1", "startTime": "2026-11-20T10:00:00Z",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-11-20T10:00:00Z" }],
            "containerStatuses": [{
                "name": "main", "image": "registry.example.com/team/image:v1.2.3", "imageID": "sha256:0", "ready": true, "restartCount": 0,
                "state": { "running": { "startedAt": "2026-11-20T10:00:00Z" } },
                "resources": { "requests": { "cpu": "500m", "memory": "1Gi" } }, "allocatedResources": { "cpu": "500m", "memory": "1Gi" },
            }],
        },
    })
}

fn metadata(name: &str, index: usize) -> Value {
    let fields = (0..30)
        .map(|field| (format!("f:field-{field}"), json!({})))
        .collect::<serde_json::Map<_, _>>();
    json!({
        "name": name, "uid": uid(index), "resourceVersion": index.to_string(), "creationTimestamp": "2026-11-20T10:00:00Z",
        "managedFields": [{ "manager": "controller", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": fields } }],
    })
}

pub fn name(index: usize) -> String {
    format!("node-{index:05}")
}

fn uid(index: usize) -> String {
    format!("00000000-0000-0000-0000-{index:012x}")
}
