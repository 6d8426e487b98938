//! One cluster after the other through a few namespaces of a real API server, several at a time.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Config};
use perfval_cluster::EndpointAccess;
use serde_json::json;
use tokio::sync::{Mutex, RwLock, mpsc};

use super::ask::ask;
use super::compare::{Judged, choice, with_scheduler, without_scheduler};
use super::kinds::Kind;
use super::schedule::schedule;
use super::write::{erase, until, write};
use super::{CLUSTER_LABEL, Cluster};

/// A connection to the lab, and namespaces to work in.
pub struct Session {
    client: Client,
    operator: perfval_cluster::Cluster,
    free: Mutex<mpsc::UnboundedReceiver<String>>,
    give_back: mpsc::UnboundedSender<String>,
    judged: AtomicUsize,
    /// Held by every cluster that is there, and alone by one that bears on all of them.
    there: RwLock<()>,
}

impl Session {
    /// Connects to the cluster of `KUBECONFIG` and makes that many namespaces.
    ///
    /// # Errors
    /// If there is no cluster.
    pub async fn open(parallel: usize) -> Result<Self, Box<dyn Error>> {
        let config = Config::infer().await.map_err(kube::Error::InferConfig)?;
        let client = Client::try_from(config)?;
        let (operator, _) = perfval_cluster::Cluster::new(
            client.clone(),
            client.clone(),
            EndpointAccess::ServiceProxy,
            "oracle".to_owned(),
        );
        let (give_back, free) = mpsc::unbounded_channel();
        for number in 0..parallel {
            let name = format!("oracle-{number}");
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace",
                // Else claims with admin access are refused.
                "metadata": { "name": name, "labels": { "resource.kubernetes.io/admin-access": "true" } },
            });
            let apply = PatchParams::apply("oracle").force();
            Kind::named("Namespace")
                .api(&client, "")
                .patch(&name, &apply, &Patch::Apply(&namespace))
                .await?;
            service_account(&client, &name).await?;
            give_back.send(name).ok();
        }
        Ok(Self {
            client,
            operator,
            free: Mutex::new(free),
            give_back,
            judged: AtomicUsize::default(),
            there: RwLock::default(),
        })
    }

    /// Writes a cluster, compares, and takes everything away again. Waits for a free namespace.
    ///
    /// # Errors
    /// If the API server refuses an object, or controllers do not settle in time.
    pub async fn judge(&self, cluster: &Cluster) -> Result<Vec<Judged>, String> {
        let _there = if cluster.alone {
            (None, Some(self.there.write().await))
        } else {
            (Some(self.there.read().await), None)
        };
        let namespace = self.free.lock().await.recv().await.ok_or("no namespace is left")?;
        let fresh = format!("{}{}z", cluster.id, self.judged.fetch_add(1, Ordering::Relaxed));
        let judged = self.judge_in(&namespace, cluster, &fresh).await;
        let erased = erase(&self.client, &namespace, &fresh).await;
        self.give_back.send(namespace).ok();
        let judged = judged.map_err(|error| format!("seed {}: {error}", cluster.seed))?;
        erased?;
        Ok(judged
            .into_iter()
            .map(|judged| judged.renamed(&fresh, &cluster.id))
            .collect())
    }

    async fn judge_in(&self, namespace: &str, cluster: &Cluster, id: &str) -> Result<Vec<Judged>, Box<dyn Error>> {
        let cluster = &cluster.renamed(id)?;
        write(&self.client, namespace, cluster).await?;
        let answers = ask(&self.operator, namespace, cluster).await?;
        let mut judged = Vec::new();
        let mut to_schedule = Vec::new();
        for asked in &answers.nodes {
            match without_scheduler(asked) {
                Some(outcome) => judged.push(Judged::new(asked, outcome)),
                None => to_schedule.push(asked),
            }
        }
        if cluster.shared {
            // Workers on one node take devices from the others: only the chosen one can be tried.
            let chosen = answers.chosen.as_ref().map(|plan| plan.node.clone());
            let best = to_schedule
                .iter()
                .position(|asked| Some(&asked.probe.node) == chosen.as_ref());
            to_schedule = to_schedule.into_iter().skip(best.unwrap_or_default()).take(1).collect();
        }
        let scheduled = schedule(&self.client, namespace, &to_schedule).await?;
        let compared = to_schedule.iter().zip(&scheduled);
        judged.extend(compared.map(|(asked, scheduled)| Judged::new(asked, with_scheduler(asked, scheduled))));
        judged.extend(choice(&answers));
        Ok(judged)
    }

    /// Takes away what an earlier session left behind.
    ///
    /// # Errors
    /// If something stays.
    pub async fn sweep(&self) -> Result<(), Box<dyn Error>> {
        let nodes = Kind::named("Node").api(&self.client, "");
        let left = nodes
            .list_metadata(&ListParams::default().labels(CLUSTER_LABEL))
            .await?;
        let ids: BTreeSet<String> = left
            .iter()
            .filter_map(|node| node.metadata.labels.as_ref()?.get(CLUSTER_LABEL).cloned())
            .collect();
        let mut free = self.free.lock().await;
        let mut namespaces = Vec::new();
        while let Ok(namespace) = free.try_recv() {
            erase(&self.client, &namespace, "none").await?;
            namespaces.push(namespace);
        }
        for id in ids {
            erase(&self.client, &namespaces[0], &id).await?;
        }
        for namespace in namespaces {
            self.give_back.send(namespace).ok();
        }
        Ok(())
    }
}

/// Pods are refused until the namespace has its service account.
async fn service_account(client: &Client, namespace: &str) -> Result<(), String> {
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    until("the default service account exists", || async {
        api.get("default").await.map(drop).map_err(|error| error.to_string())
    })
    .await
}
