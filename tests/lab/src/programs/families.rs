//! What is built: the program families, their wrapper modules and how they are compiled.

/// A family of programs built from one wrapper module.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// The folder under `programs/`.
    pub name: &'static str,
    /// The wrapper's `go.mod`.
    pub go_mod: &'static str,
    /// The wrapper's `go.sum`.
    pub go_sum: &'static str,
    /// What to build.
    pub packages: &'static [&'static str],
    /// The programs that come out.
    pub binaries: &'static [&'static str],
    /// Go build tags, comma separated.
    pub tags: &'static str,
    /// Whether it links against C.
    pub cgo: bool,
    /// Packages that a first build compiles. Only progress lines use it.
    pub compiles: u32,
}

macro_rules! wrapper {
    ($name:literal, $file:literal) => {
        include_str!(concat!("../../programs/", $name, "/", $file))
    };
}

/// kube-apiserver, -controller-manager, -scheduler, kubelet, kube-proxy, kubectl.
pub const KUBERNETES_PROGRAMS: Family = Family {
    name: "kubernetes",
    go_mod: wrapper!("kubernetes", "go.mod"),
    go_sum: wrapper!("kubernetes", "go.sum"),
    packages: &[
        "k8s.io/kubernetes/cmd/kube-apiserver",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-scheduler",
        "k8s.io/kubernetes/cmd/kubelet",
        "k8s.io/kubernetes/cmd/kube-proxy",
        "k8s.io/kubernetes/cmd/kubectl",
    ],
    binaries: &[
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubelet",
        "kube-proxy",
        "kubectl",
    ],
    tags: "",
    cgo: false,
    compiles: 2750,
};

/// etcd 3.6: older ones have no watch progress, and the API server then refuses streaming lists.
pub const ETCD: Family = Family {
    name: "etcd",
    go_mod: wrapper!("etcd", "go.mod"),
    go_sum: wrapper!("etcd", "go.sum"),
    packages: &["go.etcd.io/etcd/server/v3"],
    binaries: &["etcd"],
    tags: "",
    cgo: false,
    compiles: 310,
};

/// kwok: simulated nodes by the hundred.
pub const KWOK: Family = Family {
    name: "kwok",
    go_mod: wrapper!("kwok", "go.mod"),
    go_sum: wrapper!("kwok", "go.sum"),
    packages: &["sigs.k8s.io/kwok/cmd/kwok"],
    binaries: &["kwok"],
    tags: "",
    cgo: false,
    compiles: 560,
};

/// containerd, its shim for runc, and `ctr`.
pub const CONTAINERD: Family = Family {
    name: "containerd",
    go_mod: wrapper!("containerd", "go.mod"),
    go_sum: wrapper!("containerd", "go.sum"),
    packages: &[
        "github.com/containerd/containerd/v2/cmd/containerd",
        "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        "github.com/containerd/containerd/v2/cmd/ctr",
    ],
    binaries: &["containerd", "containerd-shim-runc-v2", "ctr"],
    tags: "no_btrfs,no_devmapper,no_zfs",
    cgo: false,
    compiles: 550,
};

/// NVIDIA's DRA kubelet plugin. It opens NVML with dlopen, hence C.
pub const NVIDIA_DRA: Family = Family {
    name: "nvidia-dra",
    go_mod: wrapper!("nvidia-dra", "go.mod"),
    go_sum: wrapper!("nvidia-dra", "go.sum"),
    packages: &["sigs.k8s.io/dra-driver-nvidia-gpu/cmd/gpu-kubelet-plugin"],
    binaries: &["gpu-kubelet-plugin"],
    tags: "",
    cgo: true,
    compiles: 800,
};

/// The cluster's DNS.
pub const COREDNS: Family = Family {
    name: "coredns",
    go_mod: wrapper!("coredns", "go.mod"),
    go_sum: wrapper!("coredns", "go.sum"),
    packages: &["github.com/coredns/coredns"],
    binaries: &["coredns"],
    tags: "",
    cgo: false,
    compiles: 1100,
};

/// Installs the chart under `charts/`, and renders it for tests.
pub const HELM: Family = Family {
    name: "helm",
    go_mod: wrapper!("helm", "go.mod"),
    go_sum: wrapper!("helm", "go.sum"),
    packages: &["helm.sh/helm/v3/cmd/helm"],
    binaries: &["helm"],
    tags: "",
    cgo: false,
    compiles: 1000,
};

/// Renders the folders under `config/`: the version that kubectl carries, in a fraction of kubectl's build time.
pub const KUSTOMIZE: Family = Family {
    name: "kustomize",
    go_mod: wrapper!("kustomize", "go.mod"),
    go_sum: wrapper!("kustomize", "go.sum"),
    packages: &["sigs.k8s.io/kustomize/kustomize/v5"],
    binaries: &["kustomize"],
    tags: "",
    cgo: false,
    compiles: 300,
};

/// Programs of every lab.
pub const CONTROL_PLANE_FAMILIES: &[Family] = &[KUBERNETES_PROGRAMS, ETCD];
/// What a lab without a node needs in addition: its nodes are simulated.
pub const SIMULATION_FAMILIES: &[Family] = &[KWOK];
/// What a lab with a node needs in addition.
pub const NODE_FAMILIES: &[Family] = &[CONTAINERD, NVIDIA_DRA, COREDNS];
/// What tests of the chart and the manifests need; no cluster does.
pub const MANIFEST_FAMILIES: &[Family] = &[HELM, KUSTOMIZE];
