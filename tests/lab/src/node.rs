//! The real node: containerd, kubelet, kube-proxy, the cluster's DNS and NVIDIA's DRA plugin on simulated GPUs.

mod configuration;

use std::path::{Path, PathBuf};

use crate::cgroup;
use crate::control_plane::{built_program, kubectl, text};
use crate::driver_root::{DriverRoot, Gpus};
use crate::error::Error;
use crate::namespace::BRIDGE_ADDRESS;
use crate::paths::StateDir;
use crate::supervisor::{Invocation, PATIENCE_SECONDS, Process, Step};

/// The node's name.
pub const NODE_NAME: &str = "gpu-node-1";
/// NVIDIA's DRA plugin under the supervisor.
pub const GPU_PLUGIN: &str = "gpu-kubelet-plugin";
/// The stand-in for NVIDIA's DCGM exporter under the supervisor.
pub const GPU_EXPORTER: &str = "gpu-exporter";
/// containerd's socket, in the lab's private `/run`.
const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

#[cfg(test)]
pub(crate) use configuration::corefile;

/// Writes the files the processes read and makes the driver root and the pods' cgroup.
pub fn write_files(state: &StateDir, gpus: &Gpus) -> Result<(), Error> {
    configuration::write(state)?;
    DriverRoot::make(&driver_root_path(state), gpus)?;
    cgroup::create(state)
}

/// Where the simulated driver is installed.
pub fn driver_root_path(state: &StateDir) -> PathBuf {
    state.join("driver-root")
}

/// From a control plane to a node that runs pods with GPU claims.
pub fn steps(state: &StateDir, gpus: &Gpus) -> Vec<Step> {
    let mut steps = vec![
        Step::Start(containerd(state)),
        Step::Await {
            what: "waiting for containerd".to_owned(),
            command: ctr(state, ["version"]),
            deadline_seconds: PATIENCE_SECONDS,
        },
        Step::Start(kubelet(state)),
        Step::Start(kube_proxy(state)),
        Step::Start(core_dns(state)),
    ];
    steps.push(Step::Await {
        what: format!("waiting for node {NODE_NAME} to be ready"),
        command: kubectl(
            state,
            [
                "wait",
                "--for=condition=Ready",
                "--timeout=5s",
                &format!("node/{NODE_NAME}"),
            ],
        ),
        deadline_seconds: PATIENCE_SECONDS,
    });
    if gpus.count > 0 {
        // Not earlier: it listens in a folder the kubelet makes.
        steps.extend([
            Step::Start(gpu_exporter(state, gpus)),
            Step::Start(gpu_plugin(state, gpus)),
            await_slice(state),
        ]);
    }
    steps
}

/// Waits until the DRA plugin has published its ResourceSlice.
fn await_slice(state: &StateDir) -> Step {
    let node = format!("--field-selector=spec.nodeName={NODE_NAME}");
    let driver = "--for=jsonpath={.spec.driver}=gpu.nvidia.com";
    Step::Await {
        what: "waiting for the GPUs' ResourceSlice".to_owned(),
        command: kubectl(state, ["wait", "resourceslices", &node, driver, "--timeout=5s"]),
        deadline_seconds: PATIENCE_SECONDS,
    }
}

/// containerd's root, which holds the images.
pub fn image_store(state: &StateDir) -> PathBuf {
    state.join("containerd")
}

/// Imports an image archive into the kubelet's namespace of containerd.
pub fn import(state: &StateDir, archive: &Path) -> Invocation {
    ctr(state, ["--namespace=k8s.io", "images", "import", &text(archive)])
}

fn ctr<A: Into<String>>(state: &StateDir, arguments: impl IntoIterator<Item = A>) -> Invocation {
    let socket = ["--address".to_owned(), CONTAINERD_SOCKET.to_owned()];
    Invocation::new(
        state.bin().join("ctr"),
        socket.into_iter().chain(arguments.into_iter().map(Into::into)),
    )
}

fn containerd(state: &StateDir) -> Process {
    let arguments = [
        "--config".to_owned(),
        text(&state.join("containerd.toml")),
        "--log-level=warn".to_owned(),
    ];
    built_program(state, "containerd", arguments.into())
}

fn kubelet(state: &StateDir) -> Process {
    let arguments = [
        format!("--config={}", text(&state.join("kubelet.yaml"))),
        format!("--kubeconfig={}", text(&state.kubeconfig("node"))),
        format!("--cert-dir={}", text(&state.join("kubelet-pki"))),
        format!("--hostname-override={NODE_NAME}"),
        format!("--node-ip={BRIDGE_ADDRESS}"),
    ];
    built_program(state, "kubelet", arguments.into())
}

fn kube_proxy(state: &StateDir) -> Process {
    let arguments = [
        format!("--kubeconfig={}", text(&state.kubeconfig("proxy"))),
        format!("--hostname-override={NODE_NAME}"),
        "--proxy-mode=iptables".to_owned(),
        "--cluster-cidr=10.244.0.0/24".to_owned(),
        // The limit is the machine's, not the namespace's: leave it alone.
        "--conntrack-max-per-core=0".to_owned(),
    ];
    built_program(state, "kube-proxy", arguments.into())
}

fn core_dns(state: &StateDir) -> Process {
    built_program(
        state,
        "coredns",
        vec!["-conf".to_owned(), text(&state.join("Corefile"))],
    )
}

fn gpu_plugin(state: &StateDir, gpus: &Gpus) -> Process {
    let root = DriverRoot::at(&driver_root_path(state), gpus.count);
    let (config, path) = root.env();
    let mut process = built_program(state, GPU_PLUGIN, vec!["-v=4".to_owned()]);
    process.command = process
        .command
        .env("KUBECONFIG", text(&state.kubeconfig("dra-driver")))
        .env("NODE_NAME", NODE_NAME)
        .env("NAMESPACE", "kube-system")
        .env("IMAGE_NAME", "unused")
        .env("NVIDIA_DRIVER_ROOT", text(root.path()))
        .env("DRIVER_ROOT_CTR_PATH", text(root.path()))
        .env("NVIDIA_CDI_HOOK_PATH", "/bin/true")
        .env("CDI_ROOT", configuration::CDI_DIR)
        .env(config, text(&path));
    process
}

/// On the node's address, where a pod with the host's network would serve it.
fn gpu_exporter(state: &StateDir, gpus: &Gpus) -> Process {
    let root = DriverRoot::at(&driver_root_path(state), gpus.count);
    let (config, path) = root.env();
    let library = text(&root.library());
    let arguments = [
        GPU_EXPORTER.to_owned(),
        format!("--listen={BRIDGE_ADDRESS}:9400"),
        format!("--library={library}"),
        format!("--hostname={NODE_NAME}"),
    ];
    Process {
        name: GPU_EXPORTER.to_owned(),
        command: Invocation::new(state.bin().join("lab"), arguments).env(config, text(&path)),
    }
}
