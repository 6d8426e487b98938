//! A policy gives its nodes a verdict. Its validations are deleted with it.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use perfval_api::fleet::{NodePerformance, PerfBaseline, PerfValidationPolicy};
use perfval_api::meta::DUE_REASON;
use perfval_api::{PerfValidation, Verdict};
use perfval_e2e::{Gpus, Validation, eventually, quick};
use serde_json::json;

use crate::ready;

/// Longest wait for a step of the operator: it looks at the policies every ten seconds.
const STEP: Duration = Duration::from_mins(2);

#[tokio::test]
#[ignore = "needs the lab: just e2e"]
async fn a_policy_measures_its_node_and_records_it() {
    let (lab, _operator) = ready().await;
    // All of them are cluster-scoped, and a test that failed before may have left some.
    let forget = ["delete", "perfpol,nodeperf,perfbase", "--all", "--timeout=120s"];
    lab.kubectl(&forget).await;
    let namespace = lab.namespace("e2e-policy").await;
    let policies: Api<PerfValidationPolicy> = Api::all(lab.client.clone());
    let nodes: Api<NodePerformance> = Api::all(lab.client.clone());
    let baselines: Api<PerfBaseline> = Api::all(lab.client.clone());
    let validations: Api<PerfValidation> = Api::namespaced(lab.client.clone(), &namespace);
    let mut template = quick("template", &namespace);
    // Of two GPUs one may be slower by the noise of the lab. Then a confirmation is due.
    template["spec"]["placement"]["maxGPUs"] = json!(1);
    let policy: PerfValidationPolicy = serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "metadata": {"name": "every-node"},
        "spec": {
            "nodeSelector": {}, "budgets": [{"nodes": 1}],
            "validationTemplate": {"metadata": {"namespace": namespace}, "spec": template["spec"]},
        },
    }))
    .expect("a policy");
    policies.create(&PostParams::default(), &policy).await.expect("create");

    let children = || async {
        let list = validations.list(&ListParams::default()).await;
        list.map_err(|error| error.to_string()).map(|list| list.items)
    };
    let child = eventually("a validation of the policy", STEP, || async {
        children().await?.pop().ok_or_else(|| "none yet".to_owned())
    })
    .await;
    let run = Validation::existing(&lab, &namespace, &child.name_any());
    let status = run.ends(Verdict::Passed).await;
    run.left_nothing().await;
    let placement = status.placement.expect("a placement");

    let recorded = eventually("the measurement of the node", STEP, || async {
        let found = nodes.get(&placement.node).await.map_err(|error| error.to_string())?;
        let status = found.status.ok_or("no status yet")?;
        let is_new = status.validation.uid == child.uid().unwrap_or_default();
        is_new.then_some(status).ok_or_else(|| "an earlier one".to_owned())
    })
    .await;
    assert_eq!(recorded.verdict, Verdict::Passed);
    assert_eq!(recorded.validation.policy.as_deref(), Some("every-node"));
    let measured: BTreeSet<&str> = recorded.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
    let used = placement.devices.iter().map(String::as_str);
    assert!(measured.is_superset(&used.collect()), "{recorded:?}");

    let status = eventually("a fresh node", STEP, || async {
        let found = policies.get("every-node").await.map_err(|error| error.to_string())?;
        let status = found.status.ok_or("no status yet")?;
        let has_baseline = status.environments.iter().any(|found| found.baseline.is_some());
        let is_fresh = status.fresh_percent == Some(100) && has_baseline;
        is_fresh.then_some(status.clone()).ok_or(format!("{status:?}"))
    })
    .await;
    assert_eq!(status.nodes.map(|nodes| (nodes.selected, nodes.passed)), Some((1, 1)));
    let environments = status.environments.iter();
    let environments: Vec<_> = environments.map(|found| (Some(&found.digest), found.nodes)).collect();
    assert_eq!(environments, [(recorded.environment.as_ref(), 1)]);
    let baseline = status.environments[0].baseline.as_deref().expect("a baseline");
    let learned = eventually("a status of the baseline", STEP, || async {
        let found = baselines.get(baseline).await.map_err(|error| error.to_string())?;
        let conditions = found.status.ok_or("no status yet")?.conditions;
        let learned = conditions.into_iter().find(|condition| condition.type_ == "Learned");
        learned.ok_or_else(|| "not learned yet".to_owned())
    })
    .await;
    assert_eq!(
        (learned.status.as_str(), learned.reason.as_str()),
        ("False", "TooFewNodes")
    );
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
    let ready = ready.map(|ready| (ready.status.as_str(), ready.message.as_str()));
    assert_eq!(ready, Some(("True", "1 of 1 nodes have a fresh verdict.")));
    let children_of_node = children().await.expect("a list");
    let reasons: Vec<_> = children_of_node
        .iter()
        .map(|child| child.annotations().get(DUE_REASON))
        .collect();
    assert_eq!(reasons, [Some(&"NeverMeasured".to_owned())], "a fresh node is not due");

    policies
        .delete("every-node", &DeleteParams::default())
        .await
        .expect("delete");
    eventually("its validations are gone", STEP, || async {
        match children().await?.first() {
            None => Ok(()),
            Some(left) => Err(left.name_any()),
        }
    })
    .await;
    run.left_nothing().await;
    assert_eq!(Gpus::count(&lab).await.free(), 8);
    // Runs without a policy would not change the measurement for two weeks.
    lab.kubectl(&forget).await;
}
