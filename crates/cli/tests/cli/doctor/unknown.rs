//! Checks that cannot be made: neither a success nor a gap.

use perfval_testkit::api_server::Fault;

use super::super::desk::stored;
use super::{QUICK, healthy};

#[tokio::test]
async fn each_unreadable_part_shows_a_command_to_type() {
    for verb in ["list", "get", "create"] {
        let desk = healthy();
        desk.server.fail(Fault::refuse(verb, "*", 403));
        let answer = desk.types(QUICK).await;
        let lines: Vec<_> = answer.out.lines().collect();
        let mut unknown = 0;
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("  ? ")) {
            unknown += 1;
            // The rest of a long line is under its beginning.
            let next = lines[at + 1..]
                .iter()
                .find(|line| !line.starts_with("     ") || line.contains('→'));
            assert!(
                next.is_some_and(|next| next.starts_with("       → kubectl ")),
                "{line}: {}",
                answer.out
            );
        }
        assert!(unknown > 0, "{verb}: {}", answer.out);
        assert_ne!(answer.code, 0, "{verb}: {}", answer.out);
    }
}

#[tokio::test]
async fn a_check_without_an_answer_is_no_success_and_hides_no_gap() {
    let desk = healthy();
    desk.server.fail(Fault::refuse("list", "nodes", 403));
    let unknown = desk.types("doctor -o json").await;
    assert_eq!((unknown.code, unknown.json()["missing"].as_i64()), (4, Some(0)));

    desk.server.fail(Fault::refuse("create", "perfvalidations", 403));
    // The API server answers about the first right only.
    let others = Fault::refuse("create", "selfsubjectaccessreviews", 503).skip(1);
    desk.server.fail(others);
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 1, "{}", answer.out);
    answer.prints("✗  in perf you may not run\n");
    answer.prints("?  the GPUs:");
}

#[tokio::test]
async fn a_definition_that_cannot_be_read_is_not_hidden_by_one_of_another_version() {
    let desk = healthy();
    let name = "perfvalidations.perfvalidation.dev";
    desk.server.edit("customresourcedefinitions", "", name, |crd| {
        crd["spec"]["versions"][0]["schema"] = serde_json::json!({"openAPIV3Schema": {"type": "object"}});
    });
    let unread = Fault::refuse("get", "customresourcedefinitions", 503);
    desk.server
        .fail(unread.named("perfvalidationpolicies.perfvalidation.dev"));
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 4, "{}", answer.out);
    answer.prints("?  PerfValidationPolicy: the cluster answered 503");
}

#[tokio::test]
async fn definitions_that_a_person_may_not_read_are_no_gap() {
    let desk = healthy();
    let refused = Fault::refuse("get", "customresourcedefinitions", 403);
    desk.server.fail(refused.named("perfvalidations.perfvalidation.dev"));
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 0, "{}", answer.out);
    answer.prints("✓  the cluster serves PerfValidations\n");
}

#[tokio::test]
async fn an_object_that_this_program_cannot_parse_is_no_gap() {
    let desk = healthy();
    let mut object = stored("passed");
    object["status"]["verdict"] = "Splendid".into();
    desk.server.put(object);
    let answer = desk.types("doctor").await;
    assert_eq!(answer.code, 0, "{}", answer.out);
    answer.prints("✓  the cluster serves PerfValidations in this program's version\n");
}
