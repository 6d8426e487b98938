//! The approval of a baseline.

use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use super::desk::{Desk, golden};
use super::pty::Terminal;

fn revision(number: i64, centre: &str, nodes: i64) -> Value {
    json!({
        "revision": number, "createdAt": "2026-09-20T10:00:00Z", "nodes": nodes, "gpus": 8 * nodes, "excludedNodes": 1,
        "metrics": [{
            "name": "DecodeSpeed", "centre": centre, "spread": {"nodePercent": "0.61"},
            "nodes": nodes, "gpus": 8 * nodes,
        }],
    })
}

/// Cluster with a baseline whose second revision waits.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.server.put(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfBaseline", "metadata": {"name": "h100"},
        "spec": {
            "environment": {"digest": "0123456789ab", "product": "NVIDIA-H100-80GB-HBM3"}, "source": "Learned",
            "approvedRevision": 1,
        },
        "status": {"observedGeneration": 1, "newest": revision(2, "119.5", 12), "approved": revision(1, "125.1", 3)},
    }));
    desk
}

fn approved(desk: &Desk) -> Value {
    desk.server.get("perfbaselines", "", "h100").expect("there")["spec"]["approvedRevision"].clone()
}

#[tokio::test]
async fn a_person_sees_what_changes_before_an_answer() {
    let mut desk = desk();
    desk.answers = Some("n\n");
    let answer = desk.types("approve h100").await;
    answer.exits(0, "Approve revision 2? [y/N]");
    golden("approve", &answer.out);
    assert_eq!(approved(&desk), 1);
    desk.answers = Some("y\n");
    let answer = desk.types("approve h100").await;
    assert_eq!((answer.code, approved(&desk)), (0, json!(2)));
    answer.prints("revision 2 of h100 is approved");
}

#[tokio::test]
async fn a_script_names_the_revision() {
    let desk = desk();
    let unseen = desk.types("approve h100").await;
    assert_eq!((unseen.code, approved(&desk)), (2, json!(1)));
    unseen.notes("kubectl perfval approve h100 --revision 2");
    let path = desk.types("approve h100/status --revision 2").await;
    path.exits(2, "there is no PerfBaseline h100/status");
    assert_eq!(approved(&desk), 1);
    let again = desk.types("approve h100 --revision 1").await;
    assert_eq!((again.code, approved(&desk)), (0, json!(1)));
    again.prints("approved already");
    let answer = desk.types("approve h100 --revision 2").await;
    assert_eq!((answer.code, approved(&desk)), (0, json!(2)));
}

#[tokio::test]
async fn a_script_that_does_not_read_the_page_approves_too() {
    let mut desk = desk();
    desk.nobody_reads = true;
    let answer = desk.types("approve h100 --revision 2").await;
    assert_eq!((answer.code, approved(&desk)), (0, json!(2)), "{answer:?}");
}

#[tokio::test]
async fn a_duplicate_shows_which_baseline_counts() {
    let desk = desk();
    let used = "PerfBaseline contract of the same environment is used, because it is older.";
    desk.server.edit("perfbaselines", "", "h100", |baseline| {
        baseline["status"]["conditions"] = json!([{
            "type": "Approved", "status": "False", "reason": "Duplicate", "message": used,
            "lastTransitionTime": "2026-09-20T10:00:00Z",
        }]);
    });
    let answer = desk.types("approve h100 --revision 2").await;
    assert_eq!((answer.code, approved(&desk)), (0, json!(2)));
    answer.notes(used);
    answer.prints("only the older one counts: delete the other");
}

#[tokio::test]
async fn a_revision_that_does_not_exist_is_refused() {
    let desk = desk();
    for (words, why) in [
        ("approve h100 --revision 7", "has no revision 7: the newest is 2"),
        (
            "approve h200",
            "there is no PerfBaseline h200: `kubectl get perfbase` lists all",
        ),
    ] {
        let answer = desk.types(words).await;
        answer.exits(2, why);
    }
    desk.server.edit("perfbaselines", "", "h100", |baseline| {
        baseline["status"] = json!({"observedGeneration": 1, "conditions": [{
            "type": "Learned", "status": "False", "reason": "TooFewNodes", "message": "A baseline needs 3 nodes.",
            "lastTransitionTime": "2026-09-20T10:00:00Z",
        }]});
    });
    let answer = desk.types("approve h100").await;
    answer.exits(2, "no revision to approve. A baseline needs 3 nodes.");
    assert_eq!(approved(&desk), 1);
}

#[tokio::test]
async fn an_unread_spec_has_no_revision_to_approve() {
    let desk = desk();
    desk.server.edit("perfbaselines", "", "h100", |baseline| {
        baseline["status"]["observedGeneration"] = json!(-1);
    });
    let answer = desk.types("approve h100 --revision 2").await;
    assert_eq!((answer.code, approved(&desk)), (2, json!(1)));
    answer.notes("has not read PerfBaseline h100 yet");
}

#[tokio::test]
async fn a_missing_right_names_its_role_and_a_change_in_between_approves_nothing() {
    let desk = desk();
    let forbidden = "perfbaselines.perfvalidation.dev \"h100\" is forbidden: User \"jane\" cannot patch resource \"perfbaselines\" in API group \"perfvalidation.dev\" at the cluster scope";
    desk.server
        .fail(Fault::refuse("patch", "perfbaselines", 403).saying(forbidden).times(1));
    let answer = desk.types("approve h100 --revision 2").await;
    answer.exits(4, "perfvalidation-operator-baseline-approve");
    desk.server.fail(Fault::refuse("patch", "perfbaselines", 409).times(1));
    let answer = desk.types("approve h100 --revision 2").await;
    assert_eq!((answer.code, approved(&desk)), (2, json!(1)));
    answer.notes("has changed since it was read");
}

#[test]
fn a_revision_that_is_replaced_before_the_answer_is_not_approved() {
    let desk = desk();
    let mut person = Terminal::start(&desk.server, 120, "xterm-256color", "approve h100");
    person.shows("Approve revision 2? [y/N]");
    desk.server.edit("perfbaselines", "", "h100", |baseline| {
        baseline["status"]["newest"] = revision(3, "90", 12);
    });
    person.types("y\n");
    person.shows("has changed since it was read");
    assert_eq!((person.ends(), approved(&desk)), (2, json!(1)));
}
