//! The lab, as a test talks to it.

use std::fmt::Debug;
use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::Value;
use tokio::process::Command;

/// The running lab: its command and its API server.
#[derive(Clone)]
pub struct Lab {
    /// Path of the `lab` program.
    pub program: PathBuf,
    /// The cluster's admin.
    pub client: Client,
}

impl Lab {
    /// Connects to the running lab; `LAB` names its program, `KUBECONFIG` its admin.
    ///
    /// # Panics
    /// If there is no lab: the test cannot go on.
    pub async fn connect() -> Self {
        let program = std::env::var_os("LAB")
            .expect("LAB names the lab's program: run this by `just e2e`")
            .into();
        Self::at(program).await
    }

    /// Connects to the running lab whose program is known.
    ///
    /// # Panics
    /// If `KUBECONFIG` does not name its cluster.
    pub async fn at(program: PathBuf) -> Self {
        let client = Client::try_default()
            .await
            .expect("KUBECONFIG names the lab's cluster: run this by `lab exec`");
        Self { program, client }
    }

    /// Runs a command of the lab, such as `fault stale-dra`; its output.
    ///
    /// # Panics
    /// If it fails.
    pub async fn run(&self, arguments: &[&str]) -> String {
        output(Command::new(&self.program).args(arguments)).await
    }

    /// Runs kubectl as the cluster's admin; its output.
    ///
    /// # Panics
    /// If it fails.
    pub async fn kubectl(&self, arguments: &[&str]) -> String {
        output(Command::new("kubectl").args(arguments)).await
    }

    /// Runs kubectl as the cluster's admin; `Err` holds what it complained about.
    ///
    /// # Errors
    /// If kubectl exits with an error.
    ///
    /// # Panics
    /// If kubectl cannot be started.
    pub async fn try_kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new("kubectl")
            .args(arguments)
            .output()
            .await
            .expect("kubectl is in PATH");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        }
    }

    /// The answer of `kubectl auth can-i`.
    ///
    /// # Panics
    /// If there is no answer: an error is not a "no".
    pub async fn can_i(&self, arguments: &[&str]) -> bool {
        let answer = self.try_kubectl(&[&["auth", "can-i"], arguments].concat()).await;
        match answer {
            Ok(_) => true,
            // It prints "no" to its standard output.
            Err(said) if said.trim().is_empty() => false,
            Err(said) => panic!("kubectl auth can-i {arguments:?}: {said}"),
        }
    }

    /// Name of the first pod of this component of a run.
    ///
    /// # Panics
    /// If there is none.
    pub async fn first_pod(&self, namespace: &str, component: &str) -> String {
        let component = format!("perfvalidation.dev/component={component}");
        let name = "jsonpath={.items[0].metadata.name}";
        self.kubectl(&["get", "pod", "-n", namespace, "-l", &component, "-o", name])
            .await
    }

    /// Applies a manifest.
    ///
    /// # Panics
    /// If the API server refuses.
    pub async fn apply(&self, manifest: &Value) {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), manifest.to_string()).expect("write the manifest");
        self.kubectl(&["apply", "-f", &file.path().to_string_lossy()]).await;
    }

    /// A namespace of its own for a test, made anew, in which the operator may run.
    ///
    /// # Panics
    /// If the API server refuses.
    pub async fn namespace(&self, name: &str) -> String {
        let namespace = self.namespace_without_runs(name).await;
        self.allow_runs(&namespace).await;
        namespace
    }

    /// A namespace made anew, as an administrator makes it who has not heard of the operator.
    ///
    /// # Panics
    /// If the API server refuses.
    pub async fn namespace_without_runs(&self, name: &str) -> String {
        let _ = self
            .try_kubectl(&["delete", "namespace", name, "--ignore-not-found", "--timeout=120s"])
            .await;
        self.kubectl(&["create", "namespace", name]).await;
        name.to_owned()
    }

    /// Lets the operator run validations in a namespace, as an administrator does. The API server notices after a moment.
    ///
    /// # Panics
    /// If the API server refuses.
    pub async fn allow_runs(&self, namespace: &str) {
        let role = "--clusterrole=perfvalidation-operator-runs";
        let account = "--serviceaccount=perfvalidation-system:perfvalidation-operator";
        let arguments = [
            "create",
            "rolebinding",
            "perfvalidation",
            "-n",
            namespace,
            role,
            account,
        ];
        self.kubectl(&arguments).await;
        let create = ["create", "jobs.batch", "-n", namespace];
        let operator = "--as=system:serviceaccount:perfvalidation-system:perfvalidation-operator";
        for _ in 0..20 {
            if self.can_i(&[&create[..], &[operator]].concat()).await {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .await
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Looks until `look` gives an answer, at most `limit`; what it last complained about is the failure.
///
/// # Panics
/// If the limit passes.
pub async fn eventually<T, E: Debug, F: Future<Output = Result<T, E>>>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> F,
) -> T {
    let began = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(complaint) if began.elapsed() > limit => panic!("{what}: not within {limit:?}: {complaint:?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}
