//! The workers of a run while a trial loads them: when to strike, and whom.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use perfval_api::WorkerPod;
use perfval_e2e::{Lab, eventually};
use perfval_run::Observed;
use perfval_run::readiness::{self, Pods};
use perfval_verdict::dynamo::worker_metrics;

use crate::fault::Fault;

/// Longest a trial may take to come under load: AIPerf starts in 6 s on two idle cores.
const UNDER_LOAD: Duration = Duration::from_mins(2);
/// Time for which a worker stands still.
const FREEZE: Duration = Duration::from_secs(10);

/// The workers of a run, as the operator sees them.
///
/// # Errors
/// If the cluster cannot be read.
pub async fn workers(lab: &Lab, namespace: &str, run_id: &str) -> Result<Vec<WorkerPod>, kube::Error> {
    let everything = ListParams::default();
    let pods = Api::<Pod>::namespaced(lab.client.clone(), namespace)
        .list(&everything)
        .await?;
    let claims = Api::<ResourceClaim>::namespaced(lab.client.clone(), namespace)
        .list(&everything)
        .await?;
    Ok(readiness::workers(
        &Pods::new(&pods.items, run_id),
        &claims.items,
        &[],
        &Observed::default().endings,
    ))
}

/// Waits until a trial is well under load, past its warm-up, and strikes. The pod that was struck.
///
/// # Panics
/// If the load never comes, or the lab refuses.
pub async fn strike(lab: &Lab, namespace: &str, run_id: &str, fault: Fault, victim: usize, finished: i64) -> String {
    let began = requests(lab, namespace, run_id).await.unwrap_or(0);
    eventually("the workers are under load", UNDER_LOAD, || async {
        let now = requests(lab, namespace, run_id).await?;
        if now - began >= finished {
            Ok(())
        } else {
            Err(format!("{} of {finished} requests", now - began))
        }
    })
    .await;
    let all = workers(lab, namespace, run_id).await.expect("the workers");
    let pod = all[victim % all.len()].pod.clone();
    let name = format!("{namespace}/{pod}");
    match fault {
        Fault::FrozenTenSeconds => {
            lab.run(&["fault", "freeze", &name]).await;
            tokio::time::sleep(FREEZE).await;
            lab.run(&["fault", "thaw", &name]).await;
        }
        Fault::FrozenForGood => drop(lab.run(&["fault", "freeze", &name]).await),
        Fault::Dead => drop(lab.run(&["fault", "kill", &name]).await),
        Fault::FrontendBound => throttle_frontend(lab, namespace, run_id).await,
        Fault::Restart => drop(
            lab.kubectl(&["delete", "pod", &pod, "-n", namespace, "--wait=false"])
                .await,
        ),
        _ => {}
    }
    pod
}

/// A tenth of a CPU still made 303 of 392 tokens/s, well within the gates.
async fn throttle_frontend(lab: &Lab, namespace: &str, run_id: &str) {
    let pods = Api::<Pod>::namespaced(lab.client.clone(), namespace);
    let pods = pods.list(&ListParams::default()).await.expect("the pods");
    for frontend in &Pods::new(&pods.items, run_id).frontends {
        let name = format!("{namespace}/{}", frontend.name_any());
        lab.run(&["fault", "throttle", &name, "0.03"]).await;
    }
}

/// Requests that all workers together have finished; one that does not answer counts none.
async fn requests(lab: &Lab, namespace: &str, run_id: &str) -> Result<i64, String> {
    let pods = Api::<Pod>::namespaced(lab.client.clone(), namespace)
        .list(&ListParams::default())
        .await
        .map_err(|error| error.to_string())?;
    let mut finished = 0;
    for pod in &Pods::new(&pods.items, run_id).workers {
        let path = format!(
            "/api/v1/namespaces/{namespace}/pods/{}:9090/proxy/metrics",
            pod.name_any()
        );
        let request = http::Request::get(path)
            .body(Vec::new())
            .map_err(|error| error.to_string())?;
        let answer = tokio::time::timeout(Duration::from_secs(2), lab.client.request_text(request)).await;
        let scraped = answer
            .ok()
            .and_then(Result::ok)
            .and_then(|text| worker_metrics::read(&text).ok());
        finished += scraped.map_or(0, |reading| reading.finished);
    }
    Ok(finished)
}
