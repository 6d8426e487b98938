//! Choice of the node: eligible, with room, and the emptiest.

use perfval_api::Reason;
use perfval_sizing::{OtherRun, Sizing};
use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, PodBuilder, SliceBuilder};
use serde_json::{Value, json};

use super::{any, choose, chosen, eight, placed, spec, waits};

#[test]
fn nodes_that_our_pods_may_not_use_are_not_chosen() {
    let selective = placed(&json!({ "nodeSelector": { "pool": "h100" } }));
    let tolerant = placed(&json!({ "tolerations": [{ "key": "other", "operator": "Exists" }] }));
    let n1 = || NodeBuilder::named("n1");
    let rows = [
        (
            n1().taint("node.kubernetes.io/disk-pressure", "NoSchedule"),
            any(),
            "disk-pressure",
        ),
        (n1().label("pool", "a100"), selective, "pool=h100"),
        (n1().not_ready(), any(), "n1: is not Ready"),
        (
            n1().taint("dedicated", "NoSchedule"),
            tolerant,
            "n1: has the taint dedicated:NoSchedule",
        ),
    ];
    for (node, spec, says) in rows {
        waits(&eight().node(node), &spec, Reason::NoCandidateNode, says);
    }
}

#[test]
fn taints_are_tolerated_if_they_only_mark_gpus_or_the_spec_tolerates_them() {
    let cluster = eight().node(
        NodeBuilder::named("n1")
            .taint("nvidia.com/gpu=present", "NoSchedule")
            .taint("sku=gpu", "NoExecute")
            .taint("soft", "PreferNoSchedule"),
    );
    let marks = [
        json!({ "key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule" }),
        json!({ "key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoExecute" }),
    ];
    assert_eq!(json!(chosen(&cluster, &any()).details.tolerations), json!(marks));

    let other = json!({ "key": "dedicated", "operator": "Exists" });
    let with_other = placed(&json!({ "tolerations": [other] }));
    assert_eq!(
        json!(chosen(&cluster, &with_other).details.tolerations),
        json!([&[other][..], &marks].concat())
    );
    let everything = json!([{ "operator": "Exists" }]);
    let bears_all = placed(&json!({ "tolerations": everything }));
    assert_eq!(json!(chosen(&cluster, &bears_all).details.tolerations), everything);

    let resource = placed(&json!({ "resourceName": "amd.com/gpu", "allocation": "DRA" }));
    let marked = eight().node(NodeBuilder::named("n1").taint("amd.com/gpu", "NoSchedule"));
    assert_eq!(
        json!(chosen(&marked, &resource).details.tolerations),
        json!([{ "key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule" }])
    );
}

#[test]
fn any_other_taint_is_named_with_the_toleration_that_the_spec_lacks() {
    let tainted = |taints: &[(&str, &str)]| {
        let node = NodeBuilder::named("n1").taint("nvidia.com/gpu", "NoSchedule");
        let node = taints.iter().fold(node, |node, (key, effect)| node.taint(key, effect));
        eight().node(node)
    };
    let rows: [(&[(&str, &str)], &str); 6] = [
        (
            &[("dedicated=ml", "NoSchedule")],
            "n1: has the taint dedicated=ml:NoSchedule, which is not tolerated: add to placement.tolerations: \
             [{key: \"dedicated\", operator: Equal, value: \"ml\", effect: NoSchedule}]",
        ),
        (
            &[("gpu=true", "NoExecute"), ("team", "NoSchedule")],
            "n1: has the taints gpu=true:NoExecute and team:NoSchedule, which are not tolerated: add to \
             placement.tolerations: [{key: \"gpu\", operator: Equal, value: \"true\", effect: NoExecute}, \
             {key: \"team\", operator: Exists, effect: NoSchedule}]",
        ),
        (&[("sku=cpu", "NoSchedule")], "value: \"cpu\""),
        (
            &[("ToBeDeletedByClusterAutoscaler=1732200000", "NoSchedule")],
            "n1: is out of service: it has the taint ToBeDeletedByClusterAutoscaler=1732200000:NoSchedule",
        ),
        (
            &[("dedicated=ml", "NoSchedule"), ("karpenter.sh/disrupted", "NoSchedule")],
            "n1: is out of service: it has the taint karpenter.sh/disrupted:NoSchedule",
        ),
        (
            &[("node.cloudprovider.kubernetes.io/uninitialized=true", "NoSchedule")],
            "n1: is out of service",
        ),
    ];
    for (taints, says) in rows {
        waits(&tainted(taints), &any(), Reason::NoCandidateNode, says);
    }
    let advised = json!([{ "key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule" }]);
    let spec = placed(&json!({ "tolerations": advised }));
    assert_eq!(chosen(&tainted(&[("dedicated=ml", "NoSchedule")]), &spec).gpus, 8);
}

#[test]
fn a_cordoned_node_needs_its_name_in_the_spec_and_a_toleration() {
    let cordoned = || {
        NodeBuilder::named("n1")
            .label("kubernetes.io/hostname", "host-1")
            .cordoned()
    };
    // The node controller adds the taint a moment later.
    let with_taint = cordoned().taint("node.kubernetes.io/unschedulable", "NoSchedule");
    let named = json!({ "kubernetes.io/hostname": "host-1" });
    let tolerated = json!([{ "key": "node.kubernetes.io/unschedulable", "operator": "Exists" }]);
    for node in [cordoned(), with_taint] {
        let cluster = eight().node(node);
        let rows = [
            (placed(&json!({})), "n1: is cordoned"),
            (placed(&json!({ "tolerations": tolerated })), "n1: is cordoned"),
            (
                placed(&json!({ "nodeSelector": named })),
                "add to placement.tolerations: [{key: \"node.kubernetes.io/unschedulable\", operator: Exists, effect: NoSchedule}]",
            ),
            (
                placed(&json!({ "nodeSelector": { "kubernetes.io/hostname": "n1" }, "tolerations": tolerated })),
                "does not carry kubernetes.io/hostname=n1",
            ),
        ];
        for (spec, says) in rows {
            waits(&cluster, &spec, Reason::NoCandidateNode, says);
        }
        let both = placed(&json!({ "nodeSelector": named, "tolerations": tolerated }));
        let plan = chosen(&cluster, &both);
        assert_eq!((plan.gpus, json!(plan.details.tolerations)), (8, tolerated.clone()));
    }
}

#[test]
fn the_model_cache_decides_where_a_run_can_be() {
    let zone = |zone: &str| {
        json!({ "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone] }] },
        ] })
    };
    let cluster = eight()
        .node(NodeBuilder::named("n1").label("topology.kubernetes.io/zone", "a"))
        .node(NodeBuilder::named("n2").label("topology.kubernetes.io/zone", "b"))
        .slice(SliceBuilder::of("n2").gpus(4));
    assert_eq!(chosen(&cluster, &any()).node, "n1");
    assert_eq!(chosen(&cluster.clone().cache_on(&zone("b")), &any()).node, "n2");
    let says = "n1, n2: cannot reach the volume of the model cache weights: only nodes with \
                topology.kubernetes.io/zone in c can";
    waits(
        &cluster.clone().cache_on(&zone("c")),
        &any(),
        Reason::NoCandidateNode,
        says,
    );
    // A local volume.
    let on_n2 = json!({ "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"] }] },
    ] });
    let named = cluster.node(
        NodeBuilder::named("n2")
            .label("kubernetes.io/hostname", "n2")
            .label("topology.kubernetes.io/zone", "b"),
    );
    assert_eq!(chosen(&named.cache_on(&on_n2), &any()).node, "n2");
}

#[test]
fn workers_fit_next_to_everything_else() {
    let worker =
        |resources: Value| json!({ "workload": { "dynamo": { "image": "i:1", "worker": {"resources": resources} } } });
    let eight_cpus = || worker(json!({ "requests": { "cpu": "8" } }));
    let busy_node = eight().pod(PodBuilder::on("n1", "p").requests("cpu", "230"));
    let two_nodes = busy_node.clone().node(NodeBuilder::named("for-the-load-generator"));
    assert_eq!(chosen(&two_nodes, &spec(&eight_cpus())).gpus, 3, "26 cpus are left");
    assert_eq!(
        chosen(&busy_node, &spec(&eight_cpus())).gpus,
        2,
        "and 2.56 of them are the load generator's"
    );

    let mut with_trial = eight_cpus();
    with_trial["benchmark"] = json!({ "placement": "WorkloadNode", "resources": { "limits": { "cpu": "16" } } });
    assert_eq!(
        chosen(&busy_node, &spec(&with_trial)).gpus,
        1,
        "16 of them are the load generator's"
    );

    let slots = eight()
        .node(NodeBuilder::named("n1").offers("pods", "4"))
        .node(NodeBuilder::named("for-the-load-generator"));
    assert_eq!(chosen(&slots, &any()).gpus, 3, "one slot is the frontend's");
    let elsewhere = spec(&json!({ "workload": {"dynamo": {"frontend": {"placement": "Anywhere"}}} }));
    assert_eq!(chosen(&slots, &elsewhere).gpus, 4);

    let too_big = spec(&worker(json!({ "limits": { "memory": "3Ti" } })));
    waits(&eight(), &too_big, Reason::Saturated, "memory for only 0 workers");
    // A GPU entry in the spec is not counted again.
    let gpus_too = spec(&worker(json!({ "limits": { "nvidia.com/gpu": "4" } })));
    assert_eq!(chosen(&eight(), &gpus_too).gpus, 8);
}

#[test]
fn the_plan_is_the_whole_answer() {
    let cluster = eight().claim(ClaimBuilder::named("c").holds("n1", "gpu-0"));
    let plan = chosen(&cluster, &placed(&json!({ "maxGPUs": 2 })));
    assert_eq!(
        json!(plan),
        json!({
            "node": "n1", "allocation": "DRA", "gpus": 2, "nodeGPUs": 8,
            "product": "NVIDIA H100 80GB HBM3", "driverVersion": "550.163.1",
            "devices": ["GPU-1", "GPU-2"],
            "deviceIds": [
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
    let capped = placed(&json!({ "maxGPUs": 4 }));
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
    let at_least = |min: i32| placed(&json!({ "minGPUs": min }));
    let cluster = eight().claim(ClaimBuilder::named("c").holds("n1", "gpu-0"));
    assert_eq!(chosen(&cluster, &at_least(7)).gpus, 7);
    let says = "no node for 8 GPUs or more: n1: 7 of 8 GPUs free (1 in use by other/c)";
    waits(&cluster, &at_least(8), Reason::Saturated, says);
    waits(&cluster, &at_least(9), Reason::NoCandidateNode, "has 8 GPUs in all");
}
