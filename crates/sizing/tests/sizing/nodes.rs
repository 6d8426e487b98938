//! Which node: eligible, with room, and the emptiest.

use perfval_api::Reason;
use perfval_sizing::{OtherRun, Sizing, choose};
use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, PodBuilder, SliceBuilder};
use serde_json::{Value, json};

use super::{any, chosen, eight, not_chosen, spec};

#[test]
fn nodes_that_our_pods_may_not_use_are_not_chosen() {
    let selective = spec(&json!({ "placement": { "nodeSelector": { "pool": "h100" } } }));
    let n1 = || NodeBuilder::named("n1");
    let rows = [
        (
            "never mirrored",
            n1().taint("node.kubernetes.io/disk-pressure", "NoSchedule"),
            any(),
            "disk-pressure",
        ),
        ("wrong label", n1().label("pool", "a100"), selective, "pool=h100"),
    ];
    for (name, node, spec, says) in rows {
        assert_eq!(
            not_chosen(&eight().node(node), &spec, says),
            Ok(Reason::NoCandidateNode),
            "{name}"
        );
    }
}

#[test]
fn tolerations_are_those_of_the_spec_or_the_node_s_own_taints() {
    let cluster = eight().node(
        NodeBuilder::named("n1")
            .taint("nvidia.com/gpu", "NoSchedule")
            .taint("soft", "PreferNoSchedule"),
    );
    let plan = chosen(&cluster, &any());
    assert_eq!(
        json!(plan.tolerations),
        json!([{ "key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule" }])
    );
    let everything = json!([{ "operator": "Exists" }]);
    let spec = spec(&json!({ "placement": { "tolerations": everything } }));
    assert_eq!(json!(chosen(&cluster, &spec).tolerations), everything);
}

#[test]
fn workers_fit_beside_everything_else() {
    let worker = |resources: Value| json!({ "workload": { "image": "i:1", "resources": resources } });
    let eight_cpus = || worker(json!({ "requests": { "cpu": "8" } }));
    let busy_node = eight().pod(PodBuilder::on("n1", "p").requests("cpu", "230"));
    assert_eq!(chosen(&busy_node, &spec(&eight_cpus())).gpus, 3, "19: 26 cpus left");

    let mut with_trial = eight_cpus();
    with_trial["benchmark"] = json!({ "placement": "WorkloadNode", "resources": { "limits": { "cpu": "16" } } });
    assert_eq!(
        chosen(&busy_node, &spec(&with_trial)).gpus,
        1,
        "19: 16 of them are the load generator's"
    );

    let slots = eight().node(NodeBuilder::named("n1").offers("pods", "4"));
    assert_eq!(chosen(&slots, &any()).gpus, 3, "one slot is the frontend's");
    let elsewhere = spec(&json!({ "placement": { "frontend": "Anywhere" } }));
    assert_eq!(chosen(&slots, &elsewhere).gpus, 4);

    let too_big = spec(&worker(json!({ "limits": { "memory": "3Ti" } })));
    assert_eq!(
        not_chosen(&eight(), &too_big, "memory for only 0 workers"),
        Ok(Reason::Saturated)
    );
    // What a spec says about the GPU itself is not counted again.
    let gpus_too = spec(&worker(json!({ "limits": { "nvidia.com/gpu": "4" } })));
    assert_eq!(chosen(&eight(), &gpus_too).gpus, 8);
}

#[test]
fn the_plan_is_the_whole_answer() {
    let cluster = eight().claim(ClaimBuilder::named("c").holds("n1", "gpu-0"));
    let plan = chosen(&cluster, &spec(&json!({ "placement": { "maxGPUs": 2 } })));
    assert_eq!(
        json!(plan),
        json!({
            "node": "n1", "allocation": "DRA", "gpus": 2, "nodeGPUs": 8,
            "product": "NVIDIA H100 80GB HBM3", "driverVersion": "550.163.1",
            "devices": [
                { "pool": "n1", "name": "gpu-1", "uuid": "GPU-1" },
                { "pool": "n1", "name": "gpu-2", "uuid": "GPU-2" },
            ],
        })
    );
}

#[test]
fn the_emptiest_node_wins_and_ties_go_by_name() {
    let node = |cluster: Cluster, name: &str, gpus: usize| {
        cluster
            .node(NodeBuilder::named(name))
            .slice(SliceBuilder::of(name).gpus(gpus))
    };
    let cluster = ["n2", "n3"]
        .iter()
        .fold(Cluster::of_gpus(4), |cluster, name| node(cluster, name, 8));
    assert_eq!(chosen(&cluster, &any()).node, "n2");
    let capped = spec(&json!({ "placement": { "maxGPUs": 4 } }));
    assert_eq!(chosen(&cluster, &capped).node, "n2", "even where fewer would do");

    let busy = |node: &str| OtherRun {
        name: format!("perf/on-{node}"),
        node: node.to_owned(),
    };
    let Sizing::Chosen(plan) = choose(&cluster.inventory(), &any(), &[busy("n2")]) else {
        panic!()
    };
    assert_eq!(plan.node, "n3");
    let Sizing::Wait { reason, message } = choose(&cluster.inventory(), &any(), &[busy("n1"), busy("n2"), busy("n3")])
    else {
        panic!()
    };
    assert_eq!(reason, Reason::NodeBusy);
    assert!(message.contains("n3: is held by the run of perf/on-n3"), "{message}");
}

#[test]
fn too_few_gpus_are_never_a_plan() {
    let at_least = |min: i32| spec(&json!({ "placement": { "minGPUs": min } }));
    let cluster = eight().claim(ClaimBuilder::named("c").holds("n1", "gpu-0"));
    assert_eq!(chosen(&cluster, &at_least(7)).gpus, 7);
    let says = "no node for 8 GPUs or more: n1: 7 of 8 GPUs free (1 in use by other/c)";
    assert_eq!(not_chosen(&cluster, &at_least(8), says), Ok(Reason::Saturated));
    assert_eq!(
        not_chosen(&cluster, &at_least(9), "has 8 GPUs in all"),
        Ok(Reason::NoCandidateNode)
    );
}
