//! The lab as a test wants to find it.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use tokio::process::Command;

use crate::dynamo;
use crate::install::Operator;
use crate::lab::Lab;

/// The lab's first node.
pub const NODE: &str = "gpu-node-1";
/// The DRA driver's part on the node, as a process of the lab.
pub const DRA_PLUGIN: &str = "gpu-kubelet-plugin";
/// Key of the taint that a test puts on the node.
pub const TAINT: &str = "busy";

/// The folder `config` of the project.
///
/// # Panics
/// If no variable names it.
pub fn config() -> String {
    std::env::var("PERFVAL_CONFIG").expect("PERFVAL_CONFIG names the config folder")
}

/// The lab with the operator installed in the cluster, and without what an earlier test that failed left behind.
///
/// # Panics
/// If there is no lab, or the operator does not become ready.
pub async fn ready() -> (Lab, Operator) {
    let lab = Lab::connect().await;
    heal(&lab).await;
    lab.run(&["fault", "clear"]).await;
    if !dynamo::serves_both(&lab).await {
        dynamo::serve(&lab, "both").await;
    }
    let operator = Operator::install(&lab, &config()).await;
    (lab, operator)
}

/// Starts what was stopped, and brings a node back that was deleted or tainted.
async fn heal(lab: &Lab) {
    // It fails where a process died.
    let status = Command::new(&lab.program).arg("status").output().await;
    let status = status.expect("the lab's program starts").stdout;
    let status = String::from_utf8_lossy(&status);
    let stopped: Vec<&str> = stopped(&status).collect();
    for process in &stopped {
        lab.run(&["fault", "start", process]).await;
    }
    let nodes: Api<Node> = Api::all(lab.client.clone());
    let node = nodes.get_opt(NODE).await.expect("the API server answers");
    let is_gone = node.is_none();
    if is_gone {
        // A kubelet makes its node when it starts.
        for change in ["stop", "start"] {
            lab.run(&["fault", change, "kubelet"]).await;
        }
    }
    if is_gone || !stopped.is_empty() {
        // Slices belong to the node that was, and a kubelet that does not have the driver yet fails the first claim.
        lab.run(&["fault", "heal-dra"]).await;
    }
    let taints = node.and_then(|node| node.spec?.taints).unwrap_or_default();
    if taints.iter().any(|taint| taint.key == TAINT) {
        lab.kubectl(&["taint", "node", NODE, &format!("{TAINT}-")]).await;
    }
}

/// Names of the processes that `lab status` shows as stopped.
fn stopped(status: &str) -> impl Iterator<Item = &str> {
    let lines = status.lines();
    lines.filter_map(|line| Some(line.strip_suffix(" stopped on request")?.trim()))
}

#[cfg(test)]
mod tests {
    use super::stopped;

    #[test]
    fn only_stopped_processes_are_started() {
        let status = "up (a lab)\n  etcd                       running, pid 7\n  kube-scheduler             stopped on request\n  kubelet                    DIED: exit code 1; its log ends:\n    bye\n";
        assert_eq!(stopped(status).collect::<Vec<_>>(), ["kube-scheduler"]);
    }
}
