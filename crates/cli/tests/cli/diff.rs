//! Two runs beside each other.

use serde_json::{Value, json};

use super::desk::{Desk, golden, stored};

/// The results of run 1 of the validation that has run twice.
fn saved(summary: &str) -> Value {
    let id = perfval_run::names::run_id("u-1", 1);
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("run-{id}"), "namespace": "perf"},
        "data": {"summary.json": summary},
    })
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
    desk.server.put(saved(&summary.to_string()));
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
    assert!(same.out.contains("Both ran on the same"), "{}", same.out);
}

#[tokio::test]
async fn a_script_gets_the_numbers_with_their_spread() {
    let desk = twice();
    let summary = json!({
        "verdict": "Failed", "reason": "GatesMissed", "trials": [trial(1, "1600", "207"), trial(2, "1610.5", "203")],
        "gates": [{"name": "throughput", "observed": "1600", "effective": "1000", "result": "Met"}],
    });
    desk.server.put(saved(&summary.to_string()));
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
    let last_line = |numbers: &[&str]| {
        let trials: Vec<Value> = (1..)
            .zip(numbers)
            .map(|(number, tokens)| trial(number, tokens, "207"))
            .collect();
        let summary = json!({"verdict": "Passed", "reason": "GatesMet", "trials": trials});
        desk.server.put(saved(&summary.to_string()));
    };
    let told = |out: &str| {
        let line = out
            .lines()
            .find(|line| line.starts_with("tok/s"))
            .expect("a line")
            .to_owned();
        line.split_once("%, ").expect("a note").1.to_owned()
    };
    for (before, note) in [
        (&["1550", "1560"][..], "within the ± 28 % that equal runs differ by"),
        (&["2500", "2510"], "more than the ± 28 % that equal runs differ by"),
        (&["2500"], "too few trials to compare"),
    ] {
        last_line(before);
        assert_eq!(told(&desk.types("diff run").await.out), note, "{before:?}");
    }
    // A soak is another measurement.
    let mut soak = trial(3, "100", "207");
    soak["soak"] = json!(true);
    let trials = json!([trial(1, "1550", "207"), trial(2, "1560", "207"), soak]);
    let summary = json!({"verdict": "Passed", "reason": "GatesMet", "trials": trials});
    desk.server.put(saved(&summary.to_string()));
    assert_eq!(
        told(&desk.types("diff run").await.out),
        "within the ± 28 % that equal runs differ by"
    );
}

#[tokio::test]
async fn results_that_are_gone_or_of_another_version_are_said() {
    let desk = twice();
    let gone = desk.types("diff run").await;
    assert_eq!(gone.code, 2);
    assert!(gone.err.contains("run 1 of run has no saved results"), "{}", gone.err);
    for (summary, said) in [
        (
            "{\"trials\": 7}",
            "summary.json cannot be read, perhaps because another version of the operator wrote it: invalid type: integer `7`",
        ),
        (
            "not json",
            "summary.json cannot be read, perhaps because another version of the operator wrote it: expected ident",
        ),
    ] {
        desk.server.put(saved(summary));
        let answer = desk.types("diff run").await;
        assert_eq!(answer.code, 2, "{summary}");
        assert!(answer.err.contains(said), "{}", answer.err);
    }
    desk.server.put(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"report.txt": "old"},
        "metadata": {"name": format!("run-{}", perfval_run::names::run_id("u-1", 1)), "namespace": "perf"}}),
    );
    let answer = desk.types("diff run").await;
    assert!(
        answer
            .err
            .contains("it has no summary.json: perhaps another version of the operator wrote it"),
        "{}",
        answer.err
    );
}

#[tokio::test]
async fn a_run_that_is_not_there_is_said() {
    let desk = Desk::with("passed");
    for (words, said) in [
        ("diff run", "run has one run only"),
        ("diff run/x run", "run/x is no run: write NAME, or NAME/RUN"),
        ("diff run other", "there is no PerfValidation other in namespace perf"),
    ] {
        let answer = desk.types(words).await;
        assert_eq!(answer.code, 2, "{words}");
        assert!(answer.err.contains(said), "{}", answer.err);
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
