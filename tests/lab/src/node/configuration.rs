//! The node's configuration files.

use std::fs;
use std::path::Path;

use crate::control_plane::text;
use crate::error::{Error, FileResult as _};
use crate::namespace::{BRIDGE, BRIDGE_ADDRESS};
use crate::paths::StateDir;
use crate::{cgroup, packages};

/// Where the DRA plugin writes device specifications and containerd reads them.
pub const CDI_DIR: &str = "/run/cdi";

/// Writes all of them.
pub fn write(state: &StateDir) -> Result<(), Error> {
    let cni = state.join("cni-conf");
    fs::create_dir_all(&cni).file("create", &cni)?;
    for (file, content) in [
        (cni.join("10-lab.conflist"), cni_network()),
        (state.join("containerd.toml"), containerd(state, &cni)),
        (state.join("kubelet.yaml"), kubelet(state)),
        (state.join("Corefile"), corefile(state)),
    ] {
        fs::write(&file, content).file("write", &file)?;
    }
    Ok(())
}

fn containerd(state: &StateDir, cni: &Path) -> String {
    let root = text(&super::image_store(state));
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

fn cni_network() -> String {
    format!(
        r#"{{
  "cniVersion": "1.0.0",
  "name": "lab",
  "plugins": [
    {{
      "type": "bridge", "bridge": "{BRIDGE}", "isGateway": true, "hairpinMode": true, "ipMasq": false,
      "ipam": {{
        "type": "host-local",
        "ranges": [[{{"subnet": "10.244.0.0/24", "rangeStart": "10.244.0.10", "gateway": "{BRIDGE_ADDRESS}"}}]],
        "routes": [{{"dst": "0.0.0.0/0"}}]
      }}
    }}
  ]
}}
"#
    )
}

fn kubelet(state: &StateDir) -> String {
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
        cgroup::name(state)
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
