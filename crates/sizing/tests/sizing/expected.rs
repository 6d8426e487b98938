//! A node that shows fewer GPUs than it should have.

use perfval_api::{ExpectedBy, ExpectedGpus, Reason};
use perfval_sizing::{Fleet, Plan, explain};
use perfval_testkit::inventory::{Cluster, NodeBuilder, SliceBuilder, gpu};
use serde_json::json;

use super::{any, chosen, eight_with, placed, waits};

/// Machine types and GPUs of other nodes, what the node itself shows, and what it should have.
type Row<'a> = (&'a [(&'a str, usize)], usize, Option<ExpectedGpus>);

fn expecting(gpus: i32) -> perfval_api::PerfValidationSpec {
    placed(&json!({ "expectGPUs": gpus }))
}

fn by(by: ExpectedBy, gpus: i64) -> ExpectedGpus {
    ExpectedGpus { gpus, by }
}

fn expected(plan: &Plan) -> Option<ExpectedGpus> {
    let (gpus, by) = plan.expected_gpus.zip(plan.details.expected_by)?;
    Some(ExpectedGpus { gpus, by })
}

#[test]
fn a_missing_gpu_is_found_by_the_number_in_the_spec() {
    let seven = Cluster::of_gpus(7);
    let plan = chosen(&seven, &expecting(8));
    assert_eq!((plan.gpus, plan.node_gpus, plan.faulty_gpus), (7, 7, 0));
    assert_eq!(expected(&plan), Some(by(ExpectedBy::Spec, 8)));

    for (cluster, gpus) in [(Cluster::of_gpus(8), 8), (Cluster::of_gpus(9), 9)] {
        let plan = chosen(&cluster, &expecting(8));
        assert_eq!((expected(&plan), plan.node_gpus), (None, gpus));
    }
    let plan = chosen(&seven, &any());
    assert_eq!(expected(&plan), None, "nothing says that there are more");

    let [report] = explain(&seven.inventory(), &expecting(8), &[]).0.try_into().unwrap();
    assert_eq!(report.summary(), "7 of 7 GPUs free, 8 expected by placement.expectGPUs");
}

/// A policy that wants whole nodes must not take a node with a lost GPU for a busy one.
#[test]
fn a_missing_gpu_lowers_the_minimum_on_the_only_node_of_a_run() {
    let any_node = placed(&json!({ "minGPUs": 8, "expectGPUs": 8 }));
    let says = "n1: has 7 GPUs in all, 8 expected by placement.expectGPUs";
    let seven = Cluster::of_gpus(7);
    // A whole node may come.
    waits(&seven, &any_node, Reason::NoCandidateNode, says);
    let mut all = any_node.clone();
    let selector = &mut all.placement.node_selector;
    selector.insert("kubernetes.io/hostname".to_owned(), "n1".to_owned());
    let labelled = |gpus| Cluster::of_gpus(gpus).node(NodeBuilder::named("n1").label("kubernetes.io/hostname", "n1"));
    let plan = chosen(&labelled(7), &all);
    assert_eq!((plan.gpus, expected(&plan)), (7, Some(by(ExpectedBy::Spec, 8))));
    let unhealthy = Cluster::empty().node(
        NodeBuilder::named("n1")
            .label("kubernetes.io/hostname", "n1")
            .offers("nvidia.com/gpu", "7")
            .has_in_all("nvidia.com/gpu", "8"),
    );
    assert_eq!(chosen(&unhealthy, &all).gpus, 7);
    let surveyed = |cluster: &Cluster| {
        let inventory = cluster.inventory();
        let nodes = Fleet::new(&inventory).survey(inventory.for_run(), &any_node, |_| true);
        let node = nodes.expect("everything is known").remove(0);
        (node.is_free, node.is_too_small)
    };
    assert_eq!(surveyed(&unhealthy), (true, false), "a policy selects the hostname");
    assert_eq!(surveyed(&labelled(7)), (true, false));
    assert_eq!(surveyed(&labelled(1)), (false, true));
    let says = "n1: has 1 GPU in all, 8 expected by placement.expectGPUs";
    let one = labelled(1);
    // It has no peer.
    waits(&one, &all, Reason::NoCandidateNode, says);
    let without = placed(&json!({ "minGPUs": 8 }));
    let labelled = Cluster::of_gpus(7).node(NodeBuilder::named("n1").label("nvidia.com/gpu.count", "8"));
    let says = "n1: has 7 GPUs in all, 8 expected by its label nvidia.com/gpu.count";
    waits(&labelled, &without, Reason::NoCandidateNode, says);
}

#[test]
fn a_faulty_gpu_is_missing_and_not_in_use() {
    let tainted = eight_with(gpu(0).taint("gpu.nvidia.com/xid", "NoSchedule"));
    let unhealthy = Cluster::empty().node(
        NodeBuilder::named("n1")
            .offers("nvidia.com/gpu", "7")
            .has_in_all("nvidia.com/gpu", "8"),
    );
    for cluster in [tainted, unhealthy] {
        let plan = chosen(&cluster, &any());
        assert_eq!((plan.gpus, plan.node_gpus, plan.faulty_gpus), (7, 8, 1));
        assert_eq!(expected(&plan), Some(by(ExpectedBy::Node, 8)));

        let plan = chosen(&cluster, &expecting(8));
        assert_eq!(expected(&plan), Some(by(ExpectedBy::Spec, 8)));
        let plan = chosen(&cluster, &expecting(7));
        assert_eq!(expected(&plan), None, "the spec has the last word");
    }
}

#[test]
fn a_missing_gpu_is_found_by_the_label_of_the_node() {
    let labelled = |node: NodeBuilder| Cluster::of_gpus(7).node(node.label("nvidia.com/gpu.count", "8"));
    let n1 = || NodeBuilder::named("n1");
    let plan = chosen(&labelled(n1()), &any());
    assert_eq!(expected(&plan), Some(by(ExpectedBy::Label, 8)));
    let plan = chosen(&labelled(n1()), &expecting(7));
    assert_eq!(expected(&plan), None, "the spec has the last word");

    // It counts all GPUs of the machine, and proves nothing about some of them.
    let mixed = labelled(n1().label("nvidia.com/mig.strategy", "mixed"));
    assert_eq!(expected(&chosen(&mixed, &any())), None);
    let some = labelled(n1()).slice(
        SliceBuilder::of("n1")
            .pool("mig")
            .device(gpu(7).attribute("type", "mig")),
    );
    assert_eq!(expected(&chosen(&some, &any())), None);
}

#[test]
fn a_missing_gpu_is_found_by_nodes_of_the_same_kind() {
    let node = |cluster: Cluster, name: &str, machine: &str, gpus: usize| {
        cluster
            .node(NodeBuilder::named(name).label("node.kubernetes.io/instance-type", machine))
            .slice(SliceBuilder::of(name).gpus(gpus))
    };
    let of_n1 = |cluster: Cluster, shows: usize| {
        let cluster = cluster
            .node(
                NodeBuilder::named("n1")
                    .label("node.kubernetes.io/instance-type", "big")
                    .label("wanted", "yes"),
            )
            .slice(SliceBuilder::of("n1").gpus(shows));
        let wanted = placed(&json!({ "nodeSelector": { "wanted": "yes" } }));
        expected(&chosen(&cluster, &wanted))
    };
    let peers = |shown: &[(&str, usize)]| {
        let numbered = (2..).zip(shown);
        numbered.fold(Cluster::empty(), |cluster, (number, (machine, gpus))| {
            node(cluster, &format!("n{number}"), machine, *gpus)
        })
    };
    let usual = Some(by(ExpectedBy::Peers, 8));
    let rows: [Row<'_>; 7] = [
        (&[("big", 8), ("big", 8), ("big", 7)], 7, usual),
        (&[("big", 8), ("big", 8)], 8, None),
        (&[("big", 8)], 7, None),
        (&[("big", 8), ("big", 8), ("big", 7), ("big", 7)], 7, None),
        (&[("small", 8), ("small", 8), ("small", 8)], 7, None),
        (&[("big", 4), ("big", 4), ("big", 4)], 7, None),
        (&[("big", 8), ("big", 8), ("big", 8), ("big", 7)], 6, usual),
    ];
    for (shown, shows, expected) in rows {
        assert_eq!(of_n1(peers(shown), shows), expected, "{shows} next to {shown:?}");
    }
}
