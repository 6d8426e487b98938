//! Address of the GPU metrics of the run's node.

use perfval_run::observed::Need;
use perfval_sizing::Seen;
use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use crate::world::World;

/// A pod of another namespace.
fn exporter(name: &str, node: &str, label: (&str, &str), change: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "gpu-operator", "name": name, "labels": {label.0: label.1}},
        "spec": {"nodeName": node, "containers": [{"name": "exporter", "ports": [{"name": "metrics", "containerPort": 9400}]}]},
        "status": {"phase": "Running", "podIP": "10.244.0.7"},
    });
    for (pointer, value) in change.as_object().into_iter().flatten() {
        *pod.pointer_mut(pointer).expect("a field of the pod") = value.clone();
    }
    pod
}

const OPERATOR: (&str, &str) = ("app", "nvidia-dcgm-exporter");
const CHART: (&str, &str) = ("app.kubernetes.io/name", "dcgm-exporter");

fn page(url: &str) -> Seen<String> {
    Seen::Present(url.to_owned())
}

async fn seen(pods: &[Value]) -> Seen<String> {
    let world = World::new();
    for pod in pods {
        world.server.put(pod.clone());
    }
    world.observe(Need::GpuExporter).await.gpu_exporter
}

#[tokio::test]
async fn the_exporter_of_the_node_is_found_by_its_label() {
    let none = json!({});
    assert_eq!(seen(&[]).await, Seen::Absent);
    assert_eq!(
        seen(&[exporter("a", "node-1", OPERATOR, &none)]).await,
        page("http://10.244.0.7:9400/metrics")
    );
    assert_eq!(
        seen(&[exporter("a", "node-1", CHART, &json!({"/status/podIP": "fd00::7"}))]).await,
        page("http://[fd00::7]:9400/metrics")
    );
    let port = json!({"/spec/containers/0/ports/0/containerPort": 9500});
    assert_eq!(
        seen(&[exporter("a", "node-1", OPERATOR, &port)]).await,
        page("http://10.244.0.7:9500/metrics")
    );
    // A pod of another node, a pod that does not run, and a different pod.
    let pending = json!({"/status/phase": "Pending"});
    let others = [
        exporter("a", "node-2", OPERATOR, &none),
        exporter("b", "node-1", OPERATOR, &pending),
        exporter("c", "node-1", ("app", "dcgm"), &none),
    ];
    assert_eq!(seen(&others).await, Seen::Absent);
}

/// The page would accuse GPUs of other teams.
#[tokio::test]
async fn a_pod_of_a_tenant_is_not_the_exporter() {
    let of_tenant = json!({"/metadata/namespace": "team-a", "/status/podIP": "10.244.0.66"});
    assert_eq!(
        seen(&[exporter("older", "node-1", OPERATOR, &of_tenant)]).await,
        Seen::Absent
    );
    let both = [
        exporter("older", "node-1", OPERATOR, &of_tenant),
        exporter("a", "node-1", CHART, &json!({})),
    ];
    assert_eq!(seen(&both).await, page("http://10.244.0.7:9400/metrics"));
}

#[tokio::test]
async fn the_exporter_is_looked_for_in_the_namespaces_that_the_operator_was_given() {
    let mut world = World::new();
    world.settings.dcgm_exporter_namespaces = vec!["monitoring".to_owned()];
    world.server.put(exporter("a", "node-1", OPERATOR, &json!({})));
    assert_eq!(world.observe(Need::GpuExporter).await.gpu_exporter, Seen::Absent);
    let here = json!({"/metadata/namespace": "monitoring"});
    world.server.put(exporter("a", "node-1", OPERATOR, &here));
    let found = world.observe(Need::GpuExporter).await.gpu_exporter;
    assert_eq!(found, page("http://10.244.0.7:9400/metrics"));
}

#[tokio::test]
async fn the_exporter_of_a_daemon_set_goes_before_an_older_pod() {
    let by_hand = json!({"/status/podIP": "10.244.0.8"});
    let mut of_daemon_set = exporter("b", "node-1", OPERATOR, &json!({}));
    of_daemon_set["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
    assert_eq!(
        seen(&[exporter("a", "node-1", OPERATOR, &by_hand), of_daemon_set]).await,
        page("http://10.244.0.7:9400/metrics")
    );
}

#[tokio::test]
async fn an_exporter_that_may_not_be_looked_for_is_unknown() {
    let world = World::new();
    world.server.fail(Fault::refuse("list", "pods", 403));
    let seen = world.observe(Need::GpuExporter).await.gpu_exporter;
    assert!(
        seen.unknown().is_some_and(|why| why.contains("nvidia-dcgm-exporter")),
        "{seen:?}"
    );
}
