use std::time::Duration;

use perfval_operator::leader::Candidate;
use perfval_testkit::api_server::{ApiServer, Fault};
use tokio::time::{Instant, timeout};

fn candidate(server: &ApiServer, me: &str) -> Candidate {
    Candidate::new(server.client(), "operators", "lease", me.to_owned())
}

fn holder(server: &ApiServer) -> String {
    server.get("leases", "operators", "lease").unwrap_or_default()["spec"]["holderIdentity"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

// The clock is paused: it jumps to the next timer whenever every task waits.

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_once_and_a_silent_one_after_its_duration() {
    let server = ApiServer::new();
    let (mut first, mut second, mut third) = (
        candidate(&server, "first"),
        candidate(&server, "second"),
        candidate(&server, "third"),
    );
    first.acquire().await;
    assert!(
        timeout(Duration::from_secs(10), second.acquire()).await.is_err(),
        "two leaders"
    );
    assert_eq!(holder(&server), "first");

    first.release().await;
    second.acquire().await;
    assert_eq!(holder(&server), "second");

    let silent_since = Instant::now();
    third.acquire().await;
    assert_eq!(holder(&server), "third");
    assert!(
        silent_since.elapsed() >= Duration::from_secs(15),
        "a record is good for 15 s: {:?}",
        silent_since.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_record_was_written_without_an_answer_is_given_back() {
    let server = ApiServer::new();
    server.fail(Fault::lose_answer("create", "leases").times(1));
    let mut stopped = candidate(&server, "stopped");
    let acquired = timeout(Duration::from_secs(1), stopped.acquire()).await;
    assert!(acquired.is_err(), "it has no answer");
    assert_eq!(holder(&server), "stopped");
    stopped.release().await;
    assert_eq!(holder(&server), "");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_renews_stays_leader() {
    let server = ApiServer::new();
    let (mut leader, mut other) = (candidate(&server, "leader"), candidate(&server, "other"));
    leader.acquire().await;
    tokio::select! {
        lost = leader.keep() => panic!("{lost}"),
        () = other.acquire() => panic!("two leaders"),
        () = tokio::time::sleep(Duration::from_mins(10)) => {}
    }
    assert_eq!(holder(&server), "leader");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_steps_down_before_anybody_may_step_up() {
    for (case, fault) in [
        ("refused", Fault::refuse("update", "leases", 503)),
        ("unanswered", Fault::hang("*", "leases")),
        ("forbidden", Fault::refuse("*", "leases", 403)),
    ] {
        let server = ApiServer::new();
        let mut leader = candidate(&server, "leader");
        leader.acquire().await;
        let began = Instant::now();
        server.fail(fault);
        let lost = timeout(Duration::from_mins(5), leader.keep()).await.expect(case);
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "{case}: {:?}",
            began.elapsed()
        );
        assert!(lost.to_string().contains("operators/lease"), "{lost}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_does_not_read_its_own_record() {
    let server = ApiServer::new();
    let mut leader = candidate(&server, "leader");
    leader.acquire().await;
    server.fail(Fault::hang("get", "leases"));
    tokio::select! {
        lost = leader.keep() => panic!("{lost}"),
        () = tokio::time::sleep(Duration::from_mins(1)) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn one_lost_answer_is_survived() {
    let server = ApiServer::new();
    let mut leader = candidate(&server, "leader");
    leader.acquire().await;
    server.fail(Fault::lose_answer("update", "leases").times(1));
    tokio::select! {
        lost = leader.keep() => panic!("{lost}"),
        () = tokio::time::sleep(Duration::from_mins(1)) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_steps_down() {
    let server = ApiServer::new();
    let mut leader = candidate(&server, "leader");
    leader.acquire().await;
    server.edit("leases", "operators", "lease", |lease| {
        lease["spec"]["holderIdentity"] = "usurper".into();
    });
    timeout(Duration::from_mins(1), leader.keep())
        .await
        .expect("it notices");
    leader.release().await;
    assert_eq!(holder(&server), "usurper", "only one's own lease is given back");
}
