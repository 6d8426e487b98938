//! The operator, installed in the cluster or running outside it.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tokio::process::{Child, Command};

use crate::lab::Lab;
use crate::takeover::Account;

const NAMESPACE: &str = "perfvalidation-system";
const DEPLOYMENT: &str = "deployment/perfvalidation-operator";
/// Arguments of an operator that is the only one.
const ALONE: [&str; 1] = ["--leader-elect=false"];
const SELECTOR: &str = "app.kubernetes.io/name=perfvalidation-operator";

/// The operator as a Deployment, installed from `config/`.
pub struct Operator {
    lab: Lab,
}

impl Operator {
    /// Installs it and waits until it is ready.
    ///
    /// # Panics
    /// If it does not become ready.
    pub async fn install(lab: &Lab, config: &str) -> Self {
        let folder = format!("{config}/lab");
        lab.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &folder])
            .await;
        let operator = Self { lab: lab.clone() };
        operator.scale(1).await;
        operator
    }

    /// Sets its replicas and waits until they are there, or gone.
    ///
    /// # Panics
    /// If that does not happen.
    pub async fn scale(&self, replicas: u32) {
        let replicas = format!("--replicas={replicas}");
        self.lab
            .kubectl(&["scale", "-n", NAMESPACE, DEPLOYMENT, &replicas])
            .await;
        self.lab
            .kubectl(&["rollout", "status", "-n", NAMESPACE, DEPLOYMENT, "--timeout=120s"])
            .await;
        if replicas == "--replicas=0" {
            self.lab
                .kubectl(&[
                    "wait",
                    "-n",
                    NAMESPACE,
                    "pod",
                    "-l",
                    SELECTOR,
                    "--for=delete",
                    "--timeout=60s",
                ])
                .await;
        }
    }

    /// Its pod.
    ///
    /// # Panics
    /// If there is none.
    pub async fn pod(&self) -> Pod {
        let pods: Api<Pod> = Api::namespaced(self.lab.client.clone(), NAMESPACE);
        let listed = pods.list(&ListParams::default().labels(SELECTOR)).await;
        listed.expect("list pods").items.pop().expect("a pod of the operator")
    }
}

/// The operator as a process outside the cluster, which a test may kill.
pub struct OutOfCluster {
    process: Child,
}

impl OutOfCluster {
    /// Starts it with the cluster's kubeconfig; `PERFVAL_OPERATOR` names the program. No lease: a killed holder would block
    /// the next one for 15 s in every phase.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start() -> Self {
        Self::spawn(&mut Command::new("setpriv"), &ALONE)
    }

    /// Starts it as one of several, of which the one works that holds this lease in the default namespace.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn elected(lease: &str, account: &Account) -> Self {
        let arguments = [
            "--leader-elect-namespace=default".to_owned(),
            format!("--leader-elect-name={lease}"),
            format!("--identity={}", account.name),
        ];
        Self::spawn(
            Command::new("setpriv").env("KUBECONFIG", account.kubeconfig.path()),
            &arguments,
        )
    }

    /// Starts it without a lease and with more arguments; what it says goes to the end of a file.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn logging(log: &Path, more: &[&str]) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(log);
        let log = log.expect("a file for the operator's log");
        let errors = log.try_clone().expect("the same file");
        let arguments = [&ALONE, more].concat();
        Self::spawn(Command::new("setpriv").stdout(log).stderr(errors), &arguments)
    }

    fn spawn(command: &mut Command, arguments: &[impl AsRef<OsStr>]) -> Self {
        let program: PathBuf = std::env::var_os("PERFVAL_OPERATOR")
            .expect("PERFVAL_OPERATOR names the operator")
            .into();
        // The process is not in the lab's own pid namespace: it must not outlive a test that is ended by a signal.
        let process = command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args([
                "run",
                "--metrics-addr=127.0.0.1:0",
                "--endpoint-access=service-proxy",
                "--log-format=text",
                "--runner-image=localhost/perfvalidation-operator:lab",
                "--benchmark-images=localhost",
            ])
            .args(arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the operator starts");
        Self { process }
    }

    /// Sends it a signal, by its name without `SIG`.
    ///
    /// # Panics
    /// If it is gone.
    pub async fn signal(&self, name: &str) {
        let process = self.process.id().expect("it runs").to_string();
        let sent = Command::new("kill").args(["-s", name, &process]).status().await;
        assert!(sent.expect("kill starts").success(), "SIG{name}");
    }

    /// Waits until it has ended by itself; whether it ended well.
    ///
    /// # Panics
    /// If its end cannot be seen.
    pub async fn ended(mut self) -> bool {
        self.process.wait().await.expect("wait for the operator").success()
    }

    /// SIGKILL: no time to finish anything.
    ///
    /// # Panics
    /// If the process cannot be ended.
    pub async fn kill(mut self) {
        self.process.kill().await.expect("kill the operator");
    }
}
