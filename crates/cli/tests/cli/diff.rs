//! Two runs beside each other.

use serde_json::{Value, json};

use super::desk::{Desk, golden, stored};

/// A results ConfigMap of run 1 of the validation that has run twice.
fn results(data: &Value) -> Value {
    let id = perfval_run::names::run_id("u-1", 1);
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("run-{id}"), "namespace": "perf"},
        "data": data,
    })
}

fn saved(summary: &Value) -> Value {
    results(&json!({"summary.json": summary.to_string()}))
}

fn trial(number: i64, throughput: &str, ttft: &str) -> Value {
    json!({"number": number, "outcome": "Pass", "throughput": throughput, "ttftP99Ms": ttft, "startedAt": "2026-09-20T14:13:40Z"})
}

fn twice() -> Desk {
    let desk = Desk::with("passed-second-run");
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["status"]["operatorState"]["trials"] = json!([trial(1, "1500", "210"), trial(2, "1520", "205.5")]);
        object["status"]["operatorState"]["trials"][1]["causes"] = json!(["SlowWorker"]);
    });
    desk
}

/// Two runs with trials of both, on different drivers.
pub fn two_runs() -> Desk {
    let desk = twice();
    let earlier = stored("passed")["status"].clone();
    let mut environment = earlier["operatorState"]["environment"].clone();
    environment["gpuDriver"] = json!("535.1");
    let summary = json!({
        "verdict": "Passed", "reason": "GatesMet", "metrics": earlier["operatorState"]["metrics"], "gates": earlier["gates"],
        "placement": earlier["placement"], "environment": environment,
        "trials": [trial(1, "1600", "207"), trial(2, "1610.5", "203"), {"number": 3, "outcome": "Invalid", "startedAt": "2026-09-20T14:13:40Z"}],
    });
    desk.server.put(saved(&summary));
    desk
}

#[tokio::test]
async fn two_runs_are_shown_with_their_spread_and_what_differs() {
    let desk = two_runs();
    let answer = desk.types("diff run").await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    golden("diff", &answer.out);
    assert_eq!(
        desk.types("diff run/1 run/2").await.out,
        answer.out,
        "the last two are meant"
    );
    let same = desk.types("diff run run").await;
    same.prints("Both ran on the same");
}

#[tokio::test]
async fn a_script_gets_the_numbers_with_their_spread() {
    let desk = twice();
    let summary = json!({
        "verdict": "Failed", "reason": "GatesMissed", "trials": [trial(1, "1600", "207"), trial(2, "1610.5", "203")],
        "gates": [{"name": "throughput", "observed": "1600", "effective": "1000", "result": "Met"}],
    });
    desk.server.put(saved(&summary));
    let answer = desk.types("diff run -o json").await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let json = answer.json();
    assert_eq!(
        json["before"],
        json!({"run": "run/1", "verdict": "Failed", "reason": "GatesMissed", "trials": 2, "measured": 2, "causes": []})
    );
    assert_eq!(json["after"]["causes"], json!(["SlowWorker"]));
    assert_eq!(json["after"]["placement"]["node"], "n1");
    assert_eq!(
        json["metrics"][0],
        json!({
            "name": "throughput", "changePercent": "-5.9", "chancePercent": "28", "withinSpread": true,
            "before": {"mean": "1605.25", "least": "1600", "most": "1610.5", "trials": 2},
            "after": {"mean": "1510", "least": "1500", "most": "1520", "trials": 2},
        })
    );
    let ttft = &json["metrics"][1];
    assert_eq!(
        (&ttft["name"], &ttft["withinSpread"]),
        (&json!("ttftP99Ms"), &json!(true))
    );
    assert_eq!(json["gates"][0]["changePercent"], "25");
    assert_eq!(json["gates"][0]["after"]["result"], "Met");
    assert_eq!(json.get("differs"), None, "what run 1 ran on is not known");
    let same = desk.types("diff run run -o json").await.json();
    assert_eq!(same["differs"], json!([]));
    let yaml = desk.types("diff run --output yaml").await.out;
    assert!(yaml.starts_with("before:\n"), "JSON is YAML too: {yaml}");
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).expect("YAML"), json);
}

/// Ranges of two trials each lie apart in every third pair of equal runs.
#[tokio::test]
async fn a_change_is_marked_only_where_chance_does_not_explain_it() {
    let desk = twice();
    let first = trial(1, "2500", "207");
    // A soak is another measurement.
    let mut soak = trial(3, "100", "207");
    soak["soak"] = json!(true);
    let within = "within the ± 28 % that equal runs differ by";
    for (trials, note) in [
        (json!([trial(1, "1550", "207"), trial(2, "1560", "207")]), within),
        (json!([trial(1, "1550", "207"), trial(2, "1560", "207"), soak]), within),
        (
            json!([first, trial(2, "2510", "207")]),
            "more than the ± 28 % that equal runs differ by",
        ),
        (json!([first]), "too few trials to compare"),
    ] {
        let summary = json!({"verdict": "Passed", "reason": "GatesMet", "trials": trials});
        desk.server.put(saved(&summary));
        let answer = desk.types("diff run").await;
        let line = answer.out.lines().find(|line| line.starts_with("tok/s"));
        let shown = line.and_then(|line| line.split_once("%, ")).map(|(_, note)| note);
        assert_eq!(shown, Some(note), "{summary}");
    }
    // The largest number, whose sum has no representation.
    let largest = "79228162514264337593543950335";
    let trials = json!([trial(1, largest, "207"), trial(2, largest, "207")]);
    let summary = json!({"verdict": "Passed", "reason": "GatesMet", "trials": trials});
    desk.server.put(saved(&summary));
    let answer = desk.types("diff run").await;
    assert_eq!(answer.code, 0, "{answer:?}");
    let line = answer.out.lines().find(|line| line.starts_with("tok/s"));
    let cells: Vec<_> = line.expect("a line").split_whitespace().collect();
    assert_eq!(cells[1..3], ["-", "1510.0"], "{answer:?}");
}

#[tokio::test]
async fn missing_results_and_results_of_another_version_are_reported() {
    let desk = twice();
    let gone = desk.types("diff run").await;
    gone.exits(2, "run 1 of run has no saved results");
    gone.notes("a run that only judged again has none");
    for (data, said) in [
        (
            json!({"summary.json": "{\"trials\": 7}"}),
            "summary.json cannot be read, perhaps because another version of the operator wrote it: invalid type: integer `7`",
        ),
        (
            json!({"summary.json": "not json"}),
            "summary.json cannot be read, perhaps because another version of the operator wrote it: expected ident",
        ),
        (
            json!({"report.txt": "old"}),
            "it has no summary.json: perhaps another version of the operator wrote it",
        ),
    ] {
        desk.server.put(results(&data));
        desk.types("diff run").await.exits(2, said);
    }
}

#[tokio::test]
async fn a_run_without_results_of_its_own_is_passed_over() {
    let desk = two_runs();
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["status"]["run"]["number"] = json!(3);
        let history = &mut object["status"]["operatorState"]["history"];
        let mut judged = history[0].clone();
        judged["run"] = json!(2);
        *history = json!([judged, history[0]]);
    });
    let answer = desk.types("diff run").await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    answer.prints("run/1                       run/3");
}

#[tokio::test]
async fn a_missing_run_is_reported() {
    let desk = Desk::with("passed");
    for (words, said) in [
        ("diff run", "run has one run only"),
        ("diff run/x run", "run/x is no run: write NAME, or NAME/RUN"),
        ("diff run/x", "run/x is no run"),
        ("diff run/1/2", "run/1/2 is no run"),
        ("diff /", "/ is no run"),
        ("diff run/1", "run/1 is one run: name another one"),
        ("diff run other", "there is no PerfValidation other in namespace perf"),
    ] {
        let answer = desk.types(words).await;
        answer.exits(2, said);
    }
}

#[tokio::test]
async fn runs_that_measured_nothing_are_shown_too() {
    for moment in ["error", "skipped", "sizing"] {
        let answer = Desk::with(moment).types("diff run run").await;
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{moment}");
        let numbers: Vec<_> = answer.out.lines().filter(|line| line.starts_with("tok/s")).collect();
        assert!(
            matches!(numbers[..], [line] if line.split_whitespace().eq(["tok/s", "-", "-"])),
            "{moment}: {}",
            answer.out
        );
    }
}
