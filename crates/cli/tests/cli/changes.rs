//! What changes a validation: exactly what the documentation does with kubectl.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::desk::Desk;

fn object(desk: &Desk) -> Value {
    desk.server.get("perfvalidations", "perf", "run").expect("it is there")
}

#[tokio::test]
async fn suspend_and_resume_change_one_field() {
    let desk = Desk::with("benchmarking");
    let before = object(&desk);
    let answer = desk.types("suspend").await;
    assert_eq!(answer.code, 0);
    answer.prints("kubectl perfval resume run");
    assert_eq!(object(&desk)["spec"]["suspend"], json!(true));
    assert!(desk.types("suspend run").await.out.contains("suspended already"));
    assert_eq!(desk.types("resume run").await.code, 0);
    assert_eq!(object(&desk)["spec"], before["spec"]);
    assert!(desk.types("resume run").await.out.contains("is not suspended"));
}

#[tokio::test]
async fn what_to_type_next_names_the_namespace() {
    let mut desk = Desk::with("benchmarking");
    desk.namespace = "default";
    for verb in [
        "resume", "suspend", "suspend", "rerun", "resume", "keep", "logs", "diff",
    ] {
        let answer = desk.types(&format!("{verb} run -n perf")).await;
        let said = answer.out + &answer.err;
        let next = said.split('`').skip(1).step_by(2);
        for next in next.filter(|next| next.starts_with("kubectl perfval")) {
            assert!(next.ends_with("run -n perf"), "{verb}: {said}");
        }
        let already = said.contains("already");
        assert!(already || said.contains("`kubectl perfval"), "{verb}: {said}");
    }
}

#[tokio::test]
async fn what_to_type_next_reaches_the_same_cluster() {
    let desk = Desk::with("benchmarking");
    let flags = "--context prod --kubeconfig k.yaml --as jane";
    for (words, next) in [
        ("suspend run", "`kubectl perfval resume run -n perf FLAGS`"),
        ("describe run", "kubectl perfval resume run -n perf FLAGS\n"),
        ("describe no", "`kubectl perfval FLAGS get -A` lists all"),
    ] {
        let answer = desk.types(&format!("{words} {flags}")).await;
        let said = answer.out + &answer.err;
        let next = next.replace("FLAGS", flags);
        assert!(said.contains(&next), "{words}: no {next} in {said}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.yaml");
    let words = format!("init --preset h200 -f {} {flags}", file.display());
    let next = format!("`kubectl perfval run -f {} {flags}`", file.display());
    desk.types(&words).await.prints(&next);
}

#[tokio::test]
async fn a_validation_that_is_being_deleted_is_not_changed() {
    let desk = Desk::with("benchmarking");
    desk.server.delete("perfvalidations", "perf", "run");
    let before = object(&desk);
    let wait = "`kubectl --context prod wait --for=delete perfvalidation/run -n perf --timeout=10m`, then try again";
    for verb in ["rerun", "rerun --watch", "suspend", "resume", "keep", "clean-up"] {
        let answer = desk.types(&format!("{verb} run --context prod")).await;
        answer.exits(2, &format!("perf/run is being deleted: {wait}"));
        assert_eq!(answer.out, "", "{verb}");
    }
    assert_eq!(object(&desk), before);
}

#[tokio::test]
async fn a_rerun_has_a_token_of_its_own() {
    let mut desk = Desk::with("passed");
    for _ in 0..2 {
        assert_eq!(desk.types("rerun run").await.code, 0);
        let token = &object(&desk)["metadata"]["annotations"]["perfvalidation.dev/rerun"];
        assert_eq!(token, &json!(desk.moment.timestamp_millis().to_string()));
        desk.moment += TimeDelta::milliseconds(1);
    }
}

#[tokio::test]
async fn a_validation_without_an_active_run_is_suspended_and_rerun() {
    let desk = Desk::with("passed");
    let suspended = desk.types("suspend run").await;
    suspended.prints("run is suspended; no run was active; go on with `kubectl perfval resume run -n perf`");
    let rerun = desk.types("rerun run").await;
    rerun.exits(
        0,
        "run will run when it is resumed: `kubectl perfval resume run -n perf`",
    );
    assert_eq!(rerun.out, "", "it does not run yet");
    // Nothing would ever be shown.
    desk.types("rerun run --watch").await.exits(3, "run is suspended; ");
}

#[tokio::test]
async fn clean_up_removes_kept_objects() {
    let desk = Desk::with("benchmarking");
    assert!(desk.types("clean-up run").await.out.contains("is not kept"));
    let kept = desk.types("keep run").await;
    kept.prints("holds 2 GPUs of n1");
    let annotations = |desk: &Desk| object(desk)["metadata"]["annotations"].clone();
    assert_eq!(annotations(&desk)["perfvalidation.dev/no-cleanup"], json!("true"));
    let removed = desk.types("clean-up run").await;
    assert_eq!(removed.code, 0);
    removed.prints("the operator removes what run kept");
    assert_eq!(annotations(&desk)["perfvalidation.dev/no-cleanup"], Value::Null);
    let late = Desk::with("passed").types("keep run").await;
    late.prints("are removed already");
    let removal = "the objects of run are being removed; those of its next run stay";
    for (phase, leftovers, words) in [
        ("CleaningUp", Value::Null, removal),
        ("Completed", json!("Overdue"), removal),
        ("Completed", json!("Kept"), "holds 2 GPUs of n1"),
    ] {
        let desk = Desk::with("failed");
        desk.server.edit("perfvalidations", "perf", "run", |object| {
            let status = &mut object["status"];
            status["phase"] = json!(phase);
            status["operatorState"]["leftovers"] = leftovers;
            for condition in status["conditions"].as_array_mut().expect("conditions") {
                if condition["type"] == "CleanedUp" {
                    condition["status"] = json!("False");
                }
            }
        });
        desk.types("keep run").await.prints(words);
    }
}

#[tokio::test]
async fn the_only_validation_needs_no_name_and_one_of_several_does() {
    let desk = Desk::with("passed");
    assert_eq!(desk.types("suspend").await.code, 0);
    let mut other = super::desk::stored("failed");
    other["metadata"]["name"] = json!("other");
    other["metadata"]["uid"] = json!("u-2");
    desk.server.put(other);
    let answer = desk.types("suspend").await;
    assert_eq!(answer.code, 2);
    assert_eq!(
        answer.err,
        "kubectl perfval: namespace perf has 2 PerfValidations: name one of other, run\n"
    );
}
