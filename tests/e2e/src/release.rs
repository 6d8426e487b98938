//! The operator as a Helm release.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::process::Command;

use crate::lab::Lab;

/// Name of the release and of the operator's objects.
pub const RELEASE: &str = "perfvalidation-operator";
/// Namespace of the release.
pub const NAMESPACE: &str = "perfvalidation-system";

/// The images of the lab: they are loaded into the node, there is no registry.
const IMAGES: [&str; 7] = [
    "image.registry=localhost",
    "image.repository=perfvalidation-operator",
    "image.tag=lab",
    "image.pullPolicy=Never",
    "aiperf.image.registry=localhost",
    "aiperf.image.repository=dynamo-lab",
    "aiperf.image.tag=1.4.2",
];

/// Kinds of which a release has objects, and those that Helm keeps for itself.
const KINDS: &str = "deployments,services,serviceaccounts,configmaps,secrets,pods,poddisruptionbudgets,roles,rolebindings,\
                     clusterroles,clusterrolebindings";

/// Helm in the lab.
pub struct Helm {
    lab: Lab,
    program: PathBuf,
}

impl Helm {
    /// Builds it unless the cache has it.
    ///
    /// # Panics
    /// If it cannot be built.
    pub async fn new(lab: &Lab) -> Self {
        let program = lab.run(&["program", "helm"]).await;
        Self {
            lab: lab.clone(),
            program: program.trim().into(),
        }
    }

    /// Installs the chart into a namespace where only restricted pods may run, and waits until the operator is ready.
    ///
    /// # Panics
    /// If it does not become ready.
    pub async fn install(&self, chart: &Path, values: &[&str]) {
        self.lab.kubectl(&["create", "namespace", NAMESPACE]).await;
        let restricted = "pod-security.kubernetes.io/enforce=restricted";
        self.lab.kubectl(&["label", "namespace", NAMESPACE, restricted]).await;
        self.change("install", chart, values).await;
    }

    /// Upgrades the release and waits until the new operator is ready.
    ///
    /// # Panics
    /// If it does not become ready.
    pub async fn upgrade(&self, chart: &Path, values: &[&str]) {
        self.change("upgrade", chart, values).await;
    }

    async fn change(&self, verb: &str, chart: &Path, values: &[&str]) {
        let chart = chart.to_string_lossy();
        let set = IMAGES.iter().chain(values).flat_map(|value| ["--set", *value]);
        let arguments: Vec<&str> = [verb, RELEASE, &chart, "--wait", "--timeout=3m"]
            .into_iter()
            .chain(set)
            .collect();
        self.run(&arguments).await;
    }

    /// Goes back to the revision before, and waits until its operator is ready.
    ///
    /// # Panics
    /// If it does not become ready.
    pub async fn roll_back(&self) {
        self.run(&["rollback", RELEASE, "--wait", "--timeout=3m"]).await;
    }

    /// Runs the chart's tests.
    ///
    /// # Panics
    /// If one fails.
    pub async fn test(&self) {
        self.run(&["test", RELEASE, "--timeout=3m"]).await;
    }

    /// Removes the release, and then its namespace; what it leaves apart from the CRD.
    ///
    /// # Panics
    /// If the cluster cannot be read.
    pub async fn uninstall(&self) -> Vec<String> {
        self.run(&["uninstall", RELEASE, "--wait", "--timeout=3m"]).await;
        let mut left = self.objects().await;
        // Pods end after their Deployment.
        let deadline = Instant::now() + Duration::from_mins(1);
        while !left.is_empty() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(500)).await;
            left = self.objects().await;
        }
        self.lab
            .kubectl(&["delete", "namespace", NAMESPACE, "--timeout=120s"])
            .await;
        left
    }

    /// What carries the release's name, and what Helm itself keeps of it.
    async fn objects(&self) -> Vec<String> {
        let of_the_release = format!("app.kubernetes.io/instance={RELEASE}");
        let mut found = Vec::new();
        for selector in [of_the_release.as_str(), "owner=helm"] {
            let arguments = ["get", KINDS, "-A", "-l", selector, "-o", "name"];
            found.extend(self.lab.kubectl(&arguments).await.lines().map(str::to_owned));
        }
        found
    }

    async fn run(&self, arguments: &[&str]) {
        let output = Command::new(&self.program)
            .args(["--namespace", NAMESPACE])
            .args(arguments)
            .output()
            .await;
        let output = output.expect("helm starts");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "helm {arguments:?}: {said}");
        println!("helm {}: ok", arguments[0]);
    }
}
