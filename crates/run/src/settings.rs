//! The operator's own configuration, as far as decisions depend on it.

use k8s_openapi::api::networking::v1::NetworkPolicyIngressRule;
use perfval_sizing::Naming;

/// Flags of the operator that shape what it creates.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Image that holds `perfval-runner` (the operator's own image); its init container copies the runner.
    pub runner_image: String,
    /// AIPerf image where `benchmark.image` is empty.
    pub aiperf_image: Option<String>,
    /// Images that `benchmark.image` may contain besides `aiperf_image`: whole references, or the paths with which they
    /// begin. A user who chooses the load generator can choose its numbers.
    pub benchmark_images: Vec<String>,
    /// DNS suffix of the cluster, for the endpoint's URL.
    pub cluster_domain: String,
    /// Version of this operator, for labels.
    pub version: String,
    /// Namespaces in which no run begins.
    pub refused_namespaces: Vec<String>,
    /// True if messages contain the names of pods, claims and runs of other namespaces than the run's own; if not,
    /// they are counted.
    pub names_foreign_pods: bool,
    /// Namespaces whose pods may be DCGM exporters: those of administrators. The reports of such a pod are trusted
    /// for the GPUs of every team.
    pub dcgm_exporter_namespaces: Vec<String>,
    /// True if other operators may look after other namespaces of the cluster.
    pub shares_the_cluster: bool,
    /// Rules that admit others to the pods of a run besides each other, such as the operator. With `None` a run has no
    /// `NetworkPolicy`.
    pub run_network_policy: Option<Vec<NetworkPolicyIngressRule>>,
}

/// Namespaces of NVIDIA's GPU Operator: by its own guide, and on `OpenShift`.
pub const DCGM_EXPORTER_NAMESPACES: [&str; 2] = ["gpu-operator", "nvidia-gpu-operator"];
/// The namespace of the cluster's own programs.
const KUBE_SYSTEM: &str = "kube-system";

/// Variable of the operator with `aiperf_image`. `kubectl perfval doctor` reads these variables in the operator's pod.
pub const AIPERF_IMAGE: &str = "PERFVAL_AIPERF_IMAGE";
/// Variable with `benchmark_images`, comma-separated.
pub const BENCHMARK_IMAGES: &str = "PERFVAL_BENCHMARK_IMAGES";
/// Variable with the watched namespaces, comma-separated; all when empty.
pub const WATCH_NAMESPACES: &str = "PERFVAL_WATCH_NAMESPACES";
/// Variable with `refused_namespaces`, comma-separated; none when empty.
pub const REFUSED_NAMESPACES: &str = "PERFVAL_REFUSED_NAMESPACES";

/// Names in the parts of a comma-separated list.
pub fn names<T: AsRef<str>>(parts: impl IntoIterator<Item = T>) -> Vec<String> {
    let names = parts.into_iter().map(|part| part.as_ref().trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// Namespaces without runs where an administrator names none. `own_namespace`: the namespace of the operator's pod.
pub fn refused_by_default(own_namespace: Option<&str>) -> Vec<String> {
    names([KUBE_SYSTEM].into_iter().chain(own_namespace))
}

impl Settings {
    /// Returns true if no run may begin in a namespace.
    pub fn refuses(&self, namespace: &str) -> bool {
        self.refused_namespaces.iter().any(|refused| refused == namespace)
    }

    /// Returns true if `benchmark.image` may contain this image. A path ends where a part of the reference ends:
    /// `registry/team` does not permit `registry/team-of-others/aiperf`.
    pub fn permits_benchmark(&self, image: &str) -> bool {
        // After a host alone, `:5000/aiperf` is a port: another registry.
        let is_version = |rest: &str| rest.starts_with([':', '@']) && !rest.contains('/');
        let begins = |path: &String| {
            image
                .strip_prefix(path.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || is_version(rest))
        };
        self.aiperf_image.as_deref() == Some(image) || self.benchmark_images.iter().any(begins)
    }

    /// Names of pods, claims and runs that the messages of a run in this namespace may contain.
    pub fn naming(&self, namespace: &str) -> Naming {
        if self.names_foreign_pods {
            Naming::All
        } else {
            Naming::Only(namespace.to_owned())
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            runner_image: concat!("localhost/perfvalidation-operator:", env!("CARGO_PKG_VERSION")).into(),
            aiperf_image: None,
            benchmark_images: Vec::new(),
            cluster_domain: "cluster.local".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            refused_namespaces: refused_by_default(None),
            names_foreign_pods: false,
            dcgm_exporter_namespaces: DCGM_EXPORTER_NAMESPACES.map(str::to_owned).into(),
            shares_the_cluster: false,
            run_network_policy: None,
        }
    }
}
