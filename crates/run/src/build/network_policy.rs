use std::iter;

use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use perfval_api::meta::RUN_LABEL;

use super::meta::metadata;
use crate::names::dynamo::WORKER;
use crate::{Run, names};

/// Builds the policy that admits only pods of this run, and the operator's `rules`, to the pods of this run. Outgoing traffic
/// stays free: pods fetch models, read their peers from the API server, and read the DCGM exporter.
pub fn network_policy(run: &Run<'_>, rules: &[NetworkPolicyIngressRule]) -> NetworkPolicy {
    let pods = LabelSelector {
        match_labels: Some([(RUN_LABEL.to_owned(), run.id())].into()),
        match_expressions: None,
    };
    // Each other, on every port: workers answer the frontend on ports of their own choice.
    let each_other = NetworkPolicyIngressRule {
        from: Some(vec![NetworkPolicyPeer {
            pod_selector: Some(pods.clone()),
            ..NetworkPolicyPeer::default()
        }]),
        ports: None,
    };
    NetworkPolicy {
        metadata: metadata(run, names::deployment(&run.id()), WORKER),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(pods),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(iter::once(each_other).chain(rules.iter().cloned()).collect()),
            egress: None,
        }),
    }
}
