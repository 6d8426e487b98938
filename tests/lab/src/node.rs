//! A real node: containerd, kubelet, kube-proxy and NVIDIA's DRA plugin on simulated GPUs. The first one has the cluster's DNS too.

mod configuration;
mod namespace;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::cgroup;
use crate::control_plane::{built_program, kubectl, text};
use crate::driver_root::{DriverRoot, Gpus};
use crate::error::Error;
use crate::namespace::BRIDGE_ADDRESS;
use crate::paths::StateDir;
use crate::pki::API_SERVER;
use crate::supervisor::{Invocation, PATIENCE_SECONDS, Process, Step};

/// Name of the first node.
pub const NODE_NAME: &str = "gpu-node-1";
/// NVIDIA's DRA plugin under the supervisor.
pub const GPU_PLUGIN: &str = "gpu-kubelet-plugin";
/// The stand-in for NVIDIA's DCGM exporter under the supervisor.
pub const GPU_EXPORTER: &str = "gpu-exporter";
/// Most nodes: they share the addresses of one bridge.
pub const MOST_NODES: u8 = 4;
/// containerd's socket, in the node's private `/run`.
const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

#[cfg(test)]
pub(crate) use configuration::corefile;
pub use namespace::{enter, hold};

/// Where the simulated driver of the first node is installed.
pub fn driver_root_path(state: &StateDir) -> PathBuf {
    Node::new(state, 1).driver_root_path()
}

/// A node of a lab. The first one is in the namespaces of the control plane, each other one in a mount and a network namespace
/// of its own.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    state: &'a StateDir,
    /// From 1.
    number: u8,
}

impl<'a> Node<'a> {
    /// The node with this number, from 1.
    pub const fn new(state: &'a StateDir, number: u8) -> Self {
        Self { state, number }
    }

    /// Nodes of a lab that was brought up.
    pub fn all(state: &'a StateDir) -> impl Iterator<Item = Self> {
        let nodes = (1..=MOST_NODES).map(|number| Self::new(state, number));
        nodes.filter(|node| node.image_store().exists())
    }

    /// Its name.
    pub fn name(&self) -> String {
        format!("gpu-node-{}", self.number)
    }

    /// The API server as this node reaches it.
    pub fn api_server(&self) -> String {
        if self.is_first() {
            API_SERVER.to_owned()
        } else {
            format!("https://{BRIDGE_ADDRESS}:6443")
        }
    }

    fn is_first(&self) -> bool {
        self.number == 1
    }

    /// A name for this node's own one of something that the first has too.
    pub fn own(&self, name: &str) -> String {
        if self.is_first() {
            name.to_owned()
        } else {
            format!("{name}-{}", self.number)
        }
    }

    /// Address on the bridge.
    fn address(&self) -> Ipv4Addr {
        let [a, b, c, _] = BRIDGE_ADDRESS.octets();
        Ipv4Addr::new(a, b, c, self.number)
    }

    /// A file or folder of this node.
    fn join(&self, relative: &str) -> PathBuf {
        if self.is_first() {
            self.state.join(relative)
        } else {
            self.state.join(&self.own("node")).join(relative)
        }
    }

    fn driver_root_path(&self) -> PathBuf {
        self.join("driver-root")
    }

    /// containerd's root, which holds the images.
    pub fn image_store(&self) -> PathBuf {
        self.join("containerd")
    }

    /// Name of the cgroup of its pods.
    fn cgroup(&self) -> String {
        let lab = cgroup::name(self.state);
        if self.is_first() {
            lab
        } else {
            format!("{lab}/{}", self.own("node"))
        }
    }

    /// Writes the files the processes read and makes the driver root and the pods' cgroup. `nodes` is the number of nodes of the lab.
    pub fn write_files(&self, gpus: &Gpus, nodes: u8) -> Result<(), Error> {
        configuration::write(self, nodes)?;
        DriverRoot::make(&self.driver_root_path(), gpus)?;
        cgroup::create(&self.cgroup())
    }

    /// From a control plane to a node that runs pods with GPU claims.
    pub fn steps(&self, gpus: &Gpus) -> Vec<Step> {
        let await_ = |what: String, command| Step::Await {
            what,
            command,
            deadline_seconds: PATIENCE_SECONDS,
        };
        let name = self.name();
        let mut steps = Vec::new();
        if !self.is_first() {
            steps.push(Step::Start(namespace::holder(self)));
            steps.push(await_(
                format!("waiting for the namespaces of {name}"),
                self.inside(Invocation::new("true", [""; 0])),
            ));
        }
        steps.extend([
            Step::Start(self.containerd()),
            await_("waiting for containerd".to_owned(), self.ctr(["version"])),
            Step::Start(self.kubelet()),
            Step::Start(self.kube_proxy()),
        ]);
        if self.is_first() {
            steps.push(Step::Start(self.core_dns()));
        }
        let node = format!("node/{name}");
        let is_ready = ["wait", "--for=condition=Ready", "--timeout=5s", &node];
        steps.push(await_(
            format!("waiting for node {name} to be ready"),
            kubectl(self.state, is_ready),
        ));
        if gpus.count > 0 {
            let node = format!("--field-selector=spec.nodeName={name}");
            let driver = "--for=jsonpath={.spec.driver}=gpu.nvidia.com";
            let slice = kubectl(self.state, ["wait", "resourceslices", &node, driver, "--timeout=5s"]);
            // Not earlier: the plugin listens in a folder that the kubelet makes.
            steps.extend([
                Step::Start(self.gpu_exporter(gpus)),
                Step::Start(self.gpu_plugin(gpus)),
                await_("waiting for the GPUs' ResourceSlice".to_owned(), slice),
            ]);
        }
        steps
    }

    /// Imports an image archive into the kubelet's namespace of containerd.
    pub fn import(&self, archive: &Path) -> Invocation {
        self.ctr(["--namespace=k8s.io", "images", "import", &text(archive)])
    }

    fn ctr<A: Into<String>>(&self, arguments: impl IntoIterator<Item = A>) -> Invocation {
        let socket = ["--address".to_owned(), CONTAINERD_SOCKET.to_owned()];
        let arguments = socket.into_iter().chain(arguments.into_iter().map(Into::into));
        self.inside(Invocation::new(self.state.bin().join("ctr"), arguments))
    }

    /// A command in this node's namespaces.
    fn inside(&self, command: Invocation) -> Invocation {
        if self.is_first() {
            return command;
        }
        let enter = ["on-node".to_owned(), text(self.state.root()), self.number.to_string()];
        let words = std::iter::once(text(&command.program)).chain(command.args);
        Invocation {
            program: self.state.bin().join("lab"),
            args: enter.into_iter().chain(words).collect(),
            env: command.env,
        }
    }

    fn process(&self, process: Process) -> Process {
        Process {
            name: self.own(&process.name),
            command: self.inside(process.command),
        }
    }

    fn program(&self, name: &str, arguments: Vec<String>) -> Process {
        self.process(built_program(self.state, name, arguments))
    }

    fn kubeconfig(&self, user: &str) -> String {
        text(&self.state.kubeconfig(&self.own(user)))
    }

    fn containerd(&self) -> Process {
        let config = text(&self.join("containerd.toml"));
        let arguments = ["--config".to_owned(), config, "--log-level=warn".to_owned()];
        self.program("containerd", arguments.into())
    }

    fn kubelet(&self) -> Process {
        let arguments = [
            format!("--config={}", text(&self.join("kubelet.yaml"))),
            format!("--kubeconfig={}", self.kubeconfig("node")),
            format!("--cert-dir={}", text(&self.join("kubelet-pki"))),
            format!("--hostname-override={}", self.name()),
            format!("--node-ip={}", self.address()),
        ];
        self.program("kubelet", arguments.into())
    }

    fn kube_proxy(&self) -> Process {
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig("proxy")),
            format!("--hostname-override={}", self.name()),
            "--proxy-mode=iptables".to_owned(),
            "--cluster-cidr=10.244.0.0/24".to_owned(),
            // The limit is the machine's, not the namespace's: leave it alone.
            "--conntrack-max-per-core=0".to_owned(),
        ];
        self.program("kube-proxy", arguments.into())
    }

    fn core_dns(&self) -> Process {
        let arguments = vec!["-conf".to_owned(), text(&self.join("Corefile"))];
        self.program("coredns", arguments)
    }

    fn gpu_plugin(&self, gpus: &Gpus) -> Process {
        let root = DriverRoot::at(&self.driver_root_path(), gpus.numbers());
        let (config, path) = root.env();
        let mut process = built_program(self.state, GPU_PLUGIN, vec!["-v=4".to_owned()]);
        process.command = process
            .command
            .env("KUBECONFIG", self.kubeconfig("dra-driver"))
            .env("NODE_NAME", self.name())
            .env("NAMESPACE", "kube-system")
            .env("IMAGE_NAME", "unused")
            .env("NVIDIA_DRIVER_ROOT", text(root.path()))
            .env("DRIVER_ROOT_CTR_PATH", text(root.path()))
            .env("NVIDIA_CDI_HOOK_PATH", "/bin/true")
            .env("CDI_ROOT", configuration::CDI_DIR)
            .env(config, text(&path));
        self.process(process)
    }

    /// On the node's address, where a pod with the host's network would serve it.
    fn gpu_exporter(&self, gpus: &Gpus) -> Process {
        let root = DriverRoot::at(&self.driver_root_path(), gpus.numbers());
        let (config, path) = root.env();
        let library = text(&root.library());
        let arguments = [
            GPU_EXPORTER.to_owned(),
            format!("--listen={}:9400", self.address()),
            format!("--library={library}"),
            format!("--hostname={}", self.name()),
        ];
        self.process(Process {
            name: GPU_EXPORTER.to_owned(),
            command: Invocation::new(self.state.bin().join("lab"), arguments).env(config, text(&path)),
        })
    }
}
