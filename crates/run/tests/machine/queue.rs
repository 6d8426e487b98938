//! Several runs and one node: in which order they get it, and what the waiting costs them.

mod crowd;
mod kept;

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use perfval_api::{Phase, PlacementStatus};
use perfval_run::queue::{self, Contender, Hold, Line, Position, Turn, Wish};
use perfval_run::{machine, time};
use perfval_sizing::inventory::Inventory;
use perfval_sizing::{Fleet, Plan, Sizing};
use perfval_testkit::inventory::{Cluster, NodeBuilder, SliceBuilder};
use serde_json::{Value, json};

use super::moments::{kept, overdue};
use super::story::Story;

fn now() -> DateTime<Utc> {
    Story::new().now
}

fn metadata(uid: &str, created: DateTime<Utc>) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
    let mut metadata = Story::new().object.metadata;
    metadata.uid = Some(uid.into());
    metadata.name = Some(uid.into());
    metadata.creation_timestamp = Some(time::to_kubernetes(created));
    metadata
}

/// A run that waits for GPUs, asked for so many seconds ago.
fn waiting(uid: &str, ago: i64, spec: Value) -> Contender {
    let mut story = Story::with(spec);
    story.until(Phase::Sizing);
    let metadata = metadata(uid, now() - TimeDelta::seconds(ago));
    Contender::new(&metadata, &story.object.spec, &story.status(), true, now()).expect("it waits")
}

/// A run that holds a node.
pub(super) fn holder(uid: &str, node: &str, at_work: bool) -> Contender {
    Contender {
        holds: Some(Hold {
            node: node.into(),
            at_work,
            uses: None,
        }),
        wants: None,
        ..waiting(uid, 100, json!({}))
    }
}

/// A plan, and the number of sizings that it took.
fn plan<'l>(line: &'l Line, inventory: &Inventory) -> (Vec<(&'l Contender, Turn)>, usize) {
    let fleet = Fleet::new(inventory);
    let mut sized = 0;
    let turns = queue::plan(
        line,
        |_| None,
        |_, spec, held, granted| {
            sized += 1;
            fleet.choose(inventory.for_run(), spec, held, granted)
        },
    );
    (turns, sized)
}

/// Returns the turn of one of these runs.
fn turn_of(uid: &str, runs: Vec<Contender>, inventory: &Inventory) -> Turn {
    let line = Line { runs, usual: None };
    let (turns, _) = plan(&line, inventory);
    let own = turns.into_iter().find(|(run, _)| run.position.uid() == uid);
    own.expect("it waits").1
}

fn chosen(turn: &Turn) -> Option<&str> {
    match turn {
        Turn::Sized(Sizing::Chosen(plan)) => Some(&plan.node),
        _ => None,
    }
}

#[test]
fn an_earlier_run_comes_first_only_where_it_could_have_something() {
    let inventory = Cluster::of_gpus(4).inventory();
    let own = || waiting("b", 10, json!({}));
    let first = turn_of("b", vec![waiting("a", 20, json!({})), own()], &inventory);
    assert!(
        matches!(&first, Turn::Queued(place) if place.ahead == 1 && place.behind == ["perf/a"]),
        "{first:?}"
    );
    for (name, other) in [
        ("a later one", waiting("c", 5, json!({}))),
        ("a later one of the same second", waiting("c", 10, json!({}))),
        (
            "one for more GPUs than there are",
            waiting("a", 20, json!({"placement": {"minGPUs": 8, "maxGPUs": 8}})),
        ),
        (
            "one for another node",
            waiting("a", 20, json!({"placement": {"nodeSelector": {"zone": "z"}}})),
        ),
    ] {
        let turn = turn_of("b", vec![other, own()], &inventory);
        assert_eq!(chosen(&turn), Some("n1"), "{name}: {turn:?}");
    }
}

#[test]
fn two_nodes_serve_the_first_two() {
    let inventory = Cluster::of_gpus(4)
        .node(NodeBuilder::named("n2"))
        .slice(SliceBuilder::of("n2").gpus(3))
        .inventory();
    let runs = vec![waiting("a", 20, json!({})), waiting("b", 10, json!({}))];
    let turn = turn_of("b", runs, &inventory);
    assert_eq!(chosen(&turn), Some("n2"), "the larger one goes to the earlier run");
}

/// A run that has read its plan once, and is about to confirm it.
fn settling(uid: &str, ago: i64) -> Contender {
    Contender {
        holds: holder(uid, "n1", true).holds,
        ..waiting(uid, ago, json!({}))
    }
}

#[test]
fn a_plan_that_is_not_confirmed_gives_way_to_an_earlier_run() {
    let inventory = Cluster::of_gpus(4).inventory();
    let runs = || vec![settling("b", 10), waiting("a", 20, json!({}))];
    assert_eq!(chosen(&turn_of("a", runs(), &inventory)), Some("n1"));
    let later = turn_of("b", runs(), &inventory);
    assert!(
        matches!(&later, Turn::Queued(place) if place.behind == ["perf/a"] && place.message.contains("perf/a")),
        "never in its own way: {later:?}"
    );
}

#[test]
fn a_later_run_that_got_the_node_first_is_waited_for_without_a_limit_too() {
    let inventory = Cluster::of_gpus(4).inventory();
    let holder = Contender {
        wants: None,
        ..settling("b", 10)
    };
    let turn = turn_of("a", vec![holder, waiting("a", 20, json!({}))], &inventory);
    assert!(
        matches!(&turn, Turn::Queued(place) if place.ahead == 1 && place.behind == ["perf/b"]),
        "{turn:?}"
    );
}

#[test]
fn equal_wishes_of_a_thousand_runs_are_sized_once() {
    let inventory = Cluster::of_gpus(4).inventory();
    let runs = (0..1000).map(|n| waiting(&format!("u{n:04}"), 5, json!({})));
    let line = Line {
        runs: runs.collect(),
        usual: Some(std::time::Duration::from_mins(1)),
    };
    let (turns, sized) = plan(&line, &inventory);
    assert_eq!(sized, 2, "the one that gets the node, and the first that does not");
    let Turn::Queued(last) = &turns[999].1 else {
        panic!("{:?}", turns[999].1)
    };
    assert_eq!(
        (last.ahead, last.behind.join(", ").as_str(), last.estimate),
        (
            999,
            "perf/u0000, perf/u0001, perf/u0002",
            Some(std::time::Duration::from_mins(999))
        )
    );
}

#[test]
fn a_place_in_the_queue_is_written_at_most_once_a_minute_and_far_behind_in_tenths() {
    let mut story = Story::new();
    story.until(Phase::Sizing);
    story.others = (0..100).map(|n| holder(&format!("a{n:03}"), "n1", true)).collect();
    let said = |story: &mut Story, left: usize, wait: i64| {
        story.others.truncate(left);
        story.wait(wait).step();
        story.message()
    };
    let first = said(&mut story, 100, 1);
    assert!(first.contains("(100 runs are ahead)"), "{first}");
    assert_eq!(said(&mut story, 80, 10), first, "too soon");
    assert!(said(&mut story, 80, 60).contains("(80 runs are ahead)"));
    assert!(
        said(&mut story, 75, 600).contains("(80 runs are ahead)"),
        "less than a tenth"
    );
    assert!(said(&mut story, 3, 61).contains("(3 runs are ahead)"));
    assert!(
        said(&mut story, 2, 61).contains("(2 runs are ahead)"),
        "near the head every step counts"
    );
}

#[test]
fn a_run_that_is_run_again_queues_from_then() {
    let mut story = Story::new();
    story.object.metadata.creation_timestamp = Some(time::to_kubernetes(story.now - TimeDelta::days(30)));
    story.until(Phase::Completed);
    let position = |story: &Story| Position::new(&story.object.metadata, &story.status());
    let first = position(&story);
    story
        .annotate(perfval_api::meta::RERUN, Some("again"))
        .until(Phase::Pending);
    let between = Position::new(
        &metadata("z", story.now - TimeDelta::seconds(5)),
        &Story::new().status(),
    );
    assert!(first < between && between < position(&story));
}

#[test]
fn a_run_that_was_created_suspended_queues_from_its_resume() {
    let mut story = Story::with(json!({"suspend": true}));
    story.object.metadata.creation_timestamp = Some(time::to_kubernetes(story.now - TimeDelta::days(30)));
    story.until(Phase::Suspended);
    let waits_for_hours = Position::new(&metadata("z", story.now - TimeDelta::hours(5)), &Story::new().status());
    story.spec(json!({"suspend": false})).until(Phase::Pending);
    assert!(waits_for_hours < Position::new(&story.object.metadata, &story.status()));
}

#[test]
fn a_plan_gives_out_a_bounded_number_of_nodes_and_all_others_wait_in_the_queue() {
    let runs = (0..1000).map(|n| waiting(&format!("u{n:04}"), 5, json!({})));
    let line = Line {
        runs: runs.collect(),
        usual: None,
    };
    // A free node for each.
    let mut sized = 0;
    let turns = queue::plan(
        &line,
        |_| None,
        |_, _, _, _| {
            sized += 1;
            let placement = PlacementStatus {
                node: format!("n{sized}"),
                ..PlacementStatus::default()
            };
            Sizing::Chosen(Box::new(Plan {
                placement,
                ..Plan::default()
            }))
        },
    );
    assert_eq!(turns.len(), 1000);
    let given = turns.iter().take_while(|(_, turn)| chosen(turn).is_some()).count();
    assert!((10..=250).contains(&given), "{given} nodes");
    assert_eq!(sized, given, "nothing is sized in vain");
    for (ahead, (_, turn)) in turns.iter().enumerate().skip(given) {
        let Turn::Queued(place) = turn else { panic!("{turn:?}") };
        assert_eq!((usize::try_from(place.ahead), place.not_sized), (Ok(ahead), true));
    }
}

#[test]
fn a_run_that_no_plan_came_to_is_in_the_queue_and_looked_for_again_soon() {
    let mut story = Story::with(json!({"timeouts": {"sizing": "0s"}}));
    story.until(Phase::Sizing);
    // Each of them finds a node of its own.
    story.others = (0..1000)
        .map(|n| waiting(&format!("u{n:04}"), 100, json!({})))
        .collect();
    story.endless = true;
    let decision = story.step();
    assert_eq!(story.reason(), "InLine");
    assert!(
        decision
            .recheck
            .is_some_and(|again| again <= std::time::Duration::from_secs(2))
    );
    story.wait(3600).step();
    assert_eq!(
        (story.phase(), story.verdict()),
        (Some(Phase::Sizing), None),
        "its time stands still"
    );
}

#[test]
fn an_unattended_or_immovable_run_is_in_no_plan() {
    let left = |minutes: i64| {
        let mut story = Story::new();
        story.until(Phase::Sizing).step();
        let later = story.now + TimeDelta::minutes(minutes);
        let (metadata, spec) = (&story.object.metadata, &story.object.spec);
        Contender::new(metadata, spec, &story.status(), true, later).expect("it waits")
    };
    let counts = |minutes: i64, can_move: Option<bool>| {
        let mut line = Line {
            runs: vec![left(minutes)],
            usual: None,
        };
        line.leave_out(|_| can_move);
        !line.runs.is_empty()
    };
    assert!(
        counts(1, None) && counts(12, None),
        "its heartbeat is written every ten minutes"
    );
    assert!(!counts(20, None), "its operator is gone");
    assert!(counts(600, Some(true)), "this operator was away itself");
    assert!(!counts(1, Some(false)), "its status cannot be written");
    let holder = Contender {
        wants: None,
        ..left(600)
    };
    let mut line = Line {
        runs: vec![holder],
        usual: None,
    };
    line.leave_out(|_| None);
    assert_eq!(line.runs.len(), 1, "what it has it keeps");
}

#[test]
fn a_place_in_the_queue_has_a_heartbeat_only_where_other_operators_plan_too() {
    let written = |shares_the_cluster: bool| {
        let mut story = Story::new();
        story.settings.shares_the_cluster = shares_the_cluster;
        story.until(Phase::Sizing);
        story.others = vec![holder("first", "n1", true)];
        story.step();
        assert_eq!(story.reason(), "InLine");
        let looked = |story: &Story| story.status().state.last_looked_at;
        let before = looked(&story);
        story.outage(11 * 60).step();
        looked(&story) != before
    };
    assert!(!written(false) && written(true));
}

#[test]
fn a_run_on_its_way_keeps_its_turn_for_a_moment_only() {
    let story = Story::new();
    let stand = |ago: i64, change: Value| {
        let mut story = Story::with(change);
        story.object.metadata.creation_timestamp = Some(time::to_kubernetes(now() - TimeDelta::seconds(ago)));
        let found = Contender::new(&story.object.metadata, &story.object.spec, &story.status(), true, now());
        found.map(|found| found.wants)
    };
    let waits = Some(Some(Wish::new("h100", &story.object.spec)));
    assert_eq!(stand(5, json!({})), waits);
    assert_eq!(stand(15, json!({})), None, "it waits for something else");
    assert_eq!(stand(5, json!({"suspend": true})), None);
    assert_eq!(stand(5, json!({"gates": []})), None);
    let mut deleted = story.object.metadata.clone();
    deleted.deletion_timestamp = Some(Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH));
    assert_eq!(
        Contender::new(&deleted, &story.object.spec, &story.status(), true, now()),
        None
    );
}

#[test]
fn only_a_run_within_its_own_limits_is_waited_for_without_a_limit() {
    let holder = |phase: Phase, later: i64| {
        let mut story = Story::new();
        if phase == Phase::Completed {
            story.annotate(perfval_api::meta::NO_CLEANUP, Some("true"));
        }
        story.until(phase);
        assert!(perfval_sizing::holds_node(&story.status()), "{phase:?}");
        machine::is_at_work(
            &story.object.spec,
            &story.status(),
            story.now + TimeDelta::seconds(later),
        )
    };
    assert!(holder(Phase::WaitingForReady, 0));
    assert!(
        holder(Phase::WaitingForReady, 10 * 60 + 200),
        "an operator that restarts takes it up again"
    );
    assert!(!holder(Phase::WaitingForReady, 10 * 60 + 400), "its operator is gone");
    assert!(!holder(Phase::Completed, 0), "kept by the user");
}

#[test]
fn the_limit_counts_from_the_end_of_the_line() {
    let mut story = Story::with(json!({"timeouts": {"sizing": "60s"}}));
    story.until(Phase::Sizing);
    story.others = vec![holder("first", "n1", true)];
    story.step();
    assert_eq!(story.reason(), "InLine");
    story.wait(7200).step();
    story.assert_at(Phase::Sizing, "InLine");
    story.assert_message("perf/first");
    // The first one is over, and another pod has all GPUs: now it is this run's own time.
    story.others.clear();
    story.free = 0;
    story.step();
    story.wait(50).step();
    story.assert_at(Phase::Sizing, "Saturated");
    story.wait(20).step();
    story.assert_error("Saturated");
}

#[test]
fn an_unreadable_cluster_ends_no_place_in_the_queue() {
    let mut story = Story::with(json!({"timeouts": {"sizing": "60s"}}));
    story.until(Phase::Sizing);
    story.others = vec![holder("first", "n1", true)];
    story.step();
    story.assert_at(Phase::Sizing, "InLine");
    let everything = |story: &mut Story, is_unreadable: bool| story.unreadable = is_unreadable;
    let quotas = |story: &mut Story, is_unreadable: bool| story.quotas_unreadable = is_unreadable;
    for lose in [everything, quotas] {
        lose(&mut story, true);
        story.step();
        story.wait(7200).step();
        story.assert_at(Phase::Sizing, "CallFailed");
        lose(&mut story, false);
        story.step();
        story.assert_at(Phase::Sizing, "InLine");
        story.assert_message("perf/first");
    }
}

#[test]
fn a_run_that_ends_before_it_has_gpus_shows_no_node_that_it_took_over() {
    let mut story = kept();
    story.annotate(perfval_api::meta::RERUN, Some("again"));
    story.until(Phase::Pending);
    assert!(story.status().placement.is_some());
    story.spec(json!({"suspend": true}));
    story.until(Phase::Suspended);
    assert_eq!(story.status().placement, None);
}

#[test]
fn a_run_that_follows_an_overdue_removal_holds_no_node_once_it_has_ended() {
    let mut story = Story::new();
    story.until(Phase::Benchmarking);
    story.stuck = true;
    story.annotate(perfval_api::meta::RERUN, Some("again"));
    story.until(Phase::CleaningUp).step();
    story.wait(4000).step();
    assert_eq!(story.status().state.leftovers, Some(perfval_api::Leftovers::Overdue));
    story.stuck = false;
    story.until(Phase::Pending);
    assert!(!perfval_sizing::holds_node(&story.status()));
}

#[test]
fn a_run_that_leaves_the_queue_shows_no_place_in_it() {
    let mut story = Story::new();
    story.until(Phase::Sizing);
    story.others = vec![holder("first", "n1", true)];
    story.step();
    let ahead = |story: &Story| story.status().run.and_then(|run| run.queue_ahead);
    assert_eq!(ahead(&story), Some(1));
    story.spec(json!({"suspend": true})).until(Phase::Suspended);
    assert_eq!(ahead(&story), None);
}

#[test]
fn the_removal_before_a_run_sizes_again_has_its_own_time() {
    let mut story = Story::with(json!({"timeouts": {"sizing": "0s"}}));
    story.until(Phase::WaitingForReady);
    story.unschedulable = true;
    story.stuck = true;
    story.until(Phase::Sizing);
    story.step();
    story.unreadable = true;
    story.steps(3);
    story.assert_at(Phase::Sizing, "CallFailed");
    story.unreadable = false;
    story.wait(70).step();
    story.stuck = false;
    story.unschedulable = false;
    story.until(Phase::Deploying);
    assert_eq!(story.verdict(), None);
}

#[test]
fn a_run_that_sizes_again_holds_its_node_until_it_has_left_it() {
    let mut story = Story::new();
    story.until(Phase::WaitingForReady);
    story.unschedulable = true;
    story.stuck = true;
    story.until(Phase::Sizing);
    story.step();
    assert!(
        story.deployed && perfval_sizing::holds_node(&story.status()),
        "its pods are still there"
    );
    story.stuck = false;
    story.unschedulable = false;
    story.free = 0;
    story.steps(3);
    assert_eq!(
        (story.reason(), perfval_sizing::holds_node(&story.status())),
        ("Saturated".into(), false)
    );
}

/// The finalizer of others, such as that of an Argo CD hook, holds the object.
#[test]
fn a_deleted_run_that_others_hold_gives_its_node_back_and_rests() {
    for phase in [Phase::WaitingForReady, Phase::Completed] {
        let mut story = Story::new();
        story.until(phase);
        let finalizers = story.object.metadata.finalizers.get_or_insert_default();
        finalizers.push("others.example/hold".into());
        story.delete().until(Phase::CleaningUp);
        assert!(perfval_sizing::holds_node(&story.status()), "nothing is confirmed yet");
        story.steps(5);
        let rests = story.status();
        assert_eq!(rests.phase, Some(Phase::CleaningUp));
        assert!(!perfval_sizing::holds_node(&rests), "its GPUs are free");
        let decision = story.step();
        assert_eq!((decision.recheck, decision.status), (None, rests));
    }
}

#[test]
fn a_run_that_follows_a_kept_or_overdue_one_holds_its_node_until_it_has_left_it() {
    for mut story in [kept(), overdue()] {
        story.stuck = true;
        story.annotate(perfval_api::meta::RERUN, Some("again"));
        let holds = |story: &Story| {
            let status = story.status();
            let run = Contender::new(&story.object.metadata, &story.object.spec, &status, true, story.now);
            let kept = run.and_then(|run| run.keeps());
            (perfval_sizing::holds_node(&status), kept.map(|kept| kept.node))
        };
        let held = (true, Some("n1".to_owned()));
        story.until(Phase::Pending);
        assert_eq!(holds(&story), held);
        story.until(Phase::Sizing).step();
        assert_eq!(holds(&story), held, "its pods are still there");
        story.stuck = false;
        story.free = 0;
        story.steps(3);
        assert_eq!((story.reason(), holds(&story)), ("Saturated".into(), (false, None)));
    }
}
