//! Following a run: one line for each change, or a picture on a terminal.

use std::sync::atomic::Ordering;

use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use super::desk::{Desk, golden, run_id, stored};
use super::logs;

/// As the operator writes it if a quota refuses the Job of a trial.
fn blocked(object: &mut Value) {
    let blocked = json!({"reason": "CallFailed", "message": "the Job is refused", "since": "2026-09-21T14:13:40Z"});
    object["status"]["operatorState"]["blocked"] = blocked;
}

#[tokio::test]
async fn a_line_is_printed_for_each_change_and_the_page_at_the_end() {
    let desk = Desk::with("sizing");
    let watch = desk.start("watch run");
    watch.shows("Sizing").await;
    desk.becomes("run", "benchmarking-second-trial");
    watch.shows("trial 2 is running").await;
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["status"]["operatorState"]["progress"] = json!({
            "trial": 2, "requests": 640, "expected": 1024, "failedRequests": 3, "seconds": 9, "percent": 62, "outputTokensPerSecond": 3682,
            "summary": "2: 62%", "updatedAt": "2026-09-21T14:19:50Z",
        });
    });
    watch.shows("640 of 1024 requests (62 %), 3 errors, 3682 tok/s").await;
    desk.server.edit("perfvalidations", "perf", "run", blocked);
    watch
        .shows("trial 2 is running; blocked, CallFailed: the Job is refused;")
        .await;
    // What changes nothing that is shown prints nothing.
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["status"]["operatorState"]["lastLookedAt"] = json!("2026-09-21T14:19:59Z");
    });
    desk.becomes("run", "failed");
    let answer = watch.ends().await;
    golden("watch-lines", &answer.out);
    assert_eq!(
        (answer.code, answer.err.as_str()),
        (1, ""),
        "the verdict is the exit code"
    );
}

#[tokio::test]
async fn the_verdict_decides_the_exit_code() {
    for (moment, code) in [
        ("passed", 0),
        ("skipped", 0),
        ("failed", 1),
        ("inconclusive", 3),
        ("error", 4),
        ("suspended", 3),
    ] {
        assert_eq!(Desk::with(moment).types("watch").await.code, code, "{moment}");
    }
}

#[tokio::test]
async fn a_terminal_shows_a_picture_that_is_drawn_over() {
    let mut desk = Desk::with("benchmarking-second-trial");
    desk.columns = Some(100);
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["status"]["operatorState"]["progress"] = json!({
            "trial": 2, "requests": 640, "expected": 1024, "failedRequests": 0, "seconds": 9, "percent": 62, "outputTokensPerSecond": 3682,
            "summary": "2: 62%", "updatedAt": "2026-09-21T14:13:40Z",
        });
        object["status"]["operatorState"]["history"] = json!([{
            "run": 1, "verdict": "Passed", "reason": "GatesMet", "completedAt": "2026-09-20T14:13:40Z",
            "phases": [["Sizing", 2], ["Benchmarking", 95]],
        }]);
    });
    let watch = desk.start("watch run");
    watch.shows("640 of 1024").await;
    let first = watch.out.get();
    golden("watch-picture", first.split("\x1b[").next().unwrap_or_default());
    let widest = first.lines().map(|line| line.chars().count()).max();
    assert!(
        widest < Some(100),
        "a line that wraps would be counted twice: {widest:?}"
    );
    desk.becomes("run", "failed");
    let answer = watch.ends().await;
    let lines = first.split("\x1b[").next().unwrap_or_default().lines().count();
    assert!(
        answer.out.contains(&format!("\x1b[{lines}A\r\x1b[J")),
        "it is drawn over: {answer:?}"
    );
    assert_eq!(answer.code, 1);
}

/// A run that waits for earlier ones, as the operator writes it.
fn waiting() -> Desk {
    let desk = Desk::with("sizing");
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        let status = &mut object["status"];
        status["reason"] = json!("InLine");
        status["message"] = json!(
            "in the queue behind team-a/nightly (2 runs are ahead); about 7 min, as recent runs took: 8 of 8 GPUs of n1 are taken"
        );
        status["run"]["queueAhead"] = json!(2);
        status["run"]["expectedAt"] = json!("2026-09-21T14:26:40Z");
    });
    desk
}

#[tokio::test]
async fn a_waiting_run_shows_its_place_in_the_queue() {
    let mut desk = waiting();
    golden("describe-waiting", &desk.types("describe run").await.out);
    desk.columns = Some(100);
    let watch = desk.start("watch run");
    watch.shows("are taken").await;
    let picture = watch.out.get();
    golden("watch-waiting", picture.split("\x1b[").next().unwrap_or_default());
    watch.is_interrupted();
    watch.ends().await;
}

#[tokio::test]
async fn a_picture_fits_few_rows_and_follows_the_size_of_the_terminal() {
    let mut desk = Desk::with("benchmarking-second-trial");
    desk.columns = Some(100);
    desk.rows.store(6, Ordering::Relaxed);
    let watch = desk.start("watch run");
    watch.shows("…\n").await;
    let first = watch.out.get();
    assert!(
        first.split("\x1b[").next().unwrap_or_default().lines().count() < 6,
        "{first}"
    );
    assert!(first.starts_with("perf/run  run 1  Benchmarking"), "{first}");
    desk.rows.store(40, Ordering::Relaxed);
    watch.shows("\x1b[2J\x1b[Hperf/run").await;
    watch.shows("trial 2 is running").await;
    desk.server.edit("perfvalidations", "perf", "run", blocked);
    watch
        .shows("trial 2 is running; blocked, CallFailed: the Job is refused\n")
        .await;
    watch.is_interrupted();
    watch.ends().await;
}

#[tokio::test]
async fn a_terminal_shows_the_lines_of_the_runner() {
    let mut desk = Desk::with("benchmarking-second-trial");
    desk.columns = Some(100);
    // The status is older than the log: at a fixed time of 60 s this one is half over.
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["spec"]["benchmark"] = json!({"duration": "60s"});
        object["status"]["operatorState"]["progress"] = json!({
            "trial": 2, "requests": 24, "failedRequests": 0, "seconds": 0, "percent": 0, "summary": "2: 0%",
            "updatedAt": "2026-09-21T14:13:40Z",
        });
    });
    let run = run_id(&stored("benchmarking-second-trial"));
    let job = perfval_run::names::trial_job(&run, 2);
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "generator", "namespace": "perf", "labels": {"batch.kubernetes.io/job-name": job}},
    }));
    let nonce = perfval_run::names::nonce("u-1", &run, 2);
    let line = |requests: i64, rate: i64| {
        let progress = perfval_verdict::progress::Progress {
            requests,
            errors: 1,
            seconds: requests / 10,
            tokens_per_second: Some(rate),
            ttft_ms: Some(rate / 10),
        };
        progress.line(&nonce)
    };
    desk.server.set_log(
        "perf",
        "generator",
        "aiperf",
        line(100, 900) + &line(200, 1800) + &line(300, 450),
    );
    let watch = desk.start("watch run");
    watch.shows("300 requests (50 %), 1 error").await;
    watch.shows("tok/s    ▄█▂  450").await;
    watch.shows("TTFT     ▄█▂  45 ms").await;
    watch.is_interrupted();
    let answer = watch.ends().await;
    answer.exits(3, "run goes on without you");
}

#[tokio::test]
async fn a_vanished_run_is_reported() {
    let desk = Desk::with("sizing");
    let watch = desk.start("watch run");
    watch.shows("Sizing").await;
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["metadata"]["finalizers"] = Value::Null;
    });
    desk.server.delete("perfvalidations", "perf", "run");
    let answer = watch.ends().await;
    assert_eq!(
        (answer.code, answer.err.as_str()),
        (4, "kubectl perfval: PerfValidation perf/run was deleted\n")
    );
}

#[tokio::test]
async fn a_watch_that_breaks_off_is_begun_again() {
    let desk = Desk::with("sizing");
    let watch = desk.start("watch run");
    watch.shows("Sizing").await;
    desk.server
        .fail(Fault::refuse("watch", "perfvalidations", 503).times(2));
    desk.server.end_watches();
    watch.notes("trying again").await;
    desk.becomes("run", "passed");
    let answer = watch.ends().await;
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(answer.err.matches("trying again").count(), 1, "{answer:?}");
}

#[tokio::test]
async fn logs_are_followed_on_after_a_call_that_failed() {
    let desk = logs::under_way();
    let logs = desk.start("logs run --follow");
    logs.shows("10 requests").await;
    desk.server.fail(Fault::refuse("get", "perfvalidations", 503).times(1));
    logs.notes("The cluster answered 503 (get perfvalidations: fault 503); trying again.\n")
        .await;
    let log = "2026-09-21T14:13:41.0Z 15 requests\n";
    desk.server.set_log("perf", "generator", "aiperf", log);
    logs.shows("15 requests").await;
    desk.server
        .fail(Fault::refuse("list", "pods", 429).in_namespace("perf").times(1));
    logs.notes("The cluster answered 429 (list pods: fault 429); trying again.\n")
        .await;
    let log = "2026-09-21T14:13:41.0Z 20 requests\n";
    desk.server.set_log("perf", "generator", "aiperf", log);
    logs.shows("20 requests").await;
    desk.becomes("run", "failed");
    assert_eq!(logs.ends().await.code, 0);
}

#[tokio::test]
async fn a_rerun_that_the_operator_has_not_seen_is_not_over() {
    let desk = Desk::with("passed");
    let rerun = desk.start("rerun run --watch");
    rerun.shows("Completed").await;
    let token = desk.server.get("perfvalidations", "perf", "run").expect("it is there");
    let token = token["metadata"]["annotations"]["perfvalidation.dev/rerun"].clone();
    assert_ne!(token, Value::Null);
    let mut later = stored("failed");
    later["status"]["run"]["rerunToken"] = token;
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["status"] = later["status"].clone();
    });
    assert_eq!(rerun.ends().await.code, 1, "the verdict of the new run counts");
}

#[tokio::test]
async fn an_edit_that_the_operator_cannot_keep_has_no_verdict() {
    let desk = Desk::with("passed");
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["spec"]["benchmark"]["concurrencyPerGPU"] = json!(7);
        // As the operator marks it: the other conditions are those of the run before.
        object["status"]["observedGeneration"] = json!(2);
        for condition in object["status"]["conditions"].as_array_mut().expect("conditions") {
            if condition["type"] == "Stalled" {
                condition["status"] = json!("True");
                condition["reason"] = json!("SpecUnreadable");
                condition["message"] = json!("write at most 16384 bytes");
                condition["observedGeneration"] = json!(2);
            }
        }
    });
    let said = "the operator cannot run perf/run: write at most 16384 bytes\n";
    for words in ["watch run", "rerun run --watch"] {
        let answer = desk.types(words).await;
        answer.exits(4, said);
        assert!(!answer.out.contains("perf/run: Passed"), "{answer:?}");
    }
    let page = desk.types("describe run").await;
    page.prints("the operator cannot run it: write at most 16384 bytes\n");
    assert_eq!(desk.types("logs run --follow").await.code, 0, "no run writes more");
    // There may be room later.
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        for condition in object["status"]["conditions"].as_array_mut().expect("conditions") {
            if condition["type"] == "Stalled" {
                condition["message"] = json!("no room; the operator tries again within 5 minutes");
            }
        }
    });
    let waits = desk.types("watch run --timeout 50ms").await;
    waits.exits(3, "run is not over in time");
    waits.notes("run waits: no room; the operator tries again within 5 minutes.");
    // The operator has not seen the next edit yet.
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["spec"]["benchmark"]["concurrencyPerGPU"] = json!(8);
    });
    let answer = desk.types("watch run --timeout 50ms").await;
    answer.exits(3, "run is not over in time");
}

#[tokio::test]
async fn a_run_whose_objects_cannot_be_removed_is_over() {
    let desk = Desk::with("sizing");
    let watch = desk.start("watch run");
    watch.shows("Sizing").await;
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        let mut status = stored("failed")["status"].clone();
        status["operatorState"]["leftovers"] = json!("Overdue");
        for condition in status["conditions"].as_array_mut().expect("conditions") {
            match condition["type"].as_str() {
                Some("CleanedUp") => {
                    condition["status"] = json!("False");
                    condition["reason"] = json!("TeardownUnconfirmed");
                    condition["message"] = json!("not removed in time (left: Pod w0)");
                }
                Some("Complete") => condition["status"] = json!("False"),
                _ => {}
            }
        }
        object["status"] = status;
    });
    let answer = watch.ends().await;
    answer.exits(
        1,
        "run is over, but objects of it are left: not removed in time (left: Pod w0).",
    );
    // The verdict is that of another spec.
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["status"]["run"]["generation"] = json!(0);
    });
    let answer = desk.types("watch run --timeout 50ms").await;
    answer.exits(3, "run is not over in time");
}

#[tokio::test]
async fn patience_has_an_end() {
    let answer = Desk::with("sizing").types("watch run --timeout 50ms").await;
    answer.exits(3, "run is not over in time: it is Sizing, and goes on");
    let rerun = Desk::with("sizing").types("rerun run --watch --timeout 50ms").await;
    assert_eq!(rerun.code, 3, "{}", rerun.err);
}
