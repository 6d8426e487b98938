//! Results of earlier runs: as many are kept as the spec says.

use perfval_api::Phase;
use perfval_run::observed::{Child, ChildKind, ChildRef};
use perfval_run::{Effect, names};
use perfval_sizing::Seen;
use serde_json::json;

use super::story::Story;

/// Results of a run of the object with this uid.
fn saved(uid: &str, run: i64) -> Child {
    Child {
        id: ChildRef {
            kind: ChildKind::Results,
            name: format!("run-{run}"),
            uid: format!("uid-of-{run}"),
        },
        deleting: false,
        run: names::run_id(uid, run),
        ours: true,
    }
}

/// The results that run 13 deletes.
fn deleted(limit: i32, saved: Seen<Vec<Child>>) -> Vec<String> {
    let mut story = Story::with(json!({"resultsHistoryLimit": limit}));
    story.until(Phase::Pending);
    if let Some(run) = story.object.status.as_mut().and_then(|status| status.run.as_mut()) {
        run.number = 13;
        run.id = names::run_id("u-1", 13);
    }
    story.saved_results = saved;
    story.until(Phase::Completed);
    let effects = story.log.iter().flat_map(|decision| &decision.effects);
    let names = effects.filter_map(|effect| match effect {
        Effect::Delete(child) if child.kind == ChildKind::Results => Some(child.name.clone()),
        _ => None,
    });
    names.collect()
}

#[test]
fn results_of_runs_beyond_the_limit_are_deleted() {
    let all = || (1..=13).map(|run| saved("u-1", run)).collect::<Vec<_>>();
    assert_eq!(deleted(10, Seen::Present(all())), ["run-1", "run-2"]);
    assert_eq!(
        deleted(0, Seen::Present(all())).len(),
        12,
        "never those of the run itself"
    );
    assert_eq!(deleted(100, Seen::Present(all())), Vec::<String>::new());
}

#[test]
fn results_of_others_and_what_cannot_be_listed_stay() {
    let foreign = Child {
        ours: false,
        ..saved("u-1", 1)
    };
    let going = Child {
        deleting: true,
        ..saved("u-1", 2)
    };
    assert_eq!(deleted(1, Seen::Present(vec![foreign, going])), Vec::<String>::new());
    assert_eq!(deleted(1, Seen::Unknown("403".into())), Vec::<String>::new());
}

#[test]
fn a_run_whose_number_is_lost_keeps_its_own_results() {
    let mut story = Story::new();
    story.until(Phase::Evaluating);
    if let Some(status) = story.object.status.as_mut() {
        status.run = None;
    }
    story.saved_results = Seen::Present(vec![saved("u-1", 1)]);
    story.until(Phase::CleaningUp);
    let mut effects = story.log.iter().flat_map(|decision| &decision.effects);
    assert!(!effects.any(|effect| matches!(effect, Effect::Delete(child) if child.kind == ChildKind::Results)));
}
