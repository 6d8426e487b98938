//! Laws that hold on every run, whatever the world does.

use perfval_api::{Phase, Verdict, meta};
use perfval_run::Effect;
use perfval_run::observed::{Probe, ProbeAnswer};
use perfval_sizing::Seen;
use proptest::prelude::*;
use serde_json::json;

use super::moments::gate;
use super::story::{Showing, Story};

/// Something that happens between two passes.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    Nothing,
    Time(u16),
    Saturated(bool),
    Unreadable(bool),
    DynamoUnreadable(bool),
    WorkersReady(bool),
    Unschedulable(bool),
    Preempted(bool),
    Answer(bool),
    Shows(u8),
    Stuck(bool),
    Suspend(bool),
    Keep(bool),
    Rerun(u8),
    Change(bool),
    Gates(u8),
    Outside(u8),
    Delete,
}

pub(super) fn happening() -> impl Strategy<Value = Happening> {
    use Happening as H;
    prop_oneof![
        12 => Just(H::Nothing),
        4 => (1u16..900).prop_map(H::Time),
        1 => any::<bool>().prop_map(H::Saturated),
        1 => any::<bool>().prop_map(H::Unreadable),
        1 => any::<bool>().prop_map(H::DynamoUnreadable),
        1 => any::<bool>().prop_map(H::WorkersReady),
        1 => any::<bool>().prop_map(H::Unschedulable),
        1 => any::<bool>().prop_map(H::Preempted),
        1 => any::<bool>().prop_map(H::Answer),
        1 => any::<u8>().prop_map(H::Shows),
        1 => any::<bool>().prop_map(H::Stuck),
        1 => any::<bool>().prop_map(H::Suspend),
        1 => any::<bool>().prop_map(H::Keep),
        1 => (0u8..3).prop_map(H::Rerun),
        1 => any::<bool>().prop_map(H::Change),
        1 => any::<u8>().prop_map(H::Gates),
        1 => any::<u8>().prop_map(H::Outside),
        1 => Just(H::Delete),
    ]
}

/// A change of what judges the trials.
fn judged(n: u8) -> serde_json::Value {
    match n % 4 {
        0 => gate("1000"),
        1 => gate("1500"),
        2 => gate("3000"),
        _ => json!({"trials": {"maxFailedRequestsPercent": (n % 7).to_string()}}),
    }
}

/// A change that asks for nothing: neither what is measured nor what judges it.
fn outside(n: u8) -> serde_json::Value {
    match n % 4 {
        // Long enough for a law that plays an hour.
        0 => json!({"ttlSecondsAfterFinished": 1_000_000 + i64::from(n)}),
        1 => json!({"timeouts": {"cleanup": format!("{}m", 4 + n % 3)}}),
        2 => json!({"timeouts": {"modelCache": format!("{}m", 10 + n % 3)}}),
        _ => json!({"workload": {"dynamo": {"onMissing": if n % 8 < 4 { "Skip" } else { "Fail" }}}}),
    }
}

pub(super) fn happen(story: &mut Story, what: &Happening) {
    match what {
        Happening::Nothing => {}
        Happening::Time(seconds) => {
            story.wait(i64::from(*seconds));
        }
        Happening::Saturated(yes) => story.free = if *yes { 0 } else { 8 },
        Happening::Unreadable(yes) => story.unreadable = *yes,
        Happening::DynamoUnreadable(yes) => {
            let whole = Story::new().dynamo;
            story.dynamo = if *yes { Seen::Unknown("403".into()) } else { whole };
        }
        Happening::WorkersReady(yes) => story.workers_ready = *yes,
        Happening::Unschedulable(yes) => story.unschedulable = *yes,
        Happening::Preempted(yes) => story.preempted = yes.then_some("w0"),
        Happening::Answer(yes) => {
            story.answer = if *yes {
                ProbeAnswer::Completion
            } else {
                ProbeAnswer::Refused(404, String::new())
            };
        }
        Happening::Shows(n) => {
            story.showing = [
                Showing::Fast,
                Showing::Slow,
                Showing::Starved,
                Showing::Crash,
                Showing::Hang,
            ][usize::from(n % 5)];
        }
        Happening::Stuck(yes) => story.stuck = *yes,
        Happening::Suspend(yes) => {
            story.spec(json!({"suspend": yes}));
        }
        Happening::Keep(yes) => {
            story.annotate(meta::NO_CLEANUP, yes.then_some("true"));
        }
        Happening::Rerun(token) => {
            story.annotate(meta::RERUN, Some(&token.to_string()));
        }
        Happening::Change(fewer) => {
            story.spec(json!({"placement": {"maxGPUs": if *fewer { 1 } else { 2 }}}));
        }
        Happening::Gates(n) => {
            story.spec(judged(*n));
        }
        Happening::Outside(n) => {
            story.spec(outside(*n));
        }
        Happening::Delete => {
            story.delete();
        }
    }
}

fn creates(effect: &Effect) -> bool {
    match effect {
        Effect::CreateClaimTemplate(_)
        | Effect::CreateCacheClaim(_)
        | Effect::CreateCacheJob(_)
        | Effect::CreateWorkersService(_)
        | Effect::CreateNetworkPolicy(_)
        | Effect::CreateDeployment(_)
        | Effect::CreateTrialJob(_)
        | Effect::Probe(_) => true,
        Effect::EnsureFinalizer
        | Effect::ReleaseFinalizer
        | Effect::SaveResults(_)
        | Effect::Delete(_)
        | Effect::DeleteSelf => false,
    }
}

/// A run past the limit of its phase, whose next pass finds something to create.
#[test]
fn a_pass_that_ends_the_run_creates_nothing() {
    for (phase, passes) in [
        (Phase::Deploying, 0),
        (Phase::WaitingForReady, 2),
        (Phase::Benchmarking, 0),
    ] {
        let mut story = Story::new();
        story.until(phase);
        if phase == Phase::WaitingForReady {
            story.answers(ProbeAnswer::Failed("connection refused".into()));
        }
        for _ in 0..passes {
            story.step();
        }
        story.probe = Probe::Idle;
        story.wait(4000);
        let decision = story.step();
        assert_eq!(decision.status.verdict, Some(Verdict::Error), "{phase:?}");
        let created: Vec<_> = decision.effects.iter().filter(|effect| creates(effect)).collect();
        assert!(created.is_empty(), "{phase:?}: {created:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn laws_hold_in_every_history(happenings in proptest::collection::vec(happening(), 1..120)) {
        let mut story = Story::with(json!({"trials": {"rule": "Sequential", "max": 4}}));
        for what in &happenings {
            happen(&mut story, what);
            let before = story.status();
            let first = story.decide();
            prop_assert_eq!(&first, &story.decide(), "the same pass decides the same");
            let had_finalizer = story.object.metadata.finalizers.is_some();
            let decision = story.step();
            if story.gone {
                prop_assert!(!story.deployed && story.children.is_empty(), "released with something left");
                break;
            }
            let after = &decision.status;
            let same_run = before.run.as_ref().map(|run| run.number) == after.run.as_ref().map(|run| run.number);
            if same_run && before.verdict.is_some() {
                prop_assert_eq!(before.verdict, after.verdict, "a verdict never changes within a run");
            }
            if decision.effects.iter().any(creates) {
                prop_assert!(had_finalizer, "created without the finalizer");
                prop_assert!(after.verdict.is_none(), "created by the pass that ends the run");
                prop_assert_eq!(before.phase, after.phase, "created by a pass that leaves its phase");
                prop_assert!(!matches!(before.phase, None | Some(Phase::Completed | Phase::Suspended | Phase::CleaningUp)));
            }
            if after.phase == Some(Phase::Suspended) {
                prop_assert!(!story.deployed, "suspended with a deployment");
            }
            let size = serde_json::to_string(after).unwrap().len();
            prop_assert!(size < 32 * 1024, "status of {size} bytes");
            if after.conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True") {
                let judged = after.run.as_ref().map(|run| run.generation);
                prop_assert_eq!(judged, story.object.metadata.generation, "ready without a verdict on this spec");
                let left = after.conditions.iter().any(|c| c.type_ == "CleanedUp" && c.status == "False");
                prop_assert!(!left, "ready while something is left");
            }
            let created = decision.effects.iter().any(creates);
            let judges_again = after.state.judged_run.is_some();
            prop_assert!(!(judges_again && created), "created something to judge saved trials");
            let conditions = |name: &str| after.conditions.iter().find(|c| c.type_ == name).map(|c| c.status.clone());
            prop_assert!(!(conditions("Reconciling").as_deref() == Some("True") && conditions("Stalled").as_deref() == Some("True")));
        }
    }

    #[test]
    fn every_run_ends_when_the_world_stops_changing(happenings in proptest::collection::vec(happening(), 1..40)) {
        let mut story = Story::new();
        for what in &happenings {
            if !matches!(what, Happening::Delete) {
                happen(&mut story, what);
            }
            story.step();
        }
        happen(&mut story, &Happening::Stuck(false));
        happen(&mut story, &Happening::Unreadable(false));
        happen(&mut story, &Happening::Preempted(false));
        // The sum of all limits is under 90 minutes; two runs may follow each other.
        story.looks(180, 60);
        prop_assert!(matches!(story.phase(), Some(Phase::Completed | Phase::Suspended)), "{:?} {}", story.phase(), story.reason());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn an_edit_outside_of_measured_fields_never_measures(edits in proptest::collection::vec((0u8..3, any::<u8>()), 1..30)) {
        let mut story = Story::new();
        story.until(Phase::Completed);
        for (kind, n) in edits {
            let before = story.status();
            let was_suspended = story.object.spec.suspend;
            match kind {
                0 => story.spec(outside(n)),
                1 => story.spec(judged(n)),
                _ => story.spec(json!({"suspend": n % 2 == 0})),
            };
            for _ in 0..3 {
                let decision = story.step();
                prop_assert_eq!(&decision.effects, &Vec::new());
            }
            let after = story.status();
            prop_assert_eq!(after.phase, Some(Phase::Completed));
            let judged = after.state.judged_run;
            let (before, after) = (before.run.expect("a run"), after.run.expect("a run"));
            prop_assert!(after.number == before.number || judged == Some(1), "run {} measured", after.number);
            if kind == 0 && !was_suspended {
                prop_assert_eq!(after.number, before.number, "an edit that asks for nothing began a run");
            }
        }
    }
}

#[test]
fn a_pass_that_changes_nothing_writes_nothing() {
    for phase in [Phase::Completed, Phase::Suspended] {
        let mut story = Story::new();
        if phase == Phase::Suspended {
            story.spec(json!({"suspend": true}));
        }
        story.until(phase);
        story.step();
        let before = story.status();
        story.wait(3600);
        assert_eq!(story.step().status, before, "{phase:?}");
    }
}

#[test]
fn waiting_writes_nothing_either() {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    story.workers_ready = false;
    story.step();
    let before = story.status();
    assert_eq!(story.step().status, before);
}
