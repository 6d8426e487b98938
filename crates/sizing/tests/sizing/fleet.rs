//! Many runs in one look: what each of them costs, and what they leave one another of a quota.

use perfval_api::{PerfValidationSpec, Reason};
use perfval_sizing::{Fleet, Granted, HeldNodes, OtherRun, Sizing};
use perfval_testkit::inventory::{Cluster, NodeBuilder, PodBuilder, SliceBuilder};
use serde_json::json;

use super::{any, placed};

const NODES: usize = 200;
const GPU: &str = "requests.nvidia.com/gpu";
const CLAIMED: &str = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices";

fn name(index: usize) -> String {
    format!("n{index:03}")
}

fn fleet() -> Cluster {
    (0..NODES).fold(Cluster::empty(), |cluster, index| {
        let slice = SliceBuilder::of(&name(index)).gpus(2);
        cluster.node(NodeBuilder::named(&name(index))).slice(slice)
    })
}

fn only(node: &str) -> PerfValidationSpec {
    placed(&json!({ "nodeSelector": { "kubernetes.io/hostname": node } }))
}

fn held(nodes: impl IntoIterator<Item = usize>) -> HeldNodes {
    let run = |index| OtherRun {
        name: format!("perf/{index}"),
        node: name(index),
    };
    nodes.into_iter().map(run).collect()
}

#[test]
fn a_run_looks_only_at_the_nodes_that_its_selector_admits() {
    let inventory = fleet().inventory();
    let fleet = Fleet::new(&inventory);
    let free = HeldNodes::default();
    for index in 0..NODES {
        let sizing = fleet.choose(inventory.for_run(), &only(&name(index)), &free, &[]);
        let Sizing::Chosen(plan) = &sizing else {
            panic!("{sizing:?}")
        };
        assert_eq!(plan.node, name(index));
    }
    assert_eq!(fleet.examined(), NODES, "one each");

    let sizing = fleet.choose(inventory.for_run(), &only(&name(7)), &held([7]), &[]);
    let Sizing::Wait { reason, message } = sizing else {
        panic!("{sizing:?}")
    };
    assert_eq!(reason, Reason::NodeBusy);
    assert_eq!(
        message,
        "no node for a GPU: n007: is held by the run of perf/7; n000, n001, n002 and 196 more: does not carry \
         kubernetes.io/hostname=n007"
    );
    assert_eq!(fleet.examined(), NODES + 1);
}

#[test]
fn nodes_that_the_selector_does_not_admit_are_no_hope() {
    let dual = NodeBuilder::named("n007").offers("nvidia.com/gpu", "2");
    let inventory = fleet()
        .node(dual)
        .node(NodeBuilder::named("n003").not_ready())
        .inventory();
    let free = HeldNodes::default();
    let sizing = Fleet::new(&inventory).choose(inventory.for_run(), &only("n007"), &free, &[]);
    let Sizing::Refuse { reason, message } = sizing else {
        panic!("{sizing:?}")
    };
    assert_eq!(reason, Reason::MixedAllocation);
    assert_eq!(
        message,
        "no node for a GPU: n007: gives its GPUs out by ResourceSlices and as nvidia.com/gpu at once: turn one of them off, or \
         name the other one in placement.allocation; n000, n001, n002 and 196 more: does not carry \
         kubernetes.io/hostname=n007"
    );
}

#[test]
fn all_nodes_are_looked_at_for_a_run_without_a_selector() {
    let inventory = fleet().inventory();
    let fleet = Fleet::new(&inventory);
    let sizing = fleet.choose(inventory.for_run(), &any(), &held(0..NODES - 1), &[]);
    assert!(
        matches!(&sizing, Sizing::Chosen(plan) if plan.node == name(NODES - 1)),
        "{sizing:?}"
    );
    assert_eq!(fleet.examined(), NODES);
}

/// Plan of a run beside another one of two GPUs of its namespace.
fn beside(cluster: &Cluster, by_claims: bool, (creates, at_work): (bool, bool)) -> Result<i64, (Reason, String)> {
    let inventory = cluster.inventory();
    let own = placed(&json!({ "minGPUs": 2, "maxGPUs": 2 }));
    let granted = Granted {
        spec: &own,
        gpus: 2,
        by_claims,
        pods: Some("other/pv-1-"),
        creates,
        at_work,
    };
    match Fleet::new(&inventory).choose(inventory.for_run(), &own, &HeldNodes::default(), &[granted]) {
        Sizing::Chosen(plan) => Ok(plan.gpus),
        Sizing::Wait { reason, message } => Err((reason, message)),
        Sizing::Refuse { message, .. } => panic!("{message}"),
    }
}

#[test]
fn a_quota_counts_the_coming_pods_of_other_runs() {
    let two = |used: &str| {
        let cluster = Cluster::of_gpus(8);
        cluster.quota(&json!({ "hard": { CLAIMED: "3" } }), &json!({ CLAIMED: used }))
    };
    let of = |found: Result<i64, (Reason, String)>| found.map_err(|(reason, _)| reason);
    for (case, used, run, expected) in [
        (
            "it will create its pods, and gives them back",
            "0",
            (true, true),
            Err(Reason::NodeBusy),
        ),
        ("they are counted already", "2", (false, true), Err(Reason::NodeBusy)),
        (
            "it does not give them back",
            "2",
            (false, false),
            Err(Reason::QuotaExceeded),
        ),
        (
            "it will create them, and not give them back",
            "0",
            (true, false),
            Err(Reason::QuotaExceeded),
        ),
        ("it uses nothing", "0", (false, true), Ok(2)),
        ("others use it", "5", (false, true), Err(Reason::QuotaExceeded)),
    ] {
        assert_eq!(of(beside(&two(used), true, run)), expected, "{case}");
    }
    let (_, message) = beside(&two("0"), true, (true, true)).unwrap_err();
    assert!(
        message.contains("ResourceQuota quota-0 leaves")
            && message.contains("while other runs of this namespace use it"),
        "{message}"
    );
}

#[test]
fn a_quota_is_not_charged_twice_for_pods_that_are_there() {
    let quota = |used: &str| {
        (
            json!({ "hard": { GPU: "4", "pods": "8" } }),
            json!({ GPU: used, "pods": used }),
        )
    };
    let (hard, used) = quota("2");
    let plugin = Cluster::empty().node(NodeBuilder::named("n1").offers("nvidia.com/gpu", "8"));
    let cluster = plugin.quota(&hard, &used);
    assert_eq!(beside(&cluster, false, (true, true)).unwrap_err().0, Reason::NodeBusy);
    // Both workers and the frontend, also before they have a node.
    let names = ["pv-1-worker-a", "pv-1-worker-b", "pv-1-frontend"];
    for node in ["n1", ""] {
        let pod = |cluster: Cluster, name: &str| cluster.pod(PodBuilder::on(node, name).with_run_label());
        let there = names.into_iter().fold(cluster.clone(), pod);
        assert_eq!(beside(&there, false, (true, true)), Ok(2), "on {node:?}");
    }
    // The pod that fills the model cache is none of them, so one is still to come.
    let pod = |cluster: Cluster, name: &str| cluster.pod(PodBuilder::on("n1", name).with_run_label());
    let names = ["pv-1-worker-a", "pv-1-worker-b", "pv-1-cache-x"];
    let there = names.into_iter().fold(cluster, pod);
    assert_eq!(beside(&there, false, (true, true)).unwrap_err().0, Reason::NodeBusy);
}
