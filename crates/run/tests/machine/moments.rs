//! Stories taken to the last moment before an arrow.

use Phase::{Benchmarking, CleaningUp, Completed, Deploying, Evaluating, Pending, Sizing, Suspended, WaitingForReady};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use perfval_api::{Blocked, Phase, meta};
use perfval_run::observed::{ChildKind, DynamoApi, ProbeAnswer};
use perfval_run::queue::{Contender, Hold, Position};
use perfval_sizing::Seen;
use serde_json::{Value, json};

use super::story::{Showing, Story};

pub(super) fn at(phase: Phase) -> Story {
    let mut story = Story::new();
    story.until(phase);
    story
}

pub(super) fn changed(mut story: Story, change: impl Fn(&mut Story)) -> Story {
    change(&mut story);
    story
}

/// The second trial hangs past its limit; the first was measured.
pub(super) fn second_trial_hangs() -> Story {
    let mut story = Story::with(json!({"trials": {"rule": "Sequential", "max": 8}}));
    story.until(Benchmarking);
    story.until_trial(2);
    story.showing = Showing::Hang;
    story.step();
    story.wait(4000);
    story
}

/// Between two trials a worker's pod was replaced, and holds another GPU than the one that was confirmed.
pub(super) fn moved() -> Story {
    let mut story = Story::with(json!({"trials": {"rule": "Sequential", "max": 8}}));
    story.until_between_trials();
    let status = story.object.status.as_mut();
    let plan = &mut status.expect("a status").state.plan;
    plan.device_ids[1].name = "gpu-7".into();
    story
}

/// A run whose spec is special from the start, at Pending with its finalizer.
pub(super) fn begun(spec: serde_json::Value) -> Story {
    let mut story = Story::with(spec);
    story.until(Pending).step();
    story
}

/// The phase's own work is done; the next step takes the arrow.
pub(super) fn settled(phase: Phase) -> Story {
    let mut story = at(phase);
    for _ in 0..40 {
        story.wait(1);
        let next = story.decide().status.phase;
        story.wait(-1);
        if next != Some(phase) {
            return story;
        }
        story.step();
    }
    panic!("{phase:?} does not end: {}", story.reason());
}

fn without_dynamo(on_missing: &str, dynamo: Seen<DynamoApi>) -> Story {
    let mut story = Story::with(json!({"workload": {"dynamo": {"onMissing": on_missing}}}));
    story.dynamo = dynamo;
    story.until(Pending).step();
    story.wait(4000);
    story
}

pub(super) fn no_dynamo(on_missing: &str) -> Story {
    without_dynamo(on_missing, Seen::Absent)
}

pub(super) fn dynamo_unreadable() -> Story {
    without_dynamo("Skip", Seen::Unknown("GET customresourcedefinitions: 403".into()))
}

pub(super) fn old_dynamo() -> Story {
    let mut story = begun(json!({"workload": {"dynamo": {"image": "v:1.0.2"}}}));
    if let Seen::Present(api) = &mut story.dynamo {
        api.operator_version = Some("1.0.2".into());
    }
    story
}

pub(super) fn saturated() -> Story {
    changed(at(Sizing), |s| {
        s.free = 0;
        s.step();
        s.wait(4000);
    })
}

pub(super) fn busy() -> Story {
    changed(at(Sizing), |s| {
        // Kept for a post-mortem: it does not give its node back by itself.
        s.others = vec![Contender {
            namespace: "other".into(),
            name: "run".into(),
            position: Position::new(
                &ObjectMeta {
                    uid: Some("u-0".into()),
                    ..s.object.metadata.clone()
                },
                &s.status(),
            ),
            holds: Some(Hold {
                node: "n1".into(),
                at_work: false,
                uses: None,
            }),
            wants: None,
            is_attended: true,
        }];
        s.step();
        s.wait(4000);
    })
}

/// A run that fills a model cache first, with its Job in this state.
pub(super) fn fills_cache(job: &'static str) -> Story {
    let template = json!({"storage": "1Gi", "storageClassName": "fast"});
    let mut story = Story::with(json!({"model": {"cache": {"volumeClaimTemplate": template}}}));
    story.cache_job = Some(job);
    story
}

pub(super) fn cache_fails() -> Story {
    let mut story = fills_cache("Failed");
    // The first pass asks the API server whether it would take the deployment at all.
    story.until(Deploying).step();
    story
}

/// The deployment was refused, unlike the objects before it.
pub(super) fn partly_created() -> Story {
    changed(at(Deploying), refuse_deployment)
}

/// The same after the model cache was filled.
pub(super) fn filled_and_partly_created() -> Story {
    changed(fills_cache("Complete"), |story| {
        story.until(Deploying).step();
        refuse_deployment(story);
    })
}

fn refuse_deployment(story: &mut Story) {
    story.step();
    assert!(story.deployed, "it is to be created");
    remove_deployment(story);
}

/// There is no deployment any more, or none yet.
pub(super) fn remove_deployment(story: &mut Story) {
    story.deployed = false;
    story.children.retain(|child| child.id.kind != ChildKind::Deployment);
}

pub(super) fn resized(story: &mut Story, times: i64) {
    story.object.status.as_mut().expect("a status").state.resizes = times;
}

pub(super) fn waiting_on(reason: &'static str) -> Story {
    changed(at(WaitingForReady), |s| {
        s.workers_ready = false;
        s.pod_waiting = Some(reason);
    })
}

/// The operator has seen for some minutes what it sees now.
pub(super) fn lasts(story: &mut Story) {
    story.step();
    story.wait(200);
}

pub(super) fn waiting_long_on(reason: &'static str) -> Story {
    changed(waiting_on(reason), lasts)
}

pub(super) fn prepare_fails(message: &'static str) -> Story {
    changed(at(WaitingForReady), |s| {
        s.workers_ready = false;
        s.prepare_error = Some(message);
    })
}

pub(super) fn failed_for_long() -> Story {
    changed(at(WaitingForReady), |s| {
        s.deployment_failed = true;
        s.step();
        s.wait(200);
    })
}

pub(super) fn no_completion() -> Story {
    changed(at(WaitingForReady), |s| {
        s.answer = ProbeAnswer::Empty;
        s.steps(2);
        s.wait(4000);
    })
}

pub(super) fn showing(showing: Showing) -> Story {
    let mut story = Story::new();
    story.showing = showing;
    story.until(Evaluating);
    story.step();
    story
}

pub(super) fn interrupted(by: impl Fn(&mut Story)) -> Story {
    let mut story = at(WaitingForReady);
    by(&mut story);
    story.until(CleaningUp);
    story.step();
    story
}

pub(super) fn suspended() -> Story {
    let mut story = interrupted(|s| {
        s.spec(json!({"suspend": true}));
    });
    story.until(Suspended);
    story
}

pub(super) fn over(mut story: Story) -> Story {
    story.until(Completed);
    story
}

/// A finished run whose time for removal passed.
pub(super) fn overdue() -> Story {
    over(changed(at(CleaningUp), |story| {
        story.stuck = true;
        story.step();
        story.wait(4000);
    }))
}

/// The operator may not write an object of the run.
pub(super) fn block(story: &mut Story) {
    let status = story.object.status.as_mut().expect("a status");
    status.state.blocked = Some(Blocked {
        reason: "Refused".into(),
        message: "Service pv-1-workers belongs to another owner: rename or remove it".into(),
        since: story.now,
        for_good: false,
    });
}

/// A finished run of which everything is kept.
pub(super) fn kept() -> Story {
    let mut story = at(CleaningUp);
    story.annotate(meta::NO_CLEANUP, Some("true"));
    story.until(Completed);
    story
}

pub(super) fn kept_no_longer() -> Story {
    let mut story = kept();
    story.annotate(meta::NO_CLEANUP, None);
    story
}

/// A change of the spec to one gate on the throughput.
pub(super) fn gate(threshold: &str) -> Value {
    json!({"gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": threshold}]})
}

/// Gates that a fast deployment misses.
pub(super) fn stricter(story: &mut Story) {
    story.spec(gate("3000"));
}

/// Changed gates, and the saved trials not looked at yet.
pub(super) fn judging_again() -> Story {
    let mut story = changed(at(Completed), stricter);
    story.until(Evaluating);
    story
}
