//! Workers that are lost while a run measures: it cannot be Passed, however fast its trials are.

use chrono::TimeDelta;
use perfval_api::{EndedBy, Phase, TrialOutcome, Verdict, WorkerLoss, WorkerPod};
use perfval_run::observed::{PodEvent, ProbeAnswer};
use perfval_sizing::Seen;
use perfval_verdict::node_cpu::NodeCpu;
use serde_json::json;

use super::story::{Showing, Story};

/// A run of several trials, all fast, in whose course `lose` happens: while trial 2 runs, or before it begins.
fn run(during: bool, lose: impl Fn(&mut Story)) -> Story {
    run_on(None, during, lose)
}

/// The same on a node whose CPUs are used like this.
fn run_on(node_cpu: Option<NodeCpu>, during: bool, lose: impl Fn(&mut Story)) -> Story {
    let mut story = Story::with(json!({"trials": {"rule": "All", "max": 3}}));
    story.node_cpu = node_cpu;
    if during {
        story.until_trial(2);
    } else {
        story.until_between_trials();
    }
    lose(&mut story);
    story.until(Phase::Completed);
    story
}

fn crash(story: &mut Story) {
    story.restarts = 1;
}

/// The Job of the open trial vanishes in the middle of its work.
fn lose_job(story: &mut Story) {
    story.showing = Showing::Hang;
    story.step();
    story.wait(20);
    story.step();
    (story.trial_job, story.showing) = (None, Showing::Fast);
}

/// After a reboot containerd says this of every container that it had.
fn reboot(story: &mut Story) {
    (story.restarts, story.ended) = (1, (255, "Unknown"));
}

fn replace(story: &mut Story) {
    story.replaced = true;
}

#[test]
fn a_worker_that_crashed_fails_a_run_whose_trials_pass() {
    for during in [true, false] {
        let story = run(during, crash);
        let status = story.status();
        story.assert_verdict(Some(Verdict::Failed), "WorkerCrashed", format!("during: {during}"));
        assert_eq!(status.state.trials[1].worker_loss, Some(WorkerLoss::Crashed));
        let expected = if during {
            TrialOutcome::Invalid
        } else {
            TrialOutcome::Pass
        };
        assert_eq!(
            status.state.trials[1].outcome,
            Some(expected),
            "only a trial that it happened in is void"
        );
        let losses = status
            .state
            .trials
            .iter()
            .filter(|trial| trial.worker_loss.is_some())
            .count();
        assert_eq!(losses, 1, "one crash is reported once");
        let message = status.message.unwrap_or_default();
        assert!(message.starts_with("WorkerCrashed: worker w0 restarted: "), "{message}");
        assert!(message.contains("exit code 139 (Error)"), "{message}");
    }
}

/// The milder verdict would belong to the more broken node.
#[test]
fn a_worker_that_crashed_and_does_not_come_back_fails_the_run() {
    for during in [true, false] {
        let story = run(during, |story| {
            crash(story);
            story.workers_ready = false;
            story.pod_waiting = Some("CrashLoopBackOff");
        });
        let message = story.message();
        story.assert_verdict(
            Some(Verdict::Failed),
            "WorkerCrashed",
            format!("during: {during}: {message}"),
        );
        assert!(message.starts_with("WorkerCrashed: worker w0 restarted: "), "{message}");
        assert!(message.contains("; then "), "{message}");
    }
}

#[test]
fn a_crash_counts_in_a_run_that_ends_between_trials_or_in_the_next_one() {
    // Its container hangs while it starts again.
    let hangs = run(false, |story| {
        crash(story);
        story.workers_ready = false;
        story.looks(120, 30);
    });
    // The trial after the crash never ends.
    let open = run(false, |story| {
        crash(story);
        story.until_trial(2);
        story.showing = Showing::Hang;
        story.looks(120, 30);
    });
    // Trial 1 is void, and the deployment has to become ready again.
    let starts_again = |with: fn(&mut Story)| {
        let mut story = Story::with(json!({"trials": {"rule": "All", "max": 3}}));
        story.showing = Showing::Starved;
        story.until(Phase::Benchmarking).until(Phase::WaitingForReady);
        crash(&mut story);
        with(&mut story);
        story.looks(120, 30).until(Phase::Completed);
        story
    };
    let expires = starts_again(|story| story.workers_ready = false);
    let loops = starts_again(|story| (story.workers_ready, story.pod_waiting) = (false, Some("CrashLoopBackOff")));
    let panics = starts_again(|story| {
        story.answers(ProbeAnswer::Refused(404, String::new()));
        story.frontend_log = Some("Unfold must not be polled after it returned");
    });
    let failed = starts_again(|story| story.deployment_failed = true);
    for (name, story) in [
        ("hangs", &hangs),
        ("open", &open),
        ("expires", &expires),
        ("loops", &loops),
        ("panics", &panics),
        ("failed", &failed),
    ] {
        let message = story.message();
        story.assert_verdict(Some(Verdict::Failed), "WorkerCrashed", format!("{name}: {message}"));
    }
}

#[test]
fn a_crash_on_gpus_that_others_may_use_does_not_fail_the_node() {
    for reason in ["MixedAllocation", "PlacementBroken"] {
        let spec = json!({"placement": {"allocation": "DRA"}, "trials": {"rule": "All", "max": 3}});
        let mut story = Story::with(spec);
        story.plugin_pods = Some(0);
        story.until_between_trials();
        crash(&mut story);
        if reason == "MixedAllocation" {
            story.plugin_pods = Some(1);
        } else {
            story.wrong_node = true;
        }
        story.assert_ends_in(reason);
    }
}

#[test]
fn a_worker_whose_pod_was_removed_leaves_a_run_inconclusive_whose_trials_pass() {
    for during in [true, false] {
        let story = run(during, replace);
        story.assert_verdict(
            Some(Verdict::Inconclusive),
            "WorkerRestarted",
            format!("during: {during}"),
        );
        let message = story.message();
        assert!(message.starts_with("WorkerRestarted: worker w0 is gone"), "{message}");
    }
}

#[test]
fn a_worker_that_crashed_while_its_trial_left_nothing_counts_all_the_same() {
    let story = run(true, |story| {
        lose_job(story);
        crash(story);
    });
    story.assert_verdict(Some(Verdict::Failed), "WorkerCrashed", "");
    let lost = &story.status().state.trials[1];
    assert_eq!(lost.worker_loss, Some(WorkerLoss::Crashed));
    assert_eq!(lost.causes, ["WorkerCrashed", "BenchmarkFailed"]);
}

#[test]
fn a_reboot_is_no_crash_and_the_run_does_not_pass() {
    let lost = |story: &mut Story| {
        lose_job(story);
        reboot(story);
    };
    for story in [run(true, lost), run(true, reboot), run(false, reboot)] {
        story.assert_verdict(Some(Verdict::Inconclusive), "WorkerRestarted", "");
        story.assert_message("w0 restarted, and its exit was not observed");
    }
}

/// A node without free CPUs.
fn full() -> NodeCpu {
    NodeCpu {
        node: "n1".into(),
        seconds: 60,
        cpus: Some(2),
        busy_percent: Some(99.into()),
        waiting_percent: Some(97.into()),
    }
}

/// The kubelet's events on both workers.
fn events(story: &Story, reason: &str, message: &str) -> Vec<PodEvent> {
    let event = |pod: &str| PodEvent {
        pod: pod.into(),
        pod_uid: format!("uid-{pod}"),
        reason: reason.into(),
        message: message.into(),
        last_seen: Some(story.now - TimeDelta::seconds(5)),
    };
    ["w0", "w1"].map(event).into()
}

const KILLING: (&str, &str) = ("Killing", "Container main failed liveness probe, will be restarted");

#[test]
fn a_worker_that_its_probe_ended_on_a_full_node_leaves_the_run_inconclusive() {
    for during in [true, false] {
        let story = run_on(Some(full()), during, |story| {
            (story.restarts, story.ended) = (1, (1, "Error"));
            story.endings = Seen::Present(events(story, KILLING.0, KILLING.1));
        });
        story.assert_verdict(
            Some(Verdict::Inconclusive),
            "NodeCPUPressure",
            format!("during: {during}"),
        );
        let status = story.status();
        let losses: Vec<_> = status
            .state
            .trials
            .iter()
            .filter_map(|trial| trial.worker_loss)
            .collect();
        assert_eq!(losses, [WorkerLoss::Starved], "reported once");
        let message = status.message.unwrap_or_default();
        assert!(
            message.starts_with("NodeCPUPressure: worker w0 restarted: its liveness or startup probe ended it, and"),
            "{message}"
        );
        assert!(message.contains("the 2 CPUs of node n1 were 99 % busy"), "{message}");
        let workers = status.state.worker_pods;
        let by_probe = |worker: &WorkerPod| worker.ended_by == Some(EndedBy::Probe);
        assert!(workers.iter().all(by_probe), "{workers:?}");
    }
}

#[test]
fn who_ended_a_worker_is_taken_from_its_exit_code_and_its_events() {
    let read = |found: Option<(&str, &str)>, ended: (i32, &'static str)| {
        let story = run_on(Some(full()), true, |story| {
            (story.restarts, story.ended) = (1, ended);
            let found = found.map(|(reason, message)| events(story, reason, message));
            story.endings = Seen::Present(found.unwrap_or_default());
        });
        let workers = story.status().state.worker_pods;
        (workers[0].ended_by, story.reason())
    };
    let deleted = Some(("Killing", "Stopping container main"));
    let pressed = "NodeCPUPressure".to_owned();
    let crashed = "WorkerCrashed".to_owned();
    let asked = (Some(EndedBy::Request), pressed.clone());
    assert_eq!(read(None, (0, "Completed")), asked);
    assert_eq!(read(deleted, (143, "Error")), asked);
    let by_probe = (Some(EndedBy::Probe), pressed.clone());
    assert_eq!(read(Some(KILLING), (137, "Error")), by_probe);
    // The events are known, and no probe is among them: somebody else killed it.
    for ended in [(137, "Error"), (1, "Error")] {
        assert_eq!(read(None, ended), (None, crashed.clone()), "{ended:?}");
    }
    // Its own signal, or the memory limit.
    for ended in [(139, "Error"), (137, "OOMKilled")] {
        assert_eq!(read(Some(KILLING), ended), (None, crashed.clone()), "{ended:?}");
    }
    let unread = run_on(Some(full()), true, |story| {
        (story.restarts, story.ended) = (1, (137, "Error"));
        story.endings = Seen::Unknown("GET events: 403".into());
    });
    assert_eq!(
        (unread.verdict(), unread.reason()),
        (Some(Verdict::Inconclusive), pressed)
    );
    // Beside free CPUs none of this is an excuse.
    let idle = run(true, |story| {
        (story.restarts, story.ended) = (1, (0, "Completed"));
        story.endings = Seen::Present(events(story, KILLING.0, KILLING.1));
    });
    assert_eq!((idle.verdict(), idle.reason()), (Some(Verdict::Failed), crashed));
}
