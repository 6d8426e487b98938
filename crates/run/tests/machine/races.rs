//! GPUs that others take between plan and start, and GPUs that are not what the plan says.

use k8s_openapi::api::core::v1::PodResourceClaimStatus;
use perfval_api::{Phase, Verdict, Word};
use perfval_run::observed::Need;
use perfval_run::obstacle::Obstacle;
use perfval_run::{Effect, Observed, Run, machine, names};
use perfval_sizing::Seen;
use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, PodBuilder};
use serde_json::json;

use super::moments::{moved, partly_created};
use super::queue::holder;
use super::story::Story;

/// A run whose workers were just refused by the scheduler.
fn refused() -> Story {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    story.unschedulable = true;
    story.pods_age = 3;
    story
}

fn counts_gpus(story: &Story) -> bool {
    story.needs().contains(&Need::Inventory)
}

#[test]
fn a_gpu_that_another_took_is_missed_within_two_looks_and_its_holder_named() {
    let mut story = refused();
    story.free = 1;
    assert!(
        !counts_gpus(&story),
        "claims of the whole cluster are not listed in every pass"
    );
    story.step();
    story.assert_at(Phase::WaitingForReady, "Unschedulable");
    story.step();
    story.assert_at(Phase::Sizing, "LostRace");
    story.assert_message("other/held has gpu-1");
    let names_the_holder =
        |notice: &perfval_run::Event| notice.reason == Word::LostRace && notice.note.contains("other/held has gpu-1");
    assert!(
        story
            .log
            .last()
            .is_some_and(|decision| decision.events.iter().any(names_the_holder))
    );
    assert_eq!(story.status().state.resizes, 1);
}

#[test]
fn a_race_lost_again_and_again_ends_the_run_with_the_name_of_the_winner() {
    let mut story = Story::new();
    for lost in 0..=3 {
        story.unschedulable = false;
        story.free = 8;
        story.until(Phase::WaitingForReady);
        story.unschedulable = true;
        story.pods_age = 3;
        story.free = 1;
        assert_eq!(story.status().state.resizes, lost);
        story.steps(2);
    }
    story.assert_error("LostRace");
    story.assert_message("other/held");
}

#[test]
fn a_refusal_while_gpus_are_free_gets_time() {
    let mut story = refused();
    for _ in 0..5 {
        story.step();
        assert_eq!(
            story.phase(),
            Some(Phase::WaitingForReady),
            "GPUs are free: {}",
            story.reason()
        );
    }
    // The scheduler came round; it does not look any further.
    story.unschedulable = false;
    story.until(Phase::Benchmarking);
    assert_eq!(story.status().state.resizes, 0);
}

#[test]
fn a_worker_that_got_its_gpu_while_it_was_looked_at_lost_nothing() {
    let mut story = refused();
    story.free = 2;
    story.step();
    let run = Run::new(&story.object, &story.settings);
    let mut seen = story.observe(&story.needs());
    // Both are still refused in the list of pods, and served in the newer list of claims.
    let pods = seen
        .pods
        .present()
        .cloned()
        .unwrap_or_default()
        .into_iter()
        .map(|mut pod| {
            let status = pod.status.get_or_insert_default();
            status.resource_claim_statuses = Some(vec![PodResourceClaimStatus {
                name: "gpu".into(),
                resource_claim_name: pod.metadata.name.clone(),
            }]);
            pod.metadata.namespace = Some("other".into());
            pod
        });
    seen.pods = Seen::Present(pods.collect());
    let of_others = || ClaimBuilder::named("held").holds("n1", "gpu-0");
    let given = |name: &str, gpu: &str| ClaimBuilder::named(name).holds("n1", gpu);
    let cluster = Cluster::of_gpus(3).claim(of_others());
    seen.inventory = Seen::Present(
        cluster
            .claim(given("w0", "gpu-1"))
            .claim(given("w1", "gpu-2"))
            .inventory(),
    );
    let phase = |seen: &Observed| machine::decide(&run, seen, story.now).status.phase;
    assert_eq!(phase(&seen), Some(Phase::WaitingForReady));

    let cluster = Cluster::of_gpus(3).claim(of_others().holds("n1", "gpu-2"));
    seen.inventory = Seen::Present(cluster.inventory());
    assert_eq!(phase(&seen), Some(Phase::Sizing), "one of two is really left without");
}

/// A run on two of eight GPUs of a device plugin; pods of others have the other six.
fn refused_by_plugin() -> Story {
    let mut story = Story::with(json!({"placement": {"allocation": "DevicePlugin"}}));
    story.plugin_pods = Some(6);
    story.until(Phase::WaitingForReady);
    (story.unschedulable, story.pods_age) = (true, 3);
    story
}

#[test]
fn a_pod_that_took_a_gpu_of_a_device_plugin_is_named() {
    let mut story = refused_by_plugin();
    story.plugin_pods = Some(7);
    story.steps(2);
    story.assert_at(Phase::Sizing, "LostRace");
    story.assert_message("other/train-0 has 1");
}

#[test]
fn pods_that_were_there_at_planning_took_no_gpu_that_turned_unhealthy() {
    let mut story = refused_by_plugin();
    story.plugin_faulty = 1;
    story.steps(3);
    story.assert_at(Phase::WaitingForReady, "Unschedulable");
    for _ in 0..10 {
        if story.phase() == Some(Phase::WaitingForReady) {
            story.looks(1, 5);
            assert!(!story.message().contains("train-"), "{}", story.message());
        }
    }
    assert_eq!(story.phase(), Some(Phase::Sizing));
    story.assert_message("cannot allocate all claims");
}

/// A run whose second worker has no pod.
fn lacks_worker() -> Story {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    (story.workers_ready, story.around.lacks_worker) = (false, true);
    story
}

const NO_DEVICE: &str = "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. \
    Requested: 1, Available: 0, which is unexpected";

#[test]
fn workers_that_a_kubelet_rejects_again_and_again_send_the_run_back_with_its_words() {
    let topology = "Pod was rejected: Resources cannot be allocated with Topology locality";
    let cases = [
        ("UnexpectedAdmissionError", NO_DEVICE, Obstacle::LostRace),
        ("TopologyAffinityError", topology, Obstacle::Unschedulable),
    ];
    for (reason, message, obstacle) in cases {
        let mut story = lacks_worker();
        for _ in 0..12 {
            if story.phase() == Some(Phase::WaitingForReady) {
                story.around.rejected.push((story.now, reason, message));
                story.outage(4).step();
            }
        }
        assert_eq!(story.phase(), Some(Phase::Sizing), "{}", story.message());
        story.assert_message(message.trim_start_matches("Pod was rejected: "));
        let mut found = story.status().diagnosis.into_iter();
        assert!(
            found.any(|finding| Obstacle::from_finding(&finding) == Some(obstacle)),
            "{reason}"
        );
    }
}

#[test]
fn a_rejected_worker_is_named_until_another_one_is_admitted() {
    let mut story = lacks_worker();
    story
        .around
        .rejected
        .push((story.now, "UnexpectedAdmissionError", NO_DEVICE));
    story.looks(10, 5);
    story.assert_at(Phase::WaitingForReady, "LostRace");
    story.assert_message("the kubelet of n1 rejects pods of ReplicaSet pv-worker (UnexpectedAdmissionError)");
    story.around.lacks_worker = false;
    story.step();
    story.assert_at(Phase::WaitingForReady, "WorkloadNotReady");
    story.workers_ready = true;
    story.assert_passes();
    assert_eq!(story.status().state.resizes, 0);
}

#[test]
fn what_cannot_be_read_is_no_lost_race() {
    let mut story = refused();
    story.free = 1;
    story.step();
    let run = Run::new(&story.object, &story.settings);
    assert!(counts_gpus(&story));
    for unread in [Seen::NotAsked, Seen::Unknown("403".into())] {
        let mut seen = story.observe(&story.needs());
        seen.inventory = unread;
        let decision = machine::decide(&run, &seen, story.now);
        assert_eq!(decision.status.phase, Some(Phase::WaitingForReady));
    }
}

#[test]
fn the_gpus_are_confirmed_once_before_the_deployment_counts_as_ready() {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    let asks = story.step();
    assert!(matches!(asks.effects.as_slice(), [Effect::Probe(_)]));
    assert!(!counts_gpus(&story), "the endpoint answers first");
    story.until(Phase::Benchmarking);
    assert!(!counts_gpus(&story), "and not again with every probe");
    let status = story.status();
    assert_eq!(status.placement.expect("a plan").devices, ["GPU-0", "GPU-1"]);
    let devices: Vec<_> = (status.state.plan.device_ids)
        .iter()
        .map(|device| (device.name.as_str(), device.uuid.as_deref()))
        .collect();
    assert_eq!(devices, [("gpu-0", Some("GPU-0")), ("gpu-1", Some("GPU-1"))]);
}

#[test]
fn a_gpu_that_another_holds_too_is_not_measured() {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    story.shared_gpu = true;
    story.assert_ends_in("PlacementBroken");
    story.assert_message("gpu-1");
    story.assert_message("other/second");
}

#[test]
fn a_watch_that_is_behind_ends_no_run() {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    (story.shared_gpu, story.watch_is_behind) = (true, true);
    story.assert_passes();
}

#[test]
fn a_watch_without_the_claims_of_the_workers_confirms_nothing() {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    story.watch_lacks_claims = true;
    let checks = |story: &Story| story.status().state.gpu_check.is_some();
    for _ in 0..20 {
        if !checks(&story) {
            story.step();
        }
    }
    assert!(checks(&story) && story.status().phase == Some(Phase::WaitingForReady));
    story.assert_message("is not yet among those that hold GPUs");
    story.until(Phase::Completed);
    assert_eq!(story.verdict(), Some(Verdict::Passed), "new lists show them");
}

#[test]
fn no_trial_starts_on_the_wrong_node() {
    let mut story = Story::with(json!({"trials": {"rule": "All", "max": 3}}));
    story.until_between_trials();
    story.wrong_node = true;
    story.assert_ends_in("PlacementBroken");
}

#[test]
fn a_worker_that_came_to_another_gpu_is_confirmed_before_the_next_trial_and_the_run_goes_on() {
    let mut story = moved();
    story.step();
    story.assert_at(Phase::WaitingForReady, "Running");
    story.assert_message("w1");
    story.assert_message("gpu-1");
    assert!(counts_gpus(&story));
    story.until(Phase::Benchmarking);
    let trials = story.status().state.trials;
    assert!(
        trials.len() == 2 && trials[0].outcome.is_some(),
        "what was measured stays"
    );
    assert_eq!(story.status().state.plan.device_ids[1].name, "gpu-1");
    story.assert_passes();
}

#[test]
fn a_gpu_that_another_also_has_ends_the_run_with_the_measured_trials() {
    let mut story = moved();
    story.shared_gpu = true;
    story.assert_ends_in("PlacementBroken");
    assert_eq!(story.status().state.trials.len(), 1);
    assert!(story.saved.is_some());
}

#[test]
fn a_gpu_lost_between_trials_is_not_sized_again() {
    let mut story = moved();
    story.step();
    story.unschedulable = true;
    story.pods_age = 3;
    story.free = 1;
    story.until(Phase::Completed);
    story.assert_verdict(
        Some(Verdict::Error),
        "LostRace",
        "trials of two deployments are not trials of one",
    );
    assert!(story.saved.is_some());
}

#[test]
fn a_run_that_leaves_its_node_to_another_removes_what_it_has_created_for_it() {
    let mut story = partly_created();
    assert!(!story.children.is_empty());
    story.others = vec![holder("first", "n1", true)];
    story.step();
    assert_eq!(story.phase(), Some(Phase::Sizing));
    story.assert_message("got n1 at the same moment");
    story.others.clear();
    story.until(Phase::Deploying);
    assert!(story.children.is_empty(), "{:?}", story.children);
}

/// The watch of the pods may be behind the list of the run's pods, and a worker that ends is not ready.
#[test]
fn the_gpus_of_a_deleted_worker_are_not_lost() {
    let mut story = Story::with(json!({"placement": {"allocation": "DevicePlugin"}}));
    // That of all pods of the testkit.
    story.object.metadata.namespace = Some("other".into());
    story.plugin_pods = Some(0);
    story.until(Phase::WaitingForReady);
    (story.unschedulable, story.pods_age) = (true, 3);
    story.step();
    assert!(story.status().state.gpu_check.is_some());
    let phase_beside = |story: &Story, user: &str| {
        let node = NodeBuilder::named("n1").offers("nvidia.com/gpu", "8");
        let user = PodBuilder::on("n1", user).requests("nvidia.com/gpu", "8");
        let mut seen = story.observe(&story.needs());
        seen.inventory = Seen::Present(Cluster::of_gpus(8).node(node).pod(user).inventory());
        let run = Run::new(&story.object, &story.settings);
        machine::decide(&run, &seen, story.now).status.phase
    };
    let own = format!("{}-worker-old", names::deployment(&story.id()));
    assert_eq!(phase_beside(&story, &own), Some(Phase::WaitingForReady));
    assert_eq!(phase_beside(&story, "train"), Some(Phase::Sizing));
    story.leaving_worker = true;
    assert_eq!(phase_beside(&story, "train"), Some(Phase::WaitingForReady));
}
