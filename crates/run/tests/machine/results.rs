//! Results of earlier runs: as many are kept as the spec says.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use perfval_api::Phase;
use perfval_run::diagnosis::error_logs;
use perfval_run::observed::{Child, ChildKind, ChildRef, ErrorLog, LogRequest, Need};
use perfval_run::{Effect, Run, names};
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
    // Runs 3 to 12 saved nothing: they judged again, or gave way.
    let some = || [1, 2, 13].map(|run| saved("u-1", run)).to_vec();
    assert_eq!(deleted(2, Seen::Present(some())), Vec::<String>::new());
    assert_eq!(deleted(1, Seen::Present(some())), ["run-1"]);
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

/// A run that saves its results; a worker crashed during its first trial, or not.
fn saving(crash: bool) -> Story {
    let mut story = Story::new();
    story.until(Phase::Benchmarking);
    story.until_trial(1);
    story.restarts = i32::from(crash);
    story.until(Phase::Evaluating);
    story
}

fn texts(story: &mut Story) -> BTreeMap<String, String> {
    story.until(Phase::Completed);
    let results = story.results.values().next().expect("results");
    let data = results.data.clone().expect("a summary");
    data.into_iter().filter(|(key, _)| key != "summary.json").collect()
}

#[test]
fn the_last_lines_of_the_workload_are_saved_with_a_trial_that_had_errors() {
    let log = |pod: &str, previous, trials| ErrorLog {
        of: LogRequest::new(pod, "main", previous),
        trials,
    };
    let found = |text: &str| Seen::Present(BTreeMap::from([(1, text.to_owned())]));
    let logs = vec![
        log("frontend", false, found("2026-09-21T14:13:33Z 500\n")),
        log("w0", true, found(&"2026-09-21T14:13:33Z CUDA error\n".repeat(10_000))),
        log("w0", false, Seen::Present(BTreeMap::new())),
        log("w1", true, Seen::Absent),
        log("w1", false, Seen::Unknown("500".into())),
    ];
    let mut crashed = saving(true);
    assert!(crashed.needs().contains(&Need::Workload));
    crashed.error_logs.clone_from(&logs);
    let saved = texts(&mut crashed);
    let [(key, text)] = Vec::from_iter(saved).try_into().expect("one log");
    assert_eq!(key, "trial-1.log");
    assert!(text.len() < 80 << 10, "{}", text.len());
    let heads: Vec<&str> = text.lines().filter(|line| !line.ends_with("CUDA error")).collect();
    assert_eq!(
        heads,
        [
            "==> frontend, container main <==",
            "2026-09-21T14:13:33Z 500",
            "==> w0, container main, before its restart <==",
            "==> w0, container main <==",
            "no line of this trial",
            "==> w1, container main, before its restart <==",
            "no longer on the node",
            "==> w1, container main <==",
            "not read: 500",
        ]
    );

    let mut healthy = saving(false);
    assert!(
        !healthy.needs().contains(&Need::Workload),
        "nothing is read of a healthy run"
    );
    healthy.error_logs = logs;
    assert_eq!(texts(&mut healthy), BTreeMap::new());
}

#[test]
fn of_a_log_the_last_lines_within_the_trial_are_kept_without_secrets() {
    let story = saving(true);
    let trial = story.status().state.trials[0].clone();
    let (began, over) = (trial.started_at, trial.completed_at.expect("over"));
    let line = |time: chrono::DateTime<chrono::Utc>, text: &str| format!("{} {text}\n", time.to_rfc3339());
    let many = (0..2_000)
        .map(|n| line(began, &format!("request {n}")))
        .collect::<String>();
    let log = [
        line(began - TimeDelta::seconds(1), "before"),
        many,
        line(over, "\u{1b}[31mERROR\u{1b}[0m HF_TOKEN=hf_0123456789abcdef"),
        line(over + TimeDelta::seconds(1), "after"),
        "no time\n".to_owned(),
    ];
    let run = Run::new(&story.object, &story.settings);
    let cut = error_logs::cut(&run, &log.concat());
    let text = &cut[&1];
    assert!(text.ends_with("ERROR HF_TOKEN=[hidden]\n"), "{text}");
    assert!(text.len() <= 16 << 10 && text.lines().count() > 100, "{}", text.len());
    assert!(
        text.lines()
            .all(|line| line.contains("request") || line.contains("ERROR")),
        "{text}"
    );
    assert_eq!(cut.len(), 1);
}
