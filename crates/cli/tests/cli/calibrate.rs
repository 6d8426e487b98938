//! `calibrate`: the load is raised until the throughput stops to grow, and the manifest has gates from it.

use std::time::Duration;

use perfval_api::PerfValidation;
use perfval_api::admission::Admission;
use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::desk::{Desk, PATIENCE, Typed, stored};

const MANIFEST: &str = "../../config/samples/gpu-h200.yaml";
/// Requests in flight per GPU from which the engine has its full throughput.
const KNEE: i64 = 100;

/// The validation that measures.
fn probe(desk: &Desk) -> Option<Value> {
    desk.server.get("perfvalidations", "perf", "gpu-h200-calibrate")
}

/// Plays the operator until the command ends: each requested run ends at once, on an engine with a largest batch. The API
/// server would take each change of the object. Returns the number of runs.
async fn operate(desk: &Desk, run: &Typed, verdict: &str) -> usize {
    let admission = Admission::new().expect("a schema");
    let (mut seen, mut runs) = ((0, Value::Null), 0);
    let operating = async {
        while !run.is_over() {
            let asked = |object: &Value| {
                let token = object["metadata"]["annotations"]["perfvalidation.dev/rerun"].clone();
                (object["metadata"]["generation"].as_i64().unwrap_or_default(), token)
            };
            if let Some(object) = probe(desk).filter(|object| asked(object) != seen) {
                seen = asked(&object);
                runs += 1;
                end_run(desk, &object, &seen, verdict, &admission);
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    let operated = timeout(PATIENCE, operating).await;
    assert!(operated.is_ok(), "it does not end: {}", run.out.get());
    runs
}

fn end_run(desk: &Desk, object: &Value, asked: &(i64, Value), verdict: &str, admission: &Admission) {
    let manifest = json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": {"name": object["metadata"]["name"]}, "spec": object["spec"],
    });
    let refusals = admission.list_refusals(&manifest);
    assert!(refusals.is_empty(), "{refusals:?} of {manifest}");
    let load = object["spec"]["benchmark"]["concurrencyPerGPU"]
        .as_i64()
        .expect("a load");
    let trials = if object["spec"]["trials"]["rule"] == "Single" {
        1
    } else {
        2
    };
    let status = status(asked, load, trials, verdict);
    desk.server
        .edit("perfvalidations", "perf", "gpu-h200-calibrate", |object| {
            object["status"] = status;
        });
}

fn status(asked: &(i64, Value), load: i64, trials: usize, verdict: &str) -> Value {
    let mut status = stored("passed")["status"].clone();
    status["verdict"] = json!(verdict);
    status["observedGeneration"] = json!(asked.0);
    status["run"]["generation"] = json!(asked.0);
    status["run"]["rerunToken"] = asked.1.clone();
    // Each rerun gets another node.
    let node = if asked.1.is_null() { "n1" } else { "n2" };
    status["placement"]["node"] = json!(node);
    status["placement"]["gpus"] = json!(4);
    let trial = json!({
        "number": 1, "outcome": "Pass", "startedAt": "2026-09-21T14:13:20Z",
        "outputTokensPerSecond": load.min(KNEE) * 90 * 4, "ttftP99Milliseconds": 200 + load,
    });
    status["trials"] = json!(vec![trial; trials]);
    status
}

#[tokio::test]
async fn the_manifest_has_a_load_below_the_knee_and_gates_from_the_slowest_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.yaml");
    let desk = Desk::new();
    let typed = format!("calibrate -f {MANIFEST} --output {} --context prod", file.display());
    let run = desk.start(&typed);
    let runs = operate(&desk, &run, "Passed").await;
    let answer = run.ends().await;
    assert_eq!(answer.code, 0, "{answer:?}");
    let is_measured = |line: &&str| line.starts_with(|letter: char| letter.is_ascii_digit());
    let measured = answer.out.lines().filter(is_measured).count();
    assert_eq!(measured, runs, "each line is of a run of its own: {answer:?}");
    answer.prints(&format!(
        "run it with `kubectl perfval run -f {} -n perf --context prod`",
        file.display()
    ));
    let knee = answer
        .out
        .split("knee: ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let knee: i64 = knee.expect("a knee").parse().expect("a number");
    assert!((90..=110).contains(&knee), "{answer:?}");
    assert_eq!(probe(&desk), None, "it is removed");
    let notes = answer.err.matches("The runs are on different nodes").count();
    assert_eq!(notes, 1, "{answer:?}");

    let text = std::fs::read_to_string(&file).expect("written");
    let places = "on n1 with 4 GPUs, n2 with 4 GPUs: 3 runs with 6 trials";
    assert!(text.contains(places), "{text}");
    let object: PerfValidation = serde_saphyr::from_str(&text).expect("a manifest");
    assert_eq!(object.metadata.name.as_deref(), Some("gpu-h200"));
    let load = i64::from(object.spec.benchmark.concurrency_per_gpu);
    assert_eq!(load, (knee * 8 + 5) / 10);
    let thresholds: Vec<_> = object
        .spec
        .gates
        .iter()
        .map(|gate| (gate.name.as_str(), gate.threshold.clone()))
        .collect();
    let throughput = load * 90 * 95 / 100;
    let ttft = ((200 + load) * 3 + 1) / 2;
    assert_eq!(
        thresholds,
        [
            ("throughput", throughput.to_string()),
            ("ttft-p99", ttft.to_string()),
            ("slowest-worker", "90".to_owned())
        ]
    );
    let again = desk.types(&format!("run -f {} --detach", file.display())).await;
    assert_eq!(again.code, 0, "the manifest is admitted: {again:?}");
}

#[tokio::test]
async fn a_manifest_with_large_workers_and_a_minimum_of_trials_is_calibrated() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mine, file) = (folder.path().join("mine.yaml"), folder.path().join("calibrated.yaml"));
    let text = std::fs::read_to_string(MANIFEST).expect("a sample");
    let mut manifest: Value = serde_saphyr::from_str(&text).expect("YAML");
    manifest["spec"]["workload"]["dynamo"]["worker"] = json!({"gpus": 2});
    manifest["spec"]["trials"] = json!({"min": 3});
    manifest["spec"]["gates"] = json!([]);
    std::fs::write(&mine, manifest.to_string()).expect("written");
    let desk = Desk::new();
    desk.server
        .fail(Fault::refuse("watch", "perfvalidations", 503).times(1));
    let run = desk.start(&format!("calibrate -f {} --output {}", mine.display(), file.display()));
    operate(&desk, &run, "Passed").await;
    let answer = run.ends().await;
    assert_eq!(answer.code, 0, "a lost watch begins again: {answer:?}");
    answer.notes("trying again");
    let text = std::fs::read_to_string(&file).expect("written");
    let object: PerfValidation = serde_saphyr::from_str(&text).expect("a manifest");
    let spec = object.spec;
    assert_eq!(
        (spec.gates.len(), spec.placement.min_gpus, spec.trials.min),
        (3, 4, Some(3))
    );
    let again = desk.types(&format!("run -f {} --detach", file.display())).await;
    assert_eq!(again.code, 0, "the manifest is admitted: {again:?}");
}

#[tokio::test]
async fn a_change_that_the_cluster_cannot_take_now_is_tried_again() {
    let desk = Desk::new();
    let busy = Fault::refuse("patch", "perfvalidations", 503);
    desk.server.fail(busy.clone().times(1));
    let run = desk.start(&format!("calibrate -f {MANIFEST}"));
    operate(&desk, &run, "Passed").await;
    let answer = run.ends().await;
    let note = "The cluster answered 503 (patch perfvalidations: fault 503); trying again.";
    answer.exits(0, note);
    answer.prints("# Measured by `kubectl perfval calibrate`");

    desk.server.fail(busy);
    let run = desk.start(&format!("calibrate -f {MANIFEST}"));
    let interrupt = async {
        run.notes(note).await;
        run.is_interrupted();
    };
    tokio::join!(operate(&desk, &run, "Passed"), interrupt);
    run.ends()
        .await
        .exits(130, "gpu-h200-calibrate is there, and may still run");
}

#[tokio::test]
async fn a_suspended_run_ends_the_search() {
    // The second one has the verdict of the load before.
    for moment in ["suspended", "passed"] {
        let desk = Desk::new();
        let run = desk.start(&format!("calibrate -f {MANIFEST}"));
        run.shows("IN FLIGHT/GPU").await;
        desk.server
            .edit("perfvalidations", "perf", "gpu-h200-calibrate", |object| {
                object["spec"]["suspend"] = json!(true);
                object["status"] = stored(moment)["status"].clone();
            });
        let answer = run.ends().await;
        answer.exits(
            3,
            "remove it with `kubectl -n perf delete perfvalidation gpu-h200-calibrate",
        );
    }
}

#[tokio::test]
async fn a_validation_that_cannot_be_deleted_spoils_no_answer() {
    let delete = |code: u16| Fault::refuse("delete", "perfvalidations", code);
    let desk = Desk::new();
    desk.server.fail(delete(503).times(1));
    let run = desk.start(&format!("calibrate -f {MANIFEST} --from 8 --to 64"));
    operate(&desk, &run, "Passed").await;
    let answer = run.ends().await;
    answer.exits(3, "no knee between 8 and 64");
    answer.notes("The cluster answered 503 (delete perfvalidations: fault 503); trying again.");
    assert_eq!(probe(&desk), None, "it is removed");

    let remove = "Remove it with `kubectl -n perf delete perfvalidation gpu-h200-calibrate`";
    for (code, is_noted) in [(404, false), (403, true)] {
        let desk = Desk::new();
        desk.server.fail(delete(code));
        let run = desk.start(&format!("calibrate -f {MANIFEST}"));
        operate(&desk, &run, "Passed").await;
        let answer = run.ends().await;
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.prints("# Measured by `kubectl perfval calibrate`");
        assert_eq!(answer.err.contains(remove), is_noted, "{code}: {answer:?}");
    }
}

#[tokio::test]
async fn a_range_without_a_knee_gives_no_manifest() {
    for (range, why) in [
        (
            "--from 8 --to 64",
            "the throughput still grows at the largest load: raise --to",
        ),
        (
            "--from 200 --to 900",
            "a larger load gives no more throughput: lower --from",
        ),
    ] {
        let desk = Desk::new();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("calibrated.yaml");
        let run = desk.start(&format!("calibrate -f {MANIFEST} {range} --output {}", file.display()));
        operate(&desk, &run, "Passed").await;
        let answer = run.ends().await;
        answer.exits(3, why);
        assert!(!file.exists(), "no empty file is left");
        assert_eq!(probe(&desk), None, "it is removed");
    }
}

#[tokio::test]
async fn a_run_that_does_not_pass_ends_the_search_with_its_reason() {
    let skipped = Desk::new();
    let run = skipped.start(&format!("calibrate -f {MANIFEST}"));
    operate(&skipped, &run, "Skipped").await;
    let answer = run.ends().await;
    answer.exits(4, "the run with 16 requests in flight per GPU ended Skipped");
    let desk = Desk::new();
    let run = desk.start(&format!("calibrate -f {MANIFEST}"));
    operate(&desk, &run, "Error").await;
    let answer = run.ends().await;
    answer.exits(4, "the run with 16 requests in flight per GPU ended Error");
    answer.notes("describe");
    let again = desk.types(&format!("calibrate -f {MANIFEST}")).await;
    assert_eq!(again.code, 2, "the object is kept, to be looked at: {again:?}");
    again.notes("perf/gpu-h200-calibrate exists: delete it");
    let range = desk.types(&format!("calibrate -f {MANIFEST} --from 64 --to 64")).await;
    assert_eq!(range.code, 2, "{range:?}");
}

#[tokio::test]
async fn a_file_that_exists_is_not_replaced_and_no_manifest_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calibrated.yaml");
    let typed = format!("calibrate -f {MANIFEST} --output {}", file.display());
    std::fs::write(&file, "mine").expect("written");
    let desk = Desk::new();
    let answer = desk.types(&typed).await;
    answer.exits(2, "exists and is not replaced: remove it, or give another file");
    assert_eq!(probe(&desk), None, "nothing is created");

    std::fs::remove_file(&file).expect("removed");
    let run = desk.start(&typed);
    run.shows("IN FLIGHT/GPU").await;
    // Another program writes it while the runs go on.
    std::fs::write(&file, "mine").expect("written");
    operate(&desk, &run, "Passed").await;
    let answer = run.ends().await;
    answer.exits(2, "exists and is not replaced");
    answer.prints("# Measured by `kubectl perfval calibrate`");
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "mine");
    assert_eq!(probe(&desk), None, "the validation is gone all the same");

    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("missing"), &link).expect("a link");
    let typed = format!("calibrate -f {MANIFEST} --output {}", link.display());
    desk.types(&typed).await.exits(2, "exists and is not replaced");
    assert!(!link.exists(), "its target is not made");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_refused_before_the_first_run() {
    let desk = Desk::new();
    let answer = desk
        .types(&format!("calibrate -f {MANIFEST} --output /nowhere/calibrated.yaml"))
        .await;
    answer.exits(2, "/nowhere/calibrated.yaml");
    assert_eq!(probe(&desk), None, "nothing is created");
}
