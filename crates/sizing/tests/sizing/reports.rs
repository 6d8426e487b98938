//! Reports of each node, and of a thousand of them.

use perfval_api::Reason;
use perfval_sizing::inventory::Inventory;
use perfval_sizing::{Naming, NodeObstacle, NodeReport, OtherRun, Seen, Sizing, explain};
use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, PodBuilder, SliceBuilder, gpu};
use serde_json::json;

use super::{any, eight, n1_with, placed, with_taken};

fn reports(cluster: &Cluster) -> Vec<NodeReport> {
    explain(&cluster.inventory(), &any(), &[]).0
}

#[test]
fn a_report_lists_the_holders_of_gpus() {
    let [report] = reports(&with_taken(5)).try_into().unwrap();
    assert_eq!(
        json!(report),
        json!({
            "node": "n1", "allocation": "DRA", "gpus": 8, "free": 3, "usable": 3,
            "taken": [{ "why": "InUse", "gpus": 5, "by": ["other/train-0", "other/train-1", "other/train-2"], "more": 2 }],
        })
    );
    assert_eq!(
        report.summary(),
        "3 of 8 GPUs free (5 in use by other/train-0, other/train-1, other/train-2 and 2 more)"
    );
}

#[test]
fn of_other_namespaces_only_the_number_is_reported() {
    let mut inventory = with_taken(5).inventory();
    let says = |inventory: &Inventory| explain(inventory, &any(), &[]).0[0].summary();
    inventory.naming = Naming::Only("perf".into());
    assert_eq!(
        says(&inventory),
        "3 of 8 GPUs free (5 in use by 5 claims of other namespaces)"
    );
    inventory.naming = Naming::Only("other".into());
    assert_eq!(
        says(&inventory),
        "3 of 8 GPUs free (5 in use by other/train-0, other/train-1, other/train-2 and 2 more)"
    );
    if let Seen::Present(claims) = &mut inventory.claims {
        claims[0].name = "team/secret".into();
    }
    assert_eq!(
        says(&inventory),
        "3 of 8 GPUs free (5 in use by other/train-1, other/train-2, other/train-3 and 1 more and a claim of another namespace)"
    );
}

#[test]
fn every_node_has_a_report_by_name() {
    let cluster = eight()
        .node(NodeBuilder::named("cpu-only"))
        .node(NodeBuilder::named("cordoned").cordoned().offers("nvidia.com/gpu", "4"))
        .node(NodeBuilder::named("plugin").offers("nvidia.com/gpu", "4"))
        .pod(PodBuilder::on("plugin", "train").requests("nvidia.com/gpu", "3"));
    let reports = reports(&cluster);
    let says: Vec<(&str, String, i64)> = reports
        .iter()
        .map(|report| (report.node.as_str(), report.summary(), report.usable))
        .collect();
    assert_eq!(
        says,
        [
            (
                "cordoned",
                "is cordoned, and placement.nodeSelector does not name it".to_owned(),
                0
            ),
            ("cpu-only", "has no GPUs".to_owned(), 0),
            ("n1", "8 of 8 GPUs free".to_owned(), 8),
            ("plugin", "1 of 4 GPUs free (3 in use by other/train)".to_owned(), 1),
        ]
    );
    assert_eq!(
        (reports[0].total, reports[0].free),
        (4, 4),
        "counted even where it is not for us"
    );
    assert_eq!(
        json!(reports[1]),
        json!({ "node": "cpu-only", "gpus": 0, "free": 0, "usable": 0, "why": "NoGpus" })
    );
}

#[test]
fn all_that_rules_out_devices_is_distinguished() {
    let slice = SliceBuilder::of("n1")
        .device(gpu(0).taint("gpu.nvidia.com/xid", "NoSchedule"))
        .device(gpu(1).shareable())
        .device(gpu(2))
        .device(gpu(3));
    let cluster = n1_with(slice).claim(ClaimBuilder::named("c").holds("n1", "gpu-2"));
    let [report] = reports(&cluster).try_into().unwrap();
    assert_eq!(
        report.summary(),
        "1 of 4 GPUs free (1 in use by other/c; 1 given out in shares: allowMultipleAllocations, a setting of the driver; \
         1 tainted: gpu.nvidia.com/xid)"
    );
}

#[test]
fn unhealthy_gpus_of_a_plugin_are_not_in_use() {
    let cluster = Cluster::empty()
        .node(
            NodeBuilder::named("n1")
                .offers("nvidia.com/gpu", "6")
                .has_in_all("nvidia.com/gpu", "8"),
        )
        .pod(PodBuilder::on("n1", "p").requests("nvidia.com/gpu", "1"));
    let [report] = reports(&cluster).try_into().unwrap();
    assert_eq!(report.summary(), "5 of 8 GPUs free (1 in use by other/p; 2 unhealthy)");
}

#[test]
fn a_thousand_nodes_make_a_readable_message() {
    let cluster = (0..1_000).fold(Cluster::empty(), |cluster, index| {
        let name = format!("n{index:03}");
        let node = NodeBuilder::named(&name);
        let node = if index % 2 == 0 { node.cordoned() } else { node };
        let claims = (0..4).fold(ClaimBuilder::named(&format!("job-{index:03}")), |claim, gpu| {
            claim.holds(&name, &format!("gpu-{gpu}"))
        });
        let cluster = cluster.node(node).slice(SliceBuilder::of(&name).gpus(4));
        if index % 2 == 0 { cluster } else { cluster.claim(claims) }
    });
    let Sizing::Wait { reason, message } = explain(&cluster.inventory(), &any(), &[]).1 else {
        panic!()
    };
    assert_eq!(reason, Reason::Saturated);
    assert_eq!(
        message,
        "no node for a GPU: n001: 0 of 4 GPUs free (4 in use by other/job-001); \
         n003: 0 of 4 GPUs free (4 in use by other/job-003); n005: 0 of 4 GPUs free (4 in use by other/job-005); \
         n000, n002, n004 and 497 more: is cordoned, and placement.nodeSelector does not name it; and 497 more nodes (497 Saturated)"
    );
}

#[test]
fn temporary_obstacles_come_before_permanent_ones() {
    let cluster = eight()
        .node(NodeBuilder::named("a").cordoned().offers("nvidia.com/gpu", "4"))
        .node(NodeBuilder::named("b").offers("nvidia.com/gpu", "2"));
    let first = OtherRun {
        name: "perf/first".to_owned(),
        node: "n1".to_owned(),
    };
    let four = placed(&json!({ "minGPUs": 4 }));
    let (reports, Sizing::Wait { reason, message }) = explain(&cluster.inventory(), &four, &[first]) else {
        panic!()
    };
    assert_eq!(reason, Reason::NodeBusy);
    assert_eq!(
        message,
        "no node for 4 GPUs or more: n1: is held by the run of perf/first; a: is cordoned, and placement.nodeSelector does not name it; b: has 2 GPUs in all"
    );
    assert_eq!(reports[1].obstacle, Some(NodeObstacle::TooFew));

    // Of the nodes that the selector admits, not of all.
    let dual = eight()
        .node(NodeBuilder::named("n1").offers("nvidia.com/gpu", "8"))
        .node(NodeBuilder::named("a").not_ready().offers("nvidia.com/gpu", "4"))
        .node(NodeBuilder::named("b").offers("nvidia.com/gpu", "2"));
    let only = placed(&json!({ "nodeSelector": { "kubernetes.io/hostname": "n1" } }));
    let (_, Sizing::Refuse { reason, message }) = explain(&dual.inventory(), &only, &[]) else {
        panic!()
    };
    assert_eq!(reason, Reason::MixedAllocation);
    assert_eq!(
        message,
        "no node for a GPU: n1: gives its GPUs out by ResourceSlices and as nvidia.com/gpu at once: turn one of them off, or \
         name the other one in placement.allocation; a, b: does not carry kubernetes.io/hostname=n1"
    );
}
