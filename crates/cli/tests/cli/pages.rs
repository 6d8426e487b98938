//! What only reads: get, describe, history, presets, init, completion.

use perfval_api::PerfValidation;
use serde_json::{Value, json};

use super::desk::{Desk, golden, stored};

fn two() -> Desk {
    let desk = Desk::with("passed");
    let mut other = stored("benchmarking");
    other["metadata"]["name"] = json!("nightly");
    other["metadata"]["namespace"] = json!("team-a");
    other["metadata"]["uid"] = json!("u-2");
    other["status"]["progress"] = json!({
        "percent": 62, "summary": "1: 62%", "updatedAt": "2026-09-21T14:19:50Z",
    });
    desk.server.put(other);
    desk
}

#[tokio::test]
async fn get_prints_the_columns_of_the_definition() {
    let desk = two();
    let all = desk.types("get -A").await;
    golden("get-all", &all.out);
    golden("get-wide", &desk.types("get run -o wide").await.out);
    assert_eq!((all.code, all.err.as_str()), (0, ""));
}

#[tokio::test]
async fn get_prints_objects_for_machines() {
    let desk = two();
    let json: Value = serde_json::from_str(&desk.types("get -o json").await.out).expect("JSON");
    assert_eq!(json["kind"], "List");
    assert_eq!(json["items"][0]["status"]["verdict"], "Passed");
    let one: Value = serde_json::from_str(&desk.types("get run -o json").await.out).expect("JSON");
    assert_eq!(
        (&one["kind"], &one["apiVersion"]),
        (&json!("PerfValidation"), &json!("perfvalidation.dev/v1alpha1"))
    );
    let yaml = desk.types("get nightly -n team-a -o yaml").await.out;
    let object: PerfValidation = serde_saphyr::from_str(&yaml).expect("YAML");
    assert_eq!(object.metadata.name.as_deref(), Some("nightly"));
    assert_eq!(
        desk.types("get -o name").await.out,
        "perfvalidation.perfvalidation.dev/run\n"
    );
}

#[tokio::test]
async fn an_empty_namespace_is_no_error() {
    let answer = Desk::new().types("get").await;
    assert_eq!((answer.code, answer.out.as_str()), (0, ""));
    assert_eq!(answer.err, "No PerfValidations in namespace perf.\n");
}

/// Statuses that a page is written of.
const MOMENTS: [&str; 6] = [
    "failed",
    "passed-second-run",
    "benchmarking-second-trial",
    "error",
    "suspended",
    "skipped",
];

#[tokio::test]
async fn describe_is_a_page_that_is_read_from_the_top() {
    for moment in MOMENTS {
        let answer = Desk::with(moment).types("describe").await;
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{moment}");
        golden(&format!("describe-{moment}"), &answer.out);
    }
    let mut desk = Desk::with("failed");
    (desk.unicode, desk.columns) = (false, Some(60));
    let narrow = desk.types("describe run").await.out;
    golden("describe-narrow", &narrow);
    let drawn = "█│·→■□";
    assert!(!narrow.contains(|c| drawn.contains(c)), "only ASCII is drawn: {narrow}");
}

/// Names as long as real ones.
fn long_names(object: &mut Value) {
    let status = &mut object["status"];
    status["operatorState"]["environment"]["imageDigest"] = json!(format!("sha256:{}", "442149e7".repeat(8)));
    for (number, worker) in (0..).zip(status["operatorState"]["workers"].as_array_mut().into_iter().flatten()) {
        worker["name"] = json!(format!("pv-86f71700-worker-56b95db9f6-2mkl{number}"));
        worker["percentOfPeers"] = json!({"percent": "93", "within": "4.8", "of": 1});
    }
    for trial in status["operatorState"]["trials"].as_array_mut().into_iter().flatten() {
        trial["causes"] = json!(["FrontendBound", "SlowWorker", "UnsteadySpeed"]);
    }
}

#[tokio::test]
async fn no_line_of_a_page_is_longer_than_the_terminal_and_nothing_is_cut() {
    for moment in MOMENTS {
        let mut desk = Desk::with(moment);
        desk.server.edit("perfvalidations", "perf", "run", long_names);
        desk.columns = Some(160);
        let words = |page: &str| page.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let wide = words(&desk.types("describe run").await.out);
        for columns in [120, 80, 60, 40, 20] {
            desk.columns = Some(columns);
            let page = desk.types("describe run").await.out;
            for line in page.lines() {
                assert!(line.chars().count() <= columns, "{moment}, {columns}: {line}\n{page}");
            }
            assert!(!page.contains('…'), "{moment}, {columns}:\n{page}");
            // Bars are shorter, and what is longer than a line is in several.
            let all = words(&page).concat();
            let lost = wide.iter().find(|word| !word.contains('│') && !all.contains(*word));
            assert_eq!(lost, None, "{moment}, {columns}:\n{page}");
        }
    }
}

#[tokio::test]
async fn describe_shows_what_a_pass_rules_out() {
    let desk = Desk::new();
    let mut passed = stored("passed");
    let gate = passed["spec"]["gates"][0]["name"].clone();
    passed["spec"]["trials"] = json!({"rule": "Sequential"});
    let mut trial = passed["status"]["operatorState"]["trials"][0].clone();
    trial["marginPercent"] = json!("33.3");
    let mut second = trial.clone();
    second["number"] = json!(2);
    passed["status"]["operatorState"]["trials"] = json!([trial, second]);
    desk.server.put(passed);
    let page = desk.types("describe run").await.in_one_line();
    let words = format!(
        "A pass rules this out: {} 43 % lower would have failed in at least 95 of 100 runs (noise up to 10 %).",
        gate.as_str().expect("a name")
    );
    assert!(page.contains(&words), "{page}");
    // The distances of the trials are of the gates before the edit.
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["spec"]["suspend"] = json!(true);
    });
    let page = desk.types("describe run").await.out;
    assert!(
        page.contains("the spec was edited") && !page.contains("rules this out"),
        "{page}"
    );
}

#[tokio::test]
async fn describe_shows_why_a_run_is_not_compared() {
    let desk = Desk::with("passed-second-run");
    for (comparison, lines) in [
        (
            json!({"run": 3}),
            "not compared with run 3: a trial measured no throughput\n",
        ),
        (
            json!({"run": 3, "differs": ["gpus 2, now 4", "model a, now b"]}),
            "not compared with run 3: gpus 2, now 4 (and 1 more differences)\n  gpus 2, now 4\n  model a, now b\n",
        ),
    ] {
        desk.server.edit("perfvalidations", "perf", "run", |object| {
            object["status"]["operatorState"]["comparison"] = comparison;
        });
        let page = desk.types("describe run").await.out;
        assert!(page.contains(&format!("\nComparison\n  {lines}")), "{page}");
    }
}

#[tokio::test]
async fn history_lists_every_run() {
    let answer = Desk::with("passed-second-run").types("history").await;
    golden("history", &answer.out);
    let none = Desk::with("pending").types("history").await;
    assert_eq!(none.code, 0);
}

#[tokio::test]
async fn history_is_written_for_scripts_too() {
    let desk = Desk::with("passed-second-run");
    let json = desk.types("history -o json").await.json();
    assert_eq!((&json["namespace"], &json["name"]), (&json!("perf"), &json!("run")));
    assert_eq!(
        json["runs"][0],
        json!({
            "run": 2, "verdict": "Passed", "reason": "GatesMet", "outputTokensPerSecond": 2000, "ttftP99Milliseconds": 265,
            "seconds": 15, "completedAt": "2026-09-21T14:13:54Z", "environment": "508aa5da404d",
        })
    );
    assert_eq!(json["runs"][1]["run"], 1);
    let yaml = desk.types("history run -o yaml").await.out;
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).expect("YAML"), json);
    // The mean over the trials, as for a run before it, and not the trial that decided.
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        let trials = &mut object["status"]["operatorState"]["trials"];
        let mut second = trials[0].clone();
        (second["number"], second["throughput"]) = (json!(2), json!("1000"));
        *trials = json!([trials[0], second]);
        object["status"]["metrics"]["outputTokensPerSecond"] = json!(1000);
    });
    let json = desk.types("history -o json").await.json();
    assert_eq!(json["runs"][0]["outputTokensPerSecond"], 1500);
    let running = Desk::with("benchmarking").types("history -o json").await.json();
    assert_eq!(running["runs"][0].get("completedAt"), None, "it goes on");
    assert_eq!(running["runs"][0].get("verdict"), None, "it goes on");
    let suspended = Desk::with("suspended").types("history -o json").await.json();
    let last = &suspended["runs"][0];
    assert_eq!(
        (&last["completedAt"], &last["seconds"]),
        (&json!("2026-09-21T14:13:31Z"), &json!(10))
    );
    let desk = Desk::new();
    let mut fresh = stored("pending");
    fresh["status"] = Value::Null;
    desk.server.put(fresh);
    let none = desk.types("history -o json").await;
    assert_eq!((none.code, &none.json()["runs"]), (0, &json!([])));
    let none = desk.types("history").await;
    assert_eq!((none.code, none.out.as_str()), (0, ""));
    assert!(none.err.starts_with("run has not run yet; "), "{}", none.err);
}

#[tokio::test]
async fn presets_are_the_samples() {
    let desk = Desk::new();
    golden("presets", &desk.types("presets").await.out);
    let one = desk.types("presets H200").await;
    assert_eq!(
        one.out,
        std::fs::read_to_string("../../config/samples/gpu-h200.yaml").expect("a sample")
    );
    let none = desk.types("presets v100").await;
    none.exits(2, "there is no preset v100: there are h100-80gb");
}

#[tokio::test]
async fn init_asks_for_missing_flags_and_never_replaces_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.yaml");
    let mut desk = Desk::new();
    desk.answers = Some("h200\nmine\n\n\n");
    let answer = desk.types(&format!("init -f {}", path.display())).await;
    assert_eq!(answer.code, 0, "{}", answer.err);
    let written = std::fs::read_to_string(&path).expect("written");
    let object: PerfValidation = serde_saphyr::from_str(&written).expect("YAML");
    assert_eq!(object.metadata.name.as_deref(), Some("mine"));
    assert!(written.starts_with("# A node with H200"), "{written}");
    let again = desk.types(&format!("init --preset gb200 -f {}", path.display())).await;
    again.exits(2, "exists and is not replaced: remove it, or give another file");
    assert!(!again.err.contains("Name ["), "no question before: {}", again.err);
    assert_eq!(std::fs::read_to_string(&path).expect("written"), written);
    let printed = Desk::new().types("init --preset h200 --name mine -f -").await;
    printed.prints("metadata:\n  name: \"mine\"\n");
    let refused = folder.path().join("refused.yaml");
    let typed = format!("init --preset h200 --name A_B -f {}", refused.display());
    let answer = Desk::new().types(&typed).await;
    answer.exits(
        2,
        "metadata.name: \"A_B\": write lower-case letters, digits, '-' and '.'",
    );
    assert!(!refused.exists() && !std::path::Path::new("-").exists());
    let unasked = Desk::new().types("init").await;
    unasked.notes("for h100-80gb; --preset");
}

#[tokio::test]
async fn a_manifest_is_read_before_the_first_call() {
    let mut desk = Desk::new();
    desk.has_cluster = false;
    for verb in ["run", "doctor", "calibrate"] {
        let answer = desk.types(&format!("{verb} -f absent.yaml")).await;
        answer.notes("absent.yaml");
    }
}

#[tokio::test]
async fn every_shell_gets_completions_of_every_verb() {
    for shell in ["bash", "zsh", "fish"] {
        let answer = Desk::new().types(&format!("completion {shell}")).await;
        answer.prints("clean-up");
        answer.prints("doctor");
    }
}
