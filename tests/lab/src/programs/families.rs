//! What is built: the program families, their wrapper modules and how they are compiled.

/// A Go module of ours that pins programs and all their dependencies.
#[derive(Debug, Clone, Copy)]
pub struct Module {
    /// Its `go.mod`.
    pub go_mod: &'static str,
    /// Its `go.sum`.
    pub go_sum: &'static str,
}

/// A family of programs built from one wrapper module.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Name of its folder in the cache.
    pub name: &'static str,
    /// The wrapper module.
    pub module: Module,
    /// Go files of ours: path and content.
    pub sources: &'static [(&'static str, &'static str)],
    /// What to build.
    pub packages: &'static [&'static str],
    /// The programs that come out.
    pub binaries: &'static [&'static str],
    /// Go build tags, comma separated.
    pub tags: &'static str,
    /// Whether it links against C.
    pub cgo: bool,
    /// Packages that a first build compiles after the families above it. Only progress lines use it.
    pub compiles: u32,
}

macro_rules! wrapper {
    ($folder:literal, $file:literal) => {
        include_str!(concat!("../../programs/", $folder, "/", $file))
    };
}

/// All programs of a cluster. One module gives them one version of each dependency, so that a package that several of them
/// import is compiled once: 580 of etcd's packages are 105 after Kubernetes, 1,000 of containerd's are 445.
const CLUSTER: Module = Module {
    go_mod: wrapper!("cluster", "go.mod"),
    go_sum: wrapper!("cluster", "go.sum"),
};

/// kube-apiserver, -controller-manager, -scheduler, kubelet, kube-proxy, kubectl.
pub const KUBERNETES_PROGRAMS: Family = Family {
    name: "kubernetes",
    module: CLUSTER,
    sources: &[],
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
    module: CLUSTER,
    sources: &[],
    packages: &["go.etcd.io/etcd/server/v3"],
    binaries: &["etcd"],
    tags: "",
    cgo: false,
    compiles: 105,
};

/// kwok: simulated nodes by the hundred.
pub const KWOK: Family = Family {
    name: "kwok",
    module: CLUSTER,
    sources: &[],
    packages: &["sigs.k8s.io/kwok/cmd/kwok"],
    binaries: &["kwok"],
    tags: "",
    cgo: false,
    compiles: 70,
};

/// containerd, its shim for runc, and `ctr`.
pub const CONTAINERD: Family = Family {
    name: "containerd",
    module: CLUSTER,
    sources: &[],
    packages: &[
        "github.com/containerd/containerd/v2/cmd/containerd",
        "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        "github.com/containerd/containerd/v2/cmd/ctr",
    ],
    binaries: &["containerd", "containerd-shim-runc-v2", "ctr"],
    tags: "no_btrfs,no_devmapper,no_zfs",
    cgo: false,
    compiles: 445,
};

/// NVIDIA's DRA kubelet plugin. It opens NVML with dlopen, hence C. With the tags Go's own packages do without C, so that
/// all but 70 packages are those that Kubernetes was built from.
pub const NVIDIA_DRA: Family = Family {
    name: "nvidia-dra",
    module: CLUSTER,
    sources: &[],
    packages: &["sigs.k8s.io/dra-driver-nvidia-gpu/cmd/gpu-kubelet-plugin"],
    binaries: &["gpu-kubelet-plugin"],
    tags: "netgo,osusergo",
    cgo: true,
    compiles: 75,
};

/// The cluster's DNS, with the plugins of the lab's Corefile.
pub const COREDNS: Family = Family {
    name: "coredns",
    module: CLUSTER,
    sources: &[("coredns/main.go", wrapper!("cluster", "coredns/main.go"))],
    packages: &["./coredns"],
    binaries: &["coredns"],
    tags: "",
    cgo: false,
    compiles: 100,
};

/// Installs the chart under `charts/`, and renders it for tests.
pub const HELM: Family = Family {
    name: "helm",
    module: Module {
        go_mod: wrapper!("helm", "go.mod"),
        go_sum: wrapper!("helm", "go.sum"),
    },
    sources: &[],
    packages: &["helm.sh/helm/v3/cmd/helm"],
    binaries: &["helm"],
    tags: "",
    cgo: false,
    compiles: 1000,
};

/// Renders the folders under `config/`: the version that kubectl carries, in a fraction of kubectl's build time.
pub const KUSTOMIZE: Family = Family {
    name: "kustomize",
    module: Module {
        go_mod: wrapper!("kustomize", "go.mod"),
        go_sum: wrapper!("kustomize", "go.sum"),
    },
    sources: &[],
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
