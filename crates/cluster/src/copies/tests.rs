use std::sync::LazyLock;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::core::DynamicObject;
use perfval_api::PerfValidation;
use perfval_run::{Run, Settings};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::advance;

use super::kept::MOST_OF_A_KIND;
use super::*;

static SETTINGS: LazyLock<Settings> = LazyLock::new(Settings::default);

fn object() -> PerfValidation {
    serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"name": "h100", "namespace": "perf", "uid": "a"},
        "spec": {"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}}},
    }))
    .unwrap()
}

/// The run of a pass over that object.
fn run() -> Run<'static> {
    static OBJECT: LazyLock<PerfValidation> = LazyLock::new(object);
    Run::new(&OBJECT, &SETTINGS)
}

fn child<K: DeserializeOwned>(name: &str, version: &str, more: &Value) -> K {
    let mut child = json!({"metadata": {
        "name": name, "namespace": "perf", "resourceVersion": version, "labels": {NAME_LABEL: "h100"},
    }});
    child.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(child).unwrap()
}

fn pod(name: &str, version: &str) -> Pod {
    child(name, version, &json!({}))
}

fn job(name: &str, version: &str) -> Job {
    child(name, version, &json!({}))
}

/// An event about a pod of `perf`, by a watch over all namespaces.
fn applied<K: Copied>(name: &str, version: &str) -> Event<PartialObjectMeta<K>> {
    Event::Apply(child(name, version, &json!({})))
}

/// Names and versions of the copies of pods.
fn pods(copies: &Copies, run: &Run<'_>) -> Option<Vec<String>> {
    let pods: Vec<Pod> = copies.begin(run).list()?;
    let named = |pod: &Pod| format!("{}@{}", pod.name_any(), pod.resource_version().unwrap());
    Some(pods.iter().map(named).collect())
}

/// Copies with watches over all namespaces, of a run whose reads begin.
fn watched(run: &Run<'_>) -> Copies {
    let copies = Copies::default();
    copies.follow::<Pod>(None, &Ok(Event::InitDone));
    copies.follow::<Job>(None, &Ok(Event::InitDone));
    copies.begin(run);
    copies
}

fn kept_pods(run: &Run<'_>) -> Copies {
    let copies = watched(run);
    copies.keep(run, "10", &[pod("a", "7"), pod("b", "8")]);
    copies
}

#[tokio::test(start_paused = true)]
async fn copies_count_until_a_change_and_for_a_while() {
    let run = run();
    let copies = kept_pods(&run);
    assert_eq!(pods(&copies, &run).unwrap(), ["a@7", "b@8"]);
    advance(Duration::from_secs(89)).await;
    assert!(pods(&copies, &run).is_some());
    advance(Duration::from_secs(1)).await;
    assert_eq!(pods(&copies, &run), None, "the watch may be dead");
    let gone = Event::Delete(child("b", "11", &json!({})));
    for change in [applied("a", "11"), applied("new", "11"), gone] {
        let copies = kept_pods(&run);
        copies.follow::<Pod>(None, &Ok(change));
        assert_eq!(pods(&copies, &run), None);
    }
}

#[tokio::test]
async fn a_change_that_the_read_has_seen_is_no_change() {
    let run = run();
    let copies = kept_pods(&run);
    copies.follow::<Pod>(None, &Ok(applied("a", "7")));
    copies.follow::<Pod>(None, &Ok(applied("deleted-before-the-read", "9")));
    assert!(pods(&copies, &run).is_some());
}

#[tokio::test]
async fn a_read_that_a_change_has_overtaken_lacks_it() {
    let run = run();
    let copies = watched(&run);
    copies.follow::<Pod>(None, &Ok(applied("a", "11")));
    copies.keep(&run, "10", &[pod("a", "7")]);
    assert_eq!(pods(&copies, &run), None);
    copies.keep(&run, "12", &[pod("a", "11")]);
    assert_eq!(pods(&copies, &run).unwrap(), ["a@11"]);
}

#[tokio::test]
async fn without_a_watch_nothing_is_kept() {
    let run = run();
    for event in [Ok(Event::Init), Err(watcher::Error::NoResourceVersion)] {
        let copies = kept_pods(&run);
        copies.follow::<Job>(None, &Ok(Event::Init));
        copies.follow::<Pod>(Some("other"), &Ok(Event::Init));
        assert!(pods(&copies, &run).is_some(), "another watch");
        copies.follow::<Pod>(None, &event);
        assert_eq!(pods(&copies, &run), None);
        copies.begin(&run);
        copies.keep(&run, "12", &[pod("a", "11")]);
        assert_eq!(pods(&copies, &run), None, "it does not work yet");
        copies.follow::<Pod>(Some("perf"), &Ok(Event::InitDone));
        copies.keep(&run, "12", &[pod("a", "11")]);
        assert_eq!(pods(&copies, &run), None, "the list may be newer than the read");
        copies.begin(&run);
        copies.keep(&run, "13", &[pod("a", "11")]);
        assert!(pods(&copies, &run).is_some());
    }
}

#[tokio::test]
async fn only_a_run_that_waits_has_copies() {
    let run = run();
    let copies = kept_pods(&run);
    copies.forget_object(run.object);
    copies.keep(&run, "10", &[pod("a", "7")]);
    assert_eq!(pods(&copies, &run), None);
    let copies = kept_pods(&run);
    copies.retain(&HashSet::from(["a".to_owned()]));
    assert!(pods(&copies, &run).is_some());
    copies.retain(&HashSet::new());
    assert_eq!(pods(&copies, &run), None);
}

#[tokio::test]
async fn the_absence_of_a_job_is_never_answered() {
    let run = run();
    let copies = watched(&run);
    copies.keep(&run, "10", &[job("t2", "10")]);
    copies.follow::<Job>(None, &Ok(applied("t1", "11")));
    let has = |name: &str| copies.begin(&run).get::<Job>(name).is_some();
    assert_eq!((has("t1"), has("t2")), (false, true), "another trial's Job changed");
    copies.follow::<Job>(None, &Ok(Event::Delete(child("t2", "13", &json!({})))));
    assert!(!has("t2"), "the API server shows whether there is a new one");
}

#[tokio::test]
async fn a_job_is_known_as_it_was_before_its_last_change() {
    let run = run();
    let copies = watched(&run);
    copies.keep(&run, "10", &[job("t1", "10")]);
    let state = || {
        let pass = copies.begin(&run);
        let is_known = pass.last_known::<Job>("t1").is_some();
        (is_known, pass.has_changed::<Job>("t1"), pass.is_used())
    };
    assert_eq!(state(), (true, false, false));
    copies.follow::<Job>(None, &Ok(applied("t1", "11")));
    assert_eq!(state(), (true, true, false));
    copies.follow::<Job>(None, &Ok(Event::Delete(child("t1", "12", &json!({})))));
    assert_eq!(state(), (false, true, false), "it is gone");
}

#[tokio::test]
async fn a_pod_that_another_object_got_is_no_copy_any_more() {
    let run = run();
    let labels = json!({"metadata": {
        "name": "a", "namespace": "perf", "resourceVersion": "11", "labels": {NAME_LABEL: "other"},
    }});
    let copies = kept_pods(&run);
    copies.follow::<Pod>(None, &Ok(Event::Apply(serde_json::from_value(labels.clone()).unwrap())));
    assert_eq!(pods(&copies, &run), None);
    copies.keep(&run, "12", &[serde_json::from_value::<Pod>(labels).unwrap()]);
    assert_eq!(pods(&copies, &run), None, "no watch shows its changes to this run");
}

#[tokio::test]
async fn large_objects_and_unordered_versions_are_not_copied() {
    let run = run();
    let args = json!({"spec": {"containers": [{"name": "c", "args": ["x".repeat(MOST_OF_A_KIND)]}]}});
    let copies = watched(&run);
    copies.keep(&run, "12", &[child::<Pod>("a", "11", &args)]);
    assert_eq!(pods(&copies, &run), None);
    copies.keep(&run, "twelve", &[pod("a", "11")]);
    assert_eq!(pods(&copies, &run), None);
    let copies = kept_pods(&run);
    copies.follow::<Pod>(None, &Ok(applied("a", "eleven")));
    assert_eq!(pods(&copies, &run), None);
}

#[tokio::test(start_paused = true)]
async fn all_copies_together_are_bounded() {
    let copies = watched(&run());
    let objects: Vec<PerfValidation> = (0..100)
        .map(|number| {
            let mut object = object();
            object.metadata.name = Some(format!("run-{number}"));
            object
        })
        .collect();
    let large = json!({"spec": {"containers": [{"name": "c", "args": ["x".repeat(MOST_OF_A_KIND - 1024)]}]}});
    // The second time in the place of the first, and the third time after those are too old.
    for pause in [0, 1, 90] {
        advance(Duration::from_secs(pause)).await;
        for object in &objects {
            let run = Run::new(object, &SETTINGS);
            copies.begin(&run);
            let mut pod: Pod = child("a", "7", &large);
            pod.labels_mut().insert(NAME_LABEL.to_owned(), run.name().to_owned());
            copies.keep(&run, "10", &[pod]);
        }
        let kept = objects
            .iter()
            .filter(|object| pods(&copies, &Run::new(object, &SETTINGS)).is_some())
            .count();
        assert_eq!(kept, MOST / MOST_OF_A_KIND);
    }
}

#[tokio::test]
async fn a_pod_that_comes_whole_replaces_its_copy() {
    let run = run();
    let copies = kept_pods(&run);
    copies.follow::<Pod>(None, &Ok(applied("a", "12")));
    copies.take(&pod("a", "11"));
    assert_eq!(pods(&copies, &run), None, "it changed again");
    copies.take(&pod("a", "12"));
    assert_eq!(pods(&copies, &run).unwrap(), ["a@12", "b@8"]);
    // It may come before its metadata.
    copies.take(&pod("c", "13"));
    copies.follow::<Pod>(None, &Ok(applied("c", "13")));
    assert_eq!(pods(&copies, &run).unwrap(), ["a@12", "b@8", "c@13"]);
}

#[tokio::test]
async fn a_pod_that_comes_late_is_no_news() {
    let run = run();
    let copies = kept_pods(&run);
    copies.take(&pod("gone-before-the-read", "9"));
    copies.take(&pod("b", "6"));
    assert_eq!(pods(&copies, &run).unwrap(), ["a@7", "b@8"]);
    copies.follow::<Pod>(None, &Ok(Event::Delete(child("b", "12", &json!({})))));
    copies.take(&pod("b", "11"));
    assert_eq!(pods(&copies, &run), None, "it is gone");
    copies.keep(&run, "14", &[pod("a", "7")]);
    copies.take(&pod("b", "11"));
    assert_eq!(pods(&copies, &run).unwrap(), ["a@7"]);
}

#[tokio::test]
async fn a_large_pod_that_comes_whole_is_read_again() {
    let run = run();
    let args = json!({"spec": {"containers": [{"name": "c", "args": ["x".repeat(MOST_OF_A_KIND)]}]}});
    let copies = kept_pods(&run);
    copies.follow::<Pod>(None, &Ok(applied("a", "11")));
    copies.take(&child::<Pod>("a", "11", &args));
    assert_eq!(pods(&copies, &run), None);
    // In the place of a pod of the same size there is room for it.
    let most = json!({"spec": {"containers": [{"name": "c", "args": ["x".repeat(MOST_OF_A_KIND - 1024)]}]}});
    copies.keep(&run, "12", &[child::<Pod>("a", "11", &most)]);
    copies.take(&child::<Pod>("a", "13", &most));
    assert_eq!(pods(&copies, &run).unwrap(), ["a@13"]);
    copies.keep(&run, "14", &[child::<Pod>("a", "13", &args)]);
    assert_eq!(pods(&copies, &run), None, "the last read is too large");
}

#[tokio::test]
async fn changes_without_end_are_not_all_remembered() {
    let run = run();
    let copies = kept_pods(&run);
    let names: Vec<String> = (0..200).map(|number| format!("of-a-tenant-{number}")).collect();
    for name in &names {
        copies.follow::<Pod>(None, &Ok(applied(name, "11")));
    }
    for name in &names {
        copies.take(&pod(name, "11"));
    }
    assert_eq!(pods(&copies, &run), None);
    copies.keep(&run, "12", &[pod("a", "7")]);
    assert!(pods(&copies, &run).is_some(), "a new read counts");
}

#[tokio::test(start_paused = true)]
async fn an_older_state_serves_for_a_while() {
    let run = run();
    let copies = Copies::default();
    copies.follow::<DynamicObject>(None, &Ok(Event::InitDone));
    copies.begin(&run);
    copies.keep(&run, "10", [&child::<DynamicObject>("pv", "10", &json!({}))]);
    let has = || {
        let copies = copies.begin(&run);
        let now = copies.get::<DynamicObject>("pv").is_some();
        (now, copies.recent::<DynamicObject>("pv").is_some())
    };
    assert_eq!(has(), (true, true));
    copies.follow::<DynamicObject>(None, &Ok(applied("pv", "11")));
    assert_eq!(has(), (false, true));
    advance(RECENT).await;
    assert_eq!(has(), (false, false));
    copies.keep(&run, "11", [&child::<DynamicObject>("pv", "11", &json!({}))]);
    copies.follow::<DynamicObject>(None, &Ok(Event::Delete(child("pv", "12", &json!({})))));
    assert_eq!(has(), (false, false), "it is gone");
}

#[tokio::test]
async fn a_pod_that_comes_whole_during_a_read_is_not_lost() {
    let run = run();
    let copies = kept_pods(&run);
    copies.take(&pod("a", "25"));
    copies.follow::<Pod>(None, &Ok(applied("a", "25")));
    copies.keep(&run, "20", &[pod("a", "15"), pod("b", "8")]);
    assert_eq!(pods(&copies, &run), None);
}

#[tokio::test]
async fn a_pod_that_is_relabelled_before_it_comes_whole_is_no_copy() {
    let run = run();
    let other = json!({"metadata": {
        "name": "c", "namespace": "perf", "resourceVersion": "12", "labels": {NAME_LABEL: "other"},
    }});
    let copies = kept_pods(&run);
    copies.follow::<Pod>(None, &Ok(applied("c", "11")));
    copies.follow::<Pod>(None, &Ok(Event::Apply(serde_json::from_value(other).unwrap())));
    copies.take(&pod("c", "11"));
    assert_eq!(pods(&copies, &run), None);
}

#[tokio::test(start_paused = true)]
async fn copies_of_a_run_without_passes_go() {
    let run = run();
    let copies = kept_pods(&run);
    advance(ABANDONED).await;
    let mut next = object();
    next.metadata.name = Some("next".to_owned());
    copies.begin(&Run::new(&next, &SETTINGS));
    assert_eq!(copies.0.lock().runs.len(), 1);
}
