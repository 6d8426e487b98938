use std::time::Duration;

use futures::FutureExt as _;
use serde_json::{from_value, json};

use super::*;

fn node(name: &str, ready: bool) -> Node {
    let status = if ready { "True" } else { "False" };
    let node = json!({
        "metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": status}]},
    });
    Node::read(&from_value(node).expect("a node"), &mut Interned::default())
}

fn names(all: &Seen<Vec<Node>>) -> Vec<(String, bool)> {
    let nodes = all.present().expect("they were listed");
    nodes.iter().map(|node| (node.name.to_string(), node.ready)).collect()
}

fn named(all: &[(&str, bool)]) -> Vec<(String, bool)> {
    all.iter().map(|(name, ready)| ((*name).to_owned(), *ready)).collect()
}

#[test]
fn changes_are_merged_in_order() {
    let arrivals = Arrivals::<Node>::default();
    let mut all = Seen::NotAsked;
    arrivals.replace(vec![node("d", false), node("b", false), node("f", false)]);
    arrivals.begin_watch();
    let change = |name: &str, now| arrivals.add_change(name.to_owned(), now).is_ok();
    assert!(change("b", None) && change("never there", None));
    assert!(change("d", Some(node("d", true))) && change("c", Some(node("c", true))));
    arrivals.merge_into(&mut all);
    assert_eq!(names(&all), named(&[("c", true), ("d", true), ("f", false)]));
    // The last change of an object counts, and nothing twice.
    assert!(change("a", Some(node("a", false))) && change("a", None));
    assert!(change("f", Some(node("f", true))));
    arrivals.merge_into(&mut all);
    assert_eq!(names(&all), named(&[("c", true), ("d", true), ("f", true)]));
    // A new list replaces the old one.
    assert!(change("z", Some(node("z", true))));
    arrivals.begin_list();
    arrivals.replace(vec![node("x", true)]);
    arrivals.begin_watch();
    arrivals.merge_into(&mut all);
    assert_eq!(names(&all), named(&[("x", true)]));
}

#[test]
fn many_new_objects_are_merged_as_few_are() {
    let arrivals = Arrivals::<Node>::default();
    let mut all = Seen::NotAsked;
    arrivals.replace((0..100).map(|number| node(&format!("n{number:03}5"), true)).collect());
    arrivals.begin_watch();
    for count in [1, MAX_INSERTS, 300] {
        for number in 0..count {
            let name = format!("n{number:03}{}", count % 7);
            assert!(arrivals.add_change(name.clone(), Some(node(&name, true))).is_ok());
        }
        arrivals.merge_into(&mut all);
        let names = names(&all);
        assert!(names.is_sorted(), "{names:?}");
    }
    assert_eq!(names(&all).len(), 100 + 1 + MAX_INSERTS + 300 - 1);
}

#[tokio::test]
async fn a_kind_that_failed_is_unknown_until_it_is_listed_again() {
    let arrivals = Arrivals::<Node>::default();
    let mut all = Seen::NotAsked;
    arrivals.merge_into(&mut all);
    assert!(
        all.unknown()
            .is_some_and(|why| why.contains("list Nodes: no answer yet")),
        "{all:?}"
    );
    arrivals.replace(vec![node("a", true)]);
    arrivals.merge_into(&mut all);
    assert!(all.unknown().is_some(), "its watch has not begun");
    arrivals.begin_watch();
    arrivals.merge_into(&mut all);
    assert_eq!(names(&all), named(&[("a", true)]));
    let began = Instant::now();
    let failed = async {
        let why = Unread::Unknown("watch Nodes: 403".to_owned());
        arrivals.fail(began, why).await;
        arrivals.begin_list();
        arrivals.replace(vec![node("b", true)]);
        arrivals.begin_watch();
    };
    let looked = async {
        tokio::task::yield_now().await;
        arrivals.merge_into(&mut all);
        assert_eq!(all.unknown(), Some("watch Nodes: 403"));
        // A look that asked before the attempt shares its failure.
        arrivals.request(began, &mut all);
        assert!(arrivals.settled().now_or_never().is_some());
        arrivals.request(began + Duration::from_millis(1), &mut all);
        assert_eq!(all, Seen::NotAsked, "it will be replaced");
        arrivals.settled().await;
        arrivals.merge_into(&mut all);
    };
    futures::join!(failed, looked);
    assert_eq!(names(&all), named(&[("b", true)]));
}

#[tokio::test]
async fn changes_do_not_pile_up_without_a_look() {
    let arrivals = Arrivals::<Node>::default();
    arrivals.replace(Vec::new());
    let change = |number: usize| arrivals.add_change(number.to_string(), None).is_ok();
    assert!((0..MAX_CHANGES).all(change) && change(0) && !change(MAX_CHANGES));
    let too_many = Unread::Unknown("too many".to_owned());
    assert!(arrivals.fail(Instant::now(), too_many).now_or_never().is_none());
    assert!(arrivals.pending.lock().changes.is_empty());
}

#[test]
fn a_key_is_the_name_of_the_reduced_object() {
    let pod = json!({
        "metadata": {"name": "a", "namespace": "team"}, "spec": {"nodeName": "n1", "containers": []},
    });
    let pod: Pod = from_value(pod).expect("a pod");
    let reduced = PodUse::read(&pod, &mut Interned::default()).expect("it is bound");
    assert_eq!(reduced.key(), object_key(&pod));
    let device = json!({"request": "gpu", "driver": "d", "pool": "n1", "device": "gpu-0"});
    let claim = json!({
        "metadata": {"name": "a", "namespace": "team"}, "spec": {},
        "status": {"allocation": {"devices": {"results": [device]}}},
    });
    let claim: ResourceClaim = from_value(claim).expect("a claim");
    let reduced = ClaimUse::read(&claim, &mut Interned::default()).expect("it holds a device");
    assert_eq!(reduced.key(), object_key(&claim));
}
