//! The cluster of a fleet: a stub of the API server in this process, or the control plane of a lab.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kube::Client;
use kube::api::DeleteParams;
use perfval_e2e::process::Process;
use perfval_testkit::api_server::ApiServer;

use super::super::crowd::cluster::{Cluster, Resting};
use super::super::crowd::operator::kubeconfig;
use super::super::real::api;
use super::super::{Outcome, serve};
use super::calls::Calls;
use super::hardware::{self, Hardware};
use super::lab;
use super::play::{Runs, Saved};
use super::{CHANGES, Watched, lock, policy};

/// Control plane of a fleet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ControlPlane {
    /// A stub of the API server, in which pods take no room.
    Stub,
    /// The API server, the controllers and the scheduler of the lab of `LAB` and `KUBECONFIG`, with nodes of kwok.
    Lab,
}

/// An object that is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    pub plural: &'static str,
    pub namespace: &'static str,
    pub name: String,
}

/// The cluster, and its objects as they are now.
pub struct Scene {
    /// The stub itself, or a mirror of what the API server has.
    pub server: ApiServer,
    pub kubeconfig: PathBuf,
    pub saved: Saved,
    /// Requests until now, if the calls are not all of them.
    requests: Option<Arc<AtomicUsize>>,
    lab: Option<Client>,
    /// The API server of the lab, and its CPU time for the set-up (s).
    pub api_server: Option<(Process, f64)>,
}

impl Scene {
    /// Fills the cluster and lets its runs play.
    pub async fn open(
        on: ControlPlane,
        folder: &Path,
        hardware: &Hardware,
        speedup: f64,
        watched: Arc<Mutex<Watched>>,
    ) -> Outcome<Self> {
        let server = ApiServer::new();
        server.keep_changes(match on {
            ControlPlane::Stub => CHANGES,
            // A mirror, which nothing watches.
            ControlPlane::Lab => CHANGES / 10,
        });
        server.install_dynamo(&["v1alpha1", "v1beta1"], Some("1.4.2"));
        let runs = Runs::new(&server, hardware, speedup);
        let saved = runs.saved();
        if on == ControlPlane::Lab {
            let (client, kubeconfig) = lab::open(folder, &server, hardware, runs, watched).await?;
            let api_server = Process::api_server()?;
            let of_set_up = api_server.cpu_seconds().unwrap_or_default();
            return Ok(Self {
                server,
                kubeconfig,
                saved,
                requests: None,
                lab: Some(client),
                api_server: Some((api_server, of_set_up)),
            });
        }
        install(&server, hardware);
        let cluster = Cluster::around(server.clone());
        let address = cluster.serve(Resting::of(hardware.nodes, hardware.nodes)).await?;
        let of_nodes = hardware.clone();
        cluster.live(Some(Box::new(runs)), move |server| {
            let calls = server.take_calls();
            for doomed in lock(&watched).step(server, calls, &of_nodes) {
                server.delete(doomed.plural, doomed.namespace, &doomed.name);
            }
        });
        Ok(Self {
            kubeconfig: kubeconfig(folder, &address)?,
            server,
            saved,
            requests: Some(cluster.requests),
            lab: None,
            api_server: None,
        })
    }

    /// All requests until now.
    pub fn requests(&self, calls: &Calls) -> usize {
        self.requests
            .as_ref()
            .map_or_else(|| calls.total(), |all| all.load(Ordering::Relaxed))
    }

    pub async fn delete(&self, doomed: &Doomed) -> Outcome<()> {
        match &self.lab {
            None => self.server.delete(doomed.plural, doomed.namespace, &doomed.name),
            Some(client) => delete(client, doomed).await?,
        }
        Ok(())
    }
}

/// Deletes an object of a cluster. Gone is gone.
pub async fn delete(client: &Client, doomed: &Doomed) -> Outcome<()> {
    let (version, kind) = match doomed.plural {
        "nodes" => ("v1", "Node"),
        "resourceclaims" => ("resource.k8s.io/v1", "ResourceClaim"),
        _ => ("perfvalidation.dev/v1alpha1", "PerfValidationPolicy"),
    };
    let namespace = (!doomed.namespace.is_empty()).then_some(doomed.namespace);
    let objects = api(client, (version, kind, doomed.plural, namespace));
    match objects.delete(&doomed.name, &DeleteParams::default()).await {
        Err(kube::Error::Api(refusal)) if refusal.is_not_found() => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// Puts the policy, all nodes with their GPUs, and the claims of others.
fn install(server: &ApiServer, hardware: &Hardware) {
    server.put(serve::class());
    for index in 0..hardware.nodes {
        server.put(hardware::node(index));
        server.put(hardware::slice(index));
    }
    for (index, _) in hardware.busy() {
        server.put(hardware::claim(index));
    }
    server.put(policy(hardware.nodes));
}
