//! The policy of a run, with the rules of the chart, applied to the pods that the operator makes.

use std::collections::BTreeMap;
use std::fs;

use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use perfval_chart::render::repository;
use serde_json::{Value, json};

use crate::objects;

const RUNS: &str = "perf";
const OPERATOR: &str = "perfvalidation-system";
const FRONTEND: i32 = 8000;
const WORKER: i32 = 9090;

type Labels = BTreeMap<String, String>;

/// Peer of a connection.
struct Pod {
    namespace: &'static str,
    labels: Labels,
}

fn labels(value: &Value) -> Labels {
    serde_json::from_value(value.clone()).expect("labels")
}

/// What the operator creates for a run: the golden file of `crates/run`.
fn golden() -> Value {
    let text = fs::read_to_string(repository().join("crates/run/tests/golden/typical.json")).expect("the golden file");
    serde_json::from_str(&text).expect("JSON")
}

/// Pods of one run by their component.
fn pods_of_a_run() -> BTreeMap<String, Pod> {
    let run = golden();
    let jobs = ["cache_job", "trial_job"].map(|name| &run[name]["spec"]["template"]);
    let components = run["deployment"]["spec"]["components"].as_array().expect("components");
    let templates = jobs
        .into_iter()
        .chain(components.iter().map(|component| &component["podTemplate"]));
    let pods = templates.map(|template| {
        let labels = labels(&template["metadata"]["labels"]);
        let namespace = RUNS;
        (
            labels["perfvalidation.dev/component"].clone(),
            Pod { namespace, labels },
        )
    });
    pods.collect()
}

/// Returns true if a selector matches labels.
fn matches(selector: &LabelSelector, labels: &Labels) -> bool {
    let equal = selector.match_labels.iter().flatten();
    let mut expressions = selector.match_expressions.iter().flatten();
    equal.into_iter().all(|(key, value)| labels.get(key) == Some(value))
        && expressions.all(|expression| {
            assert_eq!(expression.operator, "Exists");
            labels.contains_key(&expression.key)
        })
}

fn is_peer(peer: &NetworkPolicyPeer, pod: &Pod, policy: &str) -> bool {
    assert_eq!(peer.ip_block, None, "pods have no addresses here");
    let name = ("kubernetes.io/metadata.name".to_owned(), pod.namespace.to_owned());
    let in_namespace = match &peer.namespace_selector {
        Some(selector) => matches(selector, &Labels::from([name])),
        None => pod.namespace == policy,
    };
    in_namespace
        && peer
            .pod_selector
            .as_ref()
            .is_none_or(|selector| matches(selector, &pod.labels))
}

/// Returns true if the policy admits a connection to a port. A pod that it does not select is open.
fn admits(policy: &NetworkPolicy, from: &Pod, to: &Pod, port: i32) -> bool {
    let namespace = policy.metadata.namespace.as_deref().expect("a namespace");
    let spec = policy.spec.as_ref().expect("a spec");
    let selector = spec.pod_selector.as_ref().expect("a selector");
    if to.namespace != namespace || !matches(selector, &to.labels) {
        return true;
    }
    spec.ingress.iter().flatten().any(|rule| {
        let is_port = |known: &NetworkPolicyPort| match &known.port {
            None => true,
            Some(IntOrString::Int(known)) => *known == port,
            Some(IntOrString::String(name)) => panic!("ports have no names here: {name}"),
        };
        // A rule without ports is for all of them, and one without peers for everybody.
        let ports = rule.ports.as_deref().unwrap_or_default();
        let peers = rule.from.as_deref().unwrap_or_default();
        (ports.is_empty() || ports.iter().any(is_port))
            && (peers.is_empty() || peers.iter().any(|peer| is_peer(peer, from, namespace)))
    })
}

/// The policy of a run, under the operator of an installation.
fn policy(values: &Value) -> NetworkPolicy {
    let deployment = &objects(values)["Deployment perfvalidation-system/perfvalidation-operator"];
    let variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array();
    let rules = variables
        .into_iter()
        .flatten()
        .find(|variable| variable["name"] == "PERFVAL_RUN_NETWORK_POLICY")
        .expect("the operator has the rules");
    let rules: Vec<NetworkPolicyIngressRule> =
        serde_json::from_str(rules["value"].as_str().expect("text")).expect("ingress rules");
    let mut policy: NetworkPolicy =
        serde_json::from_value(golden()["network_policy"].clone()).expect("a NetworkPolicy");
    let ingress = policy.spec.as_mut().and_then(|spec| spec.ingress.as_mut());
    ingress.expect("pods of the run reach each other").extend(rules);
    policy
}

#[test]
fn only_pods_of_the_run_and_the_operator_reach_its_pods() {
    let values = json!({"runNetworkPolicy": {"enabled": true}});
    let policy = policy(&values);
    let run = pods_of_a_run();
    assert_eq!(
        run.keys().collect::<Vec<_>>(),
        ["benchmark", "frontend", "model-cache", "worker"]
    );
    for (from, to, port) in [
        ("benchmark", "frontend", FRONTEND),
        ("benchmark", "worker", WORKER),
        ("frontend", "worker", 34567),
        ("worker", "frontend", 34567),
    ] {
        assert!(admits(&policy, &run[from], &run[to], port), "{from} to {to}");
    }
    let deployment = &objects(&values)["Deployment perfvalidation-system/perfvalidation-operator"];
    let pod = |namespace, labels| Pod { namespace, labels };
    let template = labels(&deployment["spec"]["template"]["metadata"]["labels"]);
    let operator = pod(OPERATOR, template.clone());
    assert!(admits(&policy, &operator, &run["frontend"], FRONTEND));
    assert!(
        !admits(&policy, &operator, &run["worker"], WORKER),
        "the load generator reads the workers"
    );
    let of_run = run["benchmark"].labels.clone();
    let mut other_run = of_run.clone();
    other_run.insert("perfvalidation.dev/run".to_owned(), "0badcafe".to_owned());
    let strangers = [
        (
            "a pod of the namespace",
            pod(RUNS, Labels::from([("app".to_owned(), "web".to_owned())])),
        ),
        ("another run of the namespace", pod(RUNS, other_run)),
        (
            "a pod with this run's labels in another namespace",
            pod("other", of_run),
        ),
        ("a pod with the operator's labels", pod("other", template)),
    ];
    for (name, stranger) in &strangers {
        for to in run.values() {
            assert!(!admits(&policy, stranger, to, FRONTEND), "{name}");
        }
        assert!(
            admits(&policy, &run["worker"], stranger, 443),
            "{name} is no business of the policy"
        );
    }
}

#[test]
fn more_peers_are_a_value() {
    let prometheus = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}});
    let values = json!({"runNetworkPolicy": {"enabled": true, "from": [prometheus]}});
    let run = pods_of_a_run();
    let scraper = Pod {
        namespace: "monitoring",
        labels: Labels::new(),
    };
    assert!(admits(&policy(&values), &scraper, &run["worker"], WORKER));
}
