//! Runs among others: namespaces that are not theirs to use, and what they may learn of other namespaces.

use k8s_openapi::api::networking::v1::NetworkPolicyIngressRule;
use perfval_api::{Phase, Verdict, condition};
use perfval_run::observed::ChildKind;
use perfval_run::queue::Contender;
use perfval_run::{Decision, Effect, Settings};
use perfval_sizing::Seen;
use serde_json::json;

use super::story::Story;

/// Every word that a user could read.
fn readable(log: &[Decision]) -> String {
    let readable = |decision: &Decision| {
        let events: Vec<_> = decision.events.iter().map(|event| &event.note).collect();
        json!([decision.status, events]).to_string()
    };
    log.iter().map(readable).collect()
}

fn discreet(spec: serde_json::Value) -> Story {
    let mut story = Story::with(spec);
    story.settings.names_foreign_pods = false;
    story
}

#[test]
fn in_a_refused_namespace_nothing_is_created_and_the_remedy_is_reported() {
    let mut story = Story::new();
    story.object.metadata.namespace = Some("kube-system".into());
    story.assert_ends_in("Refused");
    let effects: Vec<&Effect> = story.log.iter().flat_map(|decision| &decision.effects).collect();
    assert!(effects.is_empty(), "{effects:?}");
    story.assert_message("kube-system");
    story.assert_message("--refused-namespaces");
    assert!(condition::is_true(&story.status(), condition::STALLED));

    story.settings.refused_namespaces.clear();
    story.object.metadata.annotations = Some([("perfvalidation.dev/rerun".to_owned(), "1".to_owned())].into());
    story.until(Phase::Pending);
    story.until(Phase::Completed);
    assert_eq!(story.verdict(), Some(Verdict::Passed), "allowed by now");
}

#[test]
fn a_run_waits_until_an_administrator_allows_its_namespace() {
    let mut story = Story::new();
    story.permission = Seen::Present(false);
    story.steps(5);
    assert_eq!(
        (story.phase(), story.verdict(), story.reason()),
        (Some(Phase::Pending), None, "Refused".to_owned())
    );
    story.assert_message("namespace perf yet");
    story.assert_message("kubectl perfval doctor -n perf");
    let effects: Vec<&Effect> = story.log.iter().flat_map(|decision| &decision.effects).collect();
    assert!(effects.is_empty(), "no finalizer either: {effects:?}");
    let contends = |story: &Story| {
        let object = &story.object;
        Contender::new(&object.metadata, &object.spec, &story.status(), true, story.now).is_some()
    };
    assert!(!contends(&story), "no other run waits for it");
    assert!(
        contends(Story::new().until(Phase::Pending)),
        "others wait for one that has just begun"
    );

    story.permission = Seen::Present(true);
    story.until(Phase::Completed);
    assert_eq!(story.verdict(), Some(Verdict::Passed), "without a rerun");
}

#[test]
fn a_run_has_a_network_policy_if_the_flag_is_set() {
    let policies = |story: &Story| {
        let children = story.children.iter();
        children
            .filter(|child| child.id.kind == ChildKind::NetworkPolicy)
            .count()
    };
    let mut open = Story::new();
    open.until(Phase::WaitingForReady);
    assert_eq!(policies(&open), 0);

    let mut story = Story::new();
    let rule = NetworkPolicyIngressRule::default();
    story.settings.run_network_policy = Some(vec![rule.clone()]);
    story.until(Phase::WaitingForReady);
    let created = story.log.iter().flat_map(|decision| &decision.effects);
    let created: Vec<_> = created
        .filter(|effect| matches!(effect, Effect::CreateNetworkPolicy(_) | Effect::CreateDeployment(_)))
        .collect();
    assert!(
        matches!(
            created[..],
            [Effect::CreateNetworkPolicy(_), Effect::CreateDeployment(_)]
        ),
        "no deployment before its policy"
    );
    let [Effect::CreateNetworkPolicy(policy), _] = created[..] else {
        unreachable!("as matched above")
    };
    let ingress = policy
        .spec
        .as_ref()
        .and_then(|spec| spec.ingress.as_ref())
        .expect("rules");
    assert_eq!(ingress[1..], [rule], "besides pods of the run");
    story.until(Phase::Completed);
    assert_eq!((story.verdict(), policies(&story)), (Some(Verdict::Passed), 0));
}

#[test]
fn a_namespace_without_permission_in_time_ends_the_run() {
    let mut story = Story::new();
    story.permission = Seen::Present(false);
    story.until(Phase::Pending).step();
    story.wait(4000);
    story.assert_ends_in("Refused");
    story.assert_message("may create nothing in namespace perf");
    story.assert_message("timeouts.prerequisites");
    assert!(condition::is_true(&story.status(), condition::STALLED));
}

#[test]
fn whether_a_namespace_is_allowed_is_not_guessed() {
    let mut story = Story::new();
    story.permission = Seen::Unknown("no result within 10 s".into());
    story.until(Phase::Pending).step();
    story.wait(4000);
    story.assert_ends_in("CallFailed");
    story.assert_message("no result within 10 s");
    story.assert_message("timeouts.prerequisites");
}

#[test]
fn a_load_generator_that_the_operator_does_not_permit_is_refused_before_anything_is_created() {
    let mut story = Story::with(json!({"benchmark": {"image": "registry.example/team-of-others/aiperf:0.13.0"}}));
    story.settings.benchmark_images = vec!["registry.example/team".into()];
    story.assert_ends_in("Refused");
    let effects: Vec<&Effect> = story.log.iter().flat_map(|decision| &decision.effects).collect();
    assert_eq!(effects, [&Effect::EnsureFinalizer]);
    story.assert_message("team-of-others/aiperf:0.13.0");
    story.assert_message("--benchmark-images");
    story.assert_message("spec.benchmark.image");
}

#[test]
fn a_path_permits_images_below_it_and_the_operators_own_needs_none() {
    let settings = Settings {
        aiperf_image: Some("ghcr.io/own/aiperf:0.13.0".into()),
        benchmark_images: [
            "registry.example/team/",
            "localhost:5000/aiperf",
            "quay.io/a/aiperf:1",
            "mirror.example",
        ]
        .map(str::to_owned)
        .into(),
        ..Settings::default()
    };
    for image in [
        "ghcr.io/own/aiperf:0.13.0",
        "registry.example/team/aiperf:0.13.0",
        "localhost:5000/aiperf:1",
        "localhost:5000/aiperf@sha256:00",
        "quay.io/a/aiperf:1",
        "mirror.example/any/aiperf:1",
    ] {
        assert!(settings.permits_benchmark(image), "{image}");
    }
    for image in [
        "ghcr.io/own/aiperf:0.12.0",
        "registry.example/team-of-others/aiperf:0.13.0",
        "localhost:5000/aiperf-of-others:1",
        "quay.io/a/aiperf:10",
        "mirror.example:5000/aiperf:1",
        "docker.io/registry.example/team/aiperf:1",
    ] {
        assert!(!settings.permits_benchmark(image), "{image}");
    }
}

#[test]
fn a_run_that_is_under_way_is_not_ended_by_a_new_refusal() {
    let mut story = Story::new();
    story.until(Phase::Deploying);
    story.settings.refused_namespaces.push("perf".into());
    story.settings.benchmark_images.clear();
    story.assert_passes();
}

#[test]
fn a_full_node_does_not_reveal_its_holders() {
    let mut story = discreet(json!({}));
    story.free = 0;
    story.until(Phase::Sizing).step();
    story.assert_message("8 in use by a claim of another namespace");
    assert!(!readable(&story.log).contains("other/"));
}

#[test]
fn a_queue_does_not_reveal_the_runs_of_other_namespaces() {
    let contender = |namespace: &str, name: &str| {
        let mut other = Story::new();
        other.object.metadata.namespace = Some(namespace.into());
        other.object.metadata.name = Some(name.into());
        other.object.metadata.uid = Some(name.into());
        other.until(Phase::WaitingForReady);
        let (metadata, spec) = (&other.object.metadata, &other.object.spec);
        Contender::new(metadata, spec, &other.status(), true, other.now).expect("it holds the node")
    };
    let mut story = discreet(json!({}));
    story.others = vec![contender("other", "secret-project"), contender("perf", "own")];
    story.until(Phase::Sizing).step();
    assert_eq!(story.reason(), "InLine");
    let message = story.message();
    assert!(message.contains("perf/own, a run of another namespace"), "{message}");
    assert!(!readable(&story.log).contains("secret-project"), "{message}");
}

#[test]
fn the_winner_of_a_race_is_not_named() {
    let mut story = discreet(json!({}));
    story.until(Phase::WaitingForReady);
    (story.unschedulable, story.pods_age, story.free) = (true, 3, 1);
    story.steps(2);
    assert_eq!(story.reason(), "LostRace");
    story.assert_message("a claim of another namespace has gpu-1;");
    assert!(!readable(&story.log).contains("other/"));
}

#[test]
fn a_gpu_that_two_hold_does_not_reveal_the_other() {
    let mut story = discreet(json!({}));
    story.shared_gpu = true;
    story.steps(80);
    let readable = readable(&story.log);
    assert!(readable.contains("of another namespace"), "{readable}");
    assert!(!readable.contains("other/"), "{readable}");
}

#[test]
fn neighbours_are_known_again_without_their_names() {
    let mut story = discreet(json!({"placement": {"allocation": "DRA"}}));
    story.plugin_pods = Some(2);
    story.until(Phase::Deploying);
    let neighbours = story.status().state.plan.neighbours;
    assert_eq!(neighbours.map(|all| all.len()), Some(2));
    story.assert_passes();
    assert!(!readable(&story.log).contains("other/"));
}

#[test]
fn who_comes_the_other_way_is_not_named() {
    let mut story = discreet(json!({"placement": {"allocation": "DRA"}}));
    story.plugin_pods = Some(0);
    story.until(Phase::Benchmarking);
    story.plugin_pods = Some(1);
    story.until(Phase::Completed);
    story.assert_message("a pod of another namespace got nvidia.com/gpu of n1");
    assert!(!readable(&story.log).contains("other/"));
}
