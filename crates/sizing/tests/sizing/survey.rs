//! Nodes that runs of one spec could have, each on its own.

use perfval_api::PerfValidationSpec;
use perfval_api::fleet::SelectedNode;
use perfval_sizing::Fleet;
use perfval_testkit::inventory::{Cluster, NodeBuilder, PodBuilder};
use serde_json::{Value, json};

use super::{placed, spec};

const GPU: &str = "nvidia.com/gpu";

fn cluster() -> Cluster {
    let node = |name: &str| NodeBuilder::named(name).offers(GPU, "4");
    Cluster::empty()
        .node(node("free"))
        .node(node("full"))
        .pod(PodBuilder::on("full", "train").requests(GPU, "3"))
        .node(node("cordoned").cordoned())
        .node(node("not-ready").not_ready())
        .node(node("other").label("kind", "other"))
        .node(NodeBuilder::named("cpu-only"))
}

fn survey(spec: &PerfValidationSpec) -> Vec<(String, bool)> {
    let inventory = cluster().inventory();
    let fleet = Fleet::new(&inventory);
    let nodes = fleet.survey(inventory.for_run(), spec, |node| node.label("kind") != Some("other"));
    let nodes = nodes.expect("everything is known").into_iter();
    nodes
        .map(
            |SelectedNode {
                 name,
                 hostname,
                 is_free,
                 ..
             }| {
                assert_eq!(hostname.as_deref(), Some(name.as_str()));
                (name, is_free)
            },
        )
        .collect()
}

#[test]
fn nodes_with_gpus_are_listed_with_their_room() {
    let found = |cordoned: bool| {
        [
            ("cordoned", cordoned),
            ("free", true),
            ("full", false),
            ("not-ready", false),
        ]
        .map(|(name, is_free)| (name.to_owned(), is_free))
        .to_vec()
    };
    assert_eq!(survey(&placed(&json!({"minGPUs": 2}))), found(false));
    let tolerant = json!({"placement": {
        "minGPUs": 2, "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}],
    }});
    assert_eq!(survey(&spec(&tolerant)), found(true));
}

#[test]
fn obstacles_that_no_wait_removes_are_described() {
    let node = |name: &str| NodeBuilder::named(name).offers(GPU, "4");
    let inventory = cluster()
        .node(node("tainted").taint("dedicated", "NoSchedule"))
        .node(node("tainted-and-cordoned").taint("dedicated", "NoSchedule").cordoned())
        .inventory();
    let unusable = |placement: &Value| {
        let nodes = Fleet::new(&inventory).survey(inventory.for_run(), &placed(placement), |_| true);
        let nodes = nodes.expect("everything is known").into_iter();
        let unusable = nodes.filter_map(|node| Some((node.name, node.unusable?.into_string())));
        unusable.collect::<Vec<_>>()
    };
    let [(name, obstacle)] = &unusable(&json!({"minGPUs": 2}))[..] else {
        panic!("full, cordoned and not ready nodes become usable")
    };
    assert_eq!(name, "tainted");
    assert!(obstacle.contains("add to placement.tolerations"), "{obstacle}");
    let by_claims = unusable(&json!({"allocation": "DRA"}));
    let names: Vec<&str> = by_claims.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["free", "full", "other", "tainted"]);
    assert!(by_claims[0].1.contains("the run needs DRA"), "{by_claims:?}");
}

#[test]
fn an_unknown_part_of_the_cluster_is_no_empty_cluster() {
    let mut inventory = cluster().inventory();
    inventory.pods = perfval_sizing::Seen::Unknown("403".to_owned());
    let surveyed = Fleet::new(&inventory).survey(inventory.for_run(), &spec(&json!({})), |_| true);
    assert!(surveyed.is_err_and(|why| why.contains("pods: 403")));
}
