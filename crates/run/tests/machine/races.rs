//! GPUs that others take between plan and start, and GPUs that are not what the plan says.

use k8s_openapi::api::core::v1::PodResourceClaimStatus;
use perfval_api::{Phase, Verdict, Word};
use perfval_run::observed::Need;
use perfval_run::{Effect, Observed, Run, machine};
use perfval_sizing::Seen;
use perfval_testkit::inventory::{ClaimBuilder, Cluster};
use serde_json::json;

use super::moments::moved;
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
fn a_gpu_that_belongs_to_another_too_ends_the_run_between_trials_with_what_was_measured() {
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
