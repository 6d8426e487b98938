//! The node's configuration files.

use std::fs;
use std::path::Path;

use super::Node;
use crate::control_plane::text;
use crate::error::{Error, FileResult as _};
use crate::namespace::{BRIDGE, BRIDGE_ADDRESS};
use crate::paths::StateDir;
use crate::{cgroup, packages};

/// Where the DRA plugin writes device specifications and containerd reads them.
pub const CDI_DIR: &str = "/run/cdi";

/// Writes all of them.
pub fn write(node: &Node<'_>, nodes: u8) -> Result<(), Error> {
    let cni = node.join("cni-conf");
    fs::create_dir_all(&cni).file("create", &cni)?;
    for (file, content) in [
        (cni.join("10-lab.conflist"), cni_network(node, nodes)),
        (node.join("containerd.toml"), containerd(node, &cni)),
        (node.join("kubelet.yaml"), kubelet(node)),
        (node.join("Corefile"), corefile(node.state)),
    ] {
        fs::write(&file, content).file("write", &file)?;
    }
    Ok(())
}

fn containerd(node: &Node<'_>, cni: &Path) -> String {
    let root = text(&node.image_store());
    let bin = packages::cni_dir().map(|dir| text(&dir)).unwrap_or_default();
    // restrict_oom_score_adj: without CAP_SYS_RESOURCE runc may not lower a score and fails with
    // "can't get final child's PID from pipe: EOF".
    format!(
        r#"version = 3
root = "{root}"
state = "/run/containerd"
oom_score = 0

[plugins."io.containerd.internal.v1.opt"]
path = "{root}/opt"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "localhost/pause:lab"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
enable_cdi = true
cdi_spec_dirs = ["{CDI_DIR}"]
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{bin}"]
conf_dir = "{}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
"#,
        text(cni)
    )
}

/// First address of a pod.
const FIRST: u8 = 10;
/// Last address of a pod.
const LAST: u8 = 254;

/// The nodes share one network, so each gives its pods a part of the addresses.
fn cni_network(node: &Node<'_>, nodes: u8) -> String {
    let part = (LAST - FIRST + 1) / nodes;
    let first = FIRST + part * (node.number - 1);
    let last = first + part - 1;
    let gateway = node.address();
    format!(
        r#"{{
  "cniVersion": "1.0.0",
  "name": "lab",
  "plugins": [
    {{
      "type": "bridge", "bridge": "{BRIDGE}", "isGateway": true, "hairpinMode": true, "ipMasq": false,
      "ipam": {{
        "type": "host-local",
        "ranges": [[{{"subnet": "10.244.0.0/24", "rangeStart": "10.244.0.{first}", "rangeEnd": "10.244.0.{last}", "gateway": "{gateway}"}}]],
        "routes": [{{"dst": "0.0.0.0/0"}}]
      }}
    }}
  ]
}}
"#
    )
}

fn kubelet(node: &Node<'_>) -> String {
    // The kubelet refuses cgroup v1 unless a setting accepts it.
    let v1 = if cgroup::version() == cgroup::Version::V1 {
        "failCgroupV1: false\n"
    } else {
        ""
    };
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
{v1}cgroupDriver: cgroupfs
cgroupRoot: /{}
enforceNodeAllocatable: [pods]
oomScoreAdj: 0
failSwapOn: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
# The namespace is private: only the lab's own processes reach the kubelet.
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
clusterDNS: [{BRIDGE_ADDRESS}]
clusterDomain: cluster.local
volumePluginDir: /var/lib/kubelet/volume-plugins
# The machine's disk and memory are not the lab's to defend.
evictionHard: {{memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}}
imageGCHighThresholdPercent: 100
",
        node.cgroup()
    )
}

/// The file of CoreDNS; each plugin in it is imported by `programs/cluster/coredns/main.go`.
pub(crate) fn corefile(state: &StateDir) -> String {
    format!(
        "cluster.local:53 in-addr.arpa:53 {{
    bind {BRIDGE_ADDRESS}
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {}
    }}
    cache 5
}}
",
        text(&state.kubeconfig("coredns"))
    )
}
