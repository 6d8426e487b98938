use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::core::ResourceExt as _;
use perfval_run::Run;

use crate::Cluster;
use crate::call::{Read, Unread, read};

/// Labels of the exporter's pods: of NVIDIA's GPU Operator, and of the exporter's own chart.
const LABELS: [(&str, &str); 2] = [
    ("app", "nvidia-dcgm-exporter"),
    ("app.kubernetes.io/name", "dcgm-exporter"),
];
/// Its usual port, which goes before a named one.
const PORT: i32 = 9400;

impl Cluster {
    /// URL of the DCGM exporter on the run's node, in a namespace where only administrators create pods.
    pub(super) async fn gpu_exporter(&self, run: &Run<'_>) -> Read<String> {
        let node = run.placement().map(|plan| plan.node.as_str()).ok_or(Unread::Absent)?;
        for namespace in &run.settings.dcgm_exporter_namespaces {
            let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
            // One list for both labels: such a namespace has few pods on a node.
            let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
            let call = format!("list Pods on {node} in {namespace} (for app=nvidia-dcgm-exporter)");
            let pods = read(&call, self.list(&api, params).await)?;
            for (key, value) in LABELS {
                let has_label = |pod: &&Pod| pod.labels().get(key).is_some_and(|found| found == value);
                let mut exporters: Vec<&Pod> = pods.iter().filter(has_label).collect();
                // Should there be several: the one of a DaemonSet, then the oldest.
                exporters.sort_by_key(|pod| {
                    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
                    (!is_of_daemon_set(pod), created, pod.metadata.uid.clone())
                });
                if let Some(page) = exporters.into_iter().find_map(page) {
                    return Ok(page);
                }
            }
        }
        Err(Unread::Absent)
    }
}

fn is_of_daemon_set(pod: &Pod) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners
        .filter(|owner| owner.controller == Some(true))
        .any(|owner| owner.kind == "DaemonSet")
}

/// Address of a running pod's metrics.
fn page(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let running = status.phase.as_deref() == Some("Running") && pod.metadata.deletion_timestamp.is_none();
    let ip: IpAddr = status.pod_ip.as_deref().filter(|_| running)?.parse().ok()?;
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let ports: Vec<_> = containers
        .flat_map(|container| container.ports.iter().flatten())
        .collect();
    let usual = ports.iter().find(|port| port.container_port == PORT);
    let named = ports.iter().find(|port| port.name.as_deref() == Some("metrics"));
    let port = usual.or(named).map_or(PORT, |port| port.container_port);
    let address = SocketAddr::new(ip, port.try_into().ok()?);
    Some(format!("http://{address}/metrics"))
}
