//! Limits of the namespace: `ResourceQuotas` and `LimitRanges`, as admission reads them.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use perfval_api::{PerfValidationSpec, Reason};
use perfval_sizing::{Seen, Sizing};
use perfval_testkit::inventory::{Cluster, NodeBuilder, PodBuilder};
use serde_json::{Value, json};

use super::ledgers::plugin_node;
use super::{any, choose, chosen, eight, refuses, spec, waits};

/// Eight GPUs on a node with 256 CPUs, of which a pod has some.
fn with_busy_cpus(cpus: &str) -> Cluster {
    eight().pod(PodBuilder::on("n1", "p").requests("cpu", cpus))
}

fn hard(resources: &Value, used: &Value) -> Cluster {
    eight().quota(&json!({ "hard": resources }), used)
}

/// A namespace that sets amounts of nothing where a pod sets none, as a quota on amounts wants.
fn with_all_set(cluster: Cluster) -> Cluster {
    let nothing = json!({ "cpu": "0", "memory": "0" });
    cluster.limit_range(&json!([{ "type": "Container", "default": nothing, "defaultRequest": nothing }]))
}

/// Workers of 8 cpus and 64Gi; the load generator takes 4 of each.
fn sized() -> PerfValidationSpec {
    spec(&json!({
        "workload": { "dynamo": {
            "image": "i:1",
            "worker": {"resources": {
                "requests": { "cpu": "8", "memory": "64Gi" }, "limits": { "cpu": "16", "memory": "64Gi" },
            }},
            "frontend": {"resources": { "requests": { "cpu": "100m" }, "limits": { "cpu": "100m" } }},
        } },
        "benchmark": { "resources": { "limits": { "cpu": "4", "memory": "4Gi" } } },
    }))
}

#[test]
fn a_quota_bounds_the_workers() {
    let rows = [
        ("pods, in addition to frontend and load generator", "pods", "5", "0", 3),
        ("pods in use", "pods", "5", "1", 2),
        ("pods as objects", "count/pods", "4", "0", 2),
        ("cpus", "requests.cpu", "30", "500m", 3),
        ("cpus by their short name", "cpu", "30", "0", 3),
        ("limits", "limits.cpu", "52100m", "0", 3),
        ("memory", "requests.memory", "200Gi", "0", 3),
        ("claims", "count/resourceclaims.resource.k8s.io", "6", "2", 4),
        (
            "devices of the class",
            "gpu.nvidia.com.deviceclass.resource.k8s.io/devices",
            "5",
            "0",
            5,
        ),
    ];
    for (name, resource, limit, used, expected) in rows {
        let cluster = with_all_set(hard(&json!({ resource: limit }), &json!({ resource: used })));
        assert_eq!(chosen(&cluster, &sized()).gpus, expected, "{name}");
    }
    // Devices of another class, and resources that a run does not make.
    for resources in [
        json!({ "x.deviceclass.resource.k8s.io/devices": "0" }),
        json!({ "services.loadbalancers": "0", "requests.storage": "0" }),
    ] {
        let cluster = with_all_set(hard(&resources, &json!({})));
        assert_eq!(chosen(&cluster, &sized()).gpus, 8, "{resources}");
    }
}

#[test]
fn a_quota_without_room_is_named_before_anything_is_created() {
    let full = with_all_set(hard(&json!({ "requests.cpu": "20" }), &json!({ "requests.cpu": "16" })));
    let says = "n1: 8 of 8 GPUs free, but ResourceQuota quota-0 leaves requests.cpu for only 0 workers";
    waits(&full, &sized(), Reason::QuotaExceeded, says);
    let uncounted = eight().quota(&json!({ "hard": { "pods": "50" } }), &json!({}));
    // Until it is counted, admission refuses everything.
    let says = "quota-0 leaves pods for only 0 workers";
    waits(&uncounted, &any(), Reason::QuotaExceeded, says);
}

#[test]
fn a_quota_counts_the_pods_of_its_scopes() {
    let scoped = |scopes: Value, used: &Value| {
        let mut quota = json!({ "hard": { "pods": "4" } });
        quota[scopes["as"].as_str().unwrap()] = scopes["is"].clone();
        eight().quota(&quota, used)
    };
    let none = json!({ "pods": "0" });
    let selector = |operator: &str| {
        json!({ "as": "scopeSelector", "is": { "matchExpressions": [
            { "scopeName": "PriorityClass", "operator": operator, "values": ["high"] },
        ] } })
    };
    let rows = [
        (json!({ "as": "scopes", "is": ["Terminating"] }), 8),
        (json!({ "as": "scopes", "is": ["NotTerminating"] }), 2),
        // Every pod of this run has a request: the frontend's is the operator's.
        (json!({ "as": "scopes", "is": ["BestEffort"] }), 8),
        (json!({ "as": "scopes", "is": ["NotBestEffort"] }), 2),
        (json!({ "as": "scopes", "is": ["SomethingNew"] }), 2),
        (selector("In"), 8),
        (selector("NotIn"), 2),
    ];
    for (scopes, expected) in rows {
        assert_eq!(
            chosen(&scoped(scopes.clone(), &none), &sized()).gpus,
            expected,
            "{scopes}"
        );
    }
}

#[test]
fn a_quota_of_a_priority_class_counts_the_runs_of_this_class() {
    let of_class = |class: &str| {
        let mut own = sized();
        own.pod_template.spec.priority_class_name = Some(class.to_owned());
        own
    };
    let (high, low, none) = (of_class("high"), of_class("low"), sized());
    let selector = |operator: &str, values: &[&str]| {
        let scope = json!({ "scopeName": "PriorityClass", "operator": operator, "values": values });
        json!({ "scopeSelector": { "matchExpressions": [scope] } })
    };
    let both = json!({ "scopeSelector": { "matchExpressions": [
        { "scopeName": "PriorityClass", "operator": "Exists" },
        { "scopeName": "PriorityClass", "operator": "NotIn", "values": ["low"] },
    ] } });
    // GPUs of a run at `high`, at `low` and without a class. The quota has room for two workers.
    for (scopes, expected) in [
        (selector("In", &["high"]), [2, 8, 8]),
        (selector("In", &["low", "high"]), [2, 2, 8]),
        (selector("NotIn", &["high"]), [8, 2, 2]),
        (selector("Exists", &[]), [2, 2, 8]),
        (selector("DoesNotExist", &[]), [8, 8, 2]),
        (json!({ "scopes": ["PriorityClass"] }), [2, 2, 8]),
        (both, [2, 8, 8]),
    ] {
        let mut quota = scopes.clone();
        quota["hard"] = json!({ "pods": "4" });
        let cluster = eight().quota(&quota, &json!({ "pods": "0" }));
        let gpus = [&high, &low, &none].map(|own| chosen(&cluster, own).gpus);
        assert_eq!(gpus, expected, "{scopes}");
    }
}

#[test]
fn a_quota_on_amounts_of_a_priority_class_refuses_only_pods_of_this_class() {
    let quota = json!({
        "hard": { "limits.memory": "1Ti" },
        "scopeSelector": { "matchExpressions": [
            { "scopeName": "PriorityClass", "operator": "In", "values": ["high"] },
        ] },
    });
    let cluster = eight().quota(&quota, &json!({ "limits.memory": "0" }));
    assert_eq!(chosen(&cluster, &sized()).gpus, 8);
    let mut high = sized();
    high.pod_template.spec.priority_class_name = Some("high".to_owned());
    let says = "wants limits.memory of every container";
    refuses(&cluster, &high, Reason::QuotaExceeded, says);
}

#[test]
fn a_device_plugin_s_resource_is_counted_too() {
    let cluster = Cluster::empty()
        .node(NodeBuilder::named("n1").offers("nvidia.com/gpu", "8"))
        .quota(
            &json!({ "hard": { "requests.nvidia.com/gpu": "6" } }),
            &json!({ "requests.nvidia.com/gpu": "1" }),
        );
    assert_eq!(chosen(&cluster, &any()).gpus, 5);
    let by_claims = hard(
        &json!({ "requests.nvidia.com/gpu": "3" }),
        &json!({ "requests.nvidia.com/gpu": "0" }),
    );
    assert_eq!(chosen(&by_claims, &any()).gpus, 8, "claims are not that resource");
    assert_eq!(
        chosen(&by_claims.class_for("nvidia.com/gpu"), &any()).gpus,
        3,
        "unless the class stands for it"
    );
}

#[test]
fn a_quota_that_wants_amounts_refuses_pods_without() {
    let quota = hard(&json!({ "limits.memory": "1Ti" }), &json!({ "limits.memory": "0" }));
    let says = "ResourceQuota quota-0 wants limits.memory of every container, and the frontend has none";
    refuses(&quota, &sized(), Reason::QuotaExceeded, says);
    let defaulted = quota.limit_range(&json!([
        { "type": "Container", "default": { "memory": "8Gi" }, "defaultRequest": { "memory": "1Gi" } },
    ]));
    assert_eq!(chosen(&defaulted, &sized()).gpus, 8);
    let twelve = hard(&json!({ "limits.memory": "140Gi" }), &json!({ "limits.memory": "0" })).limit_range(&json!([
        { "type": "Container", "default": { "memory": "8Gi" } },
    ]));
    assert_eq!(
        chosen(&twelve, &sized()).gpus,
        2,
        "8Gi of the frontend count, 4Gi of the load generator"
    );
}

#[test]
fn a_limit_range_that_refuses_our_pods_is_named() {
    let rows = [
        (
            json!({ "type": "Container", "max": { "cpu": "8" }, "default": { "cpu": "8" } }),
            "worker of type Container: limit of cpu is 16, and the maximum is 8",
        ),
        (
            json!({ "type": "Container", "min": { "memory": "128Gi" }, "defaultRequest": { "memory": "128Gi" } }),
            "worker of type Container: request of memory is 68719476736, and the minimum is 128Gi",
        ),
        (
            json!({ "type": "Pod", "max": { "memory": "32Gi" } }),
            "worker of type Pod: limit of memory is 68719476736, and the maximum is 32Gi",
        ),
        (
            json!({ "type": "Container", "max": { "ephemeral-storage": "1Gi" } }),
            "ephemeral-storage has a maximum of 1Gi and no limit is set",
        ),
        (
            json!({ "type": "Container", "maxLimitRequestRatio": { "cpu": "1500m" } }),
            "limit of cpu (16) may be 1500m times its request (8)",
        ),
        (
            json!({ "type": "Container", "maxLimitRequestRatio": { "cpu": "10" } }),
            "load generator's container install-runner (with fixed resources) of type Container: limit of cpu",
        ),
    ];
    for (limits, says) in rows {
        let cluster = eight().limit_range(&json!([limits]));
        refuses(&cluster, &sized(), Reason::LimitRangeViolated, says);
    }
    let harmless = json!([
        { "type": "PersistentVolumeClaim", "max": { "storage": "1Gi" } },
        { "type": "Container", "max": { "cpu": "16" }, "min": { "cpu": "10m" }, "default": { "cpu": "1" }, "defaultRequest": { "cpu": "100m" } },
        { "type": "Container", "max": { "nvidia.com/gpu": "2" }, "default": { "nvidia.com/gpu": "0" } },
    ]);
    assert_eq!(chosen(&eight().limit_range(&harmless), &sized()).gpus, 8);
    let of_gpus =
        json!([{ "type": "Container", "max": { "nvidia.com/gpu": "2" }, "default": { "nvidia.com/gpu": "0" } }]);
    let by_plugin = |gpus: i64| {
        spec(&json!({
            "placement": { "allocation": "DevicePlugin" },
            "workload": { "dynamo": { "image": "i:1", "worker": { "gpus": gpus } } },
        }))
    };
    let cluster = Cluster::empty().node(plugin_node("n1", "8")).limit_range(&of_gpus);
    assert_eq!(chosen(&cluster, &by_plugin(2)).gpus, 8);
    let says = "worker of type Container: limit of nvidia.com/gpu is 4, and the maximum is 2";
    refuses(&cluster, &by_plugin(4), Reason::LimitRangeViolated, says);
}

#[test]
fn defaults_of_a_limit_range_need_room_on_the_node() {
    let busy = with_busy_cpus("229").node(NodeBuilder::named("for-the-load-generator"));
    assert_eq!(chosen(&busy, &any()).gpus, 8, "nothing is asked for");
    let defaults = json!([{ "type": "Container", "default": { "cpu": "8" }, "defaultRequest": { "cpu": "5" } }]);
    assert_eq!(
        chosen(&busy.limit_range(&defaults), &any()).gpus,
        5,
        "27 cpus: 256m of the frontend and 5 of a worker for each GPU"
    );
}

#[test]
fn a_load_generator_that_does_not_fit_leaves_no_room_for_workers() {
    let pinned =
        spec(&json!({ "benchmark": { "placement": "WorkloadNode", "resources": { "requests": { "cpu": "32" } } } }));
    let busy = with_busy_cpus("230");
    // 26 cpus are left.
    waits(&busy, &pinned, Reason::Saturated, "but cpu for only 0 workers");
}

/// 256 requests in flight on each GPU: 2.56 CPUs of load generator and 512m of the frontend.
fn loaded(placement: &str) -> PerfValidationSpec {
    spec(&json!({ "benchmark": { "placement": placement, "concurrencyPerGPU": 256 } }))
}

#[test]
fn a_pinned_load_generator_takes_its_cpu_from_the_workers() {
    for (busy, gpus) in [("0", 8), ("231", 8), ("232", 7), ("246", 3)] {
        let cluster = with_busy_cpus(busy);
        assert_eq!(
            chosen(&cluster, &loaded("WorkloadNode")).gpus,
            gpus,
            "{busy} of 256 taken"
        );
    }
    let full = with_busy_cpus("254");
    let wanted = loaded("WorkloadNode");
    waits(&full, &wanted, Reason::Saturated, "but cpu for only 0 workers");
    // An amount in the spec is taken as it is, and so is the default of a namespace with room for less.
    let mut own = wanted.clone();
    own.benchmark.resources.requests = Some([("cpu".to_owned(), Quantity("1".to_owned()))].into());
    let room = with_busy_cpus("250");
    assert_eq!(chosen(&room, &own).gpus, 8, "6 cpus");
    let small = json!([{ "type": "Container", "default": { "cpu": "2" }, "defaultRequest": { "cpu": "1" } }]);
    let small = eight().limit_range(&small);
    let says = "the load generator asks for cpu 20.48, and its limit is 2";
    refuses(&small, &wanted, Reason::LimitRangeViolated, says);
    let says = "the frontend asks for cpu 4, and its limit is 2: raise the limit in workload.dynamo.frontend.resources";
    refuses(&small, &own, Reason::LimitRangeViolated, says);
}

#[test]
fn a_worker_that_asks_for_more_than_its_limit_is_refused() {
    let worker = |resources: Value| {
        spec(&json!({ "workload": { "dynamo": { "image": "i:1", "worker": { "resources": resources } } } }))
    };
    let default = eight().limit_range(&json!([{ "type": "Container", "default": { "memory": "8Gi" } }]));
    let says = "the worker asks for memory 68719476736, and its limit is 8589934592: raise the limit in \
                workload.dynamo.worker.resources";
    let large = worker(json!({ "requests": { "memory": "64Gi" } }));
    refuses(&default, &large, Reason::LimitRangeViolated, says);
    assert_eq!(chosen(&eight(), &large).gpus, 8);
    let plain = worker(json!({ "requests": { "memory": "64Gi" }, "limits": { "memory": "8Gi" } }));
    refuses(&eight(), &plain, Reason::LimitRangeViolated, says);
}

#[test]
fn a_quota_counts_load_generator_and_frontend_of_each_number_of_workers() {
    let nothing = json!([{ "type": "Container", "defaultRequest": { "cpu": "0" } }]);
    for (quota, gpus) in [("24480m", 8), ("24479m", 7), ("6144m", 2)] {
        let cluster = hard(&json!({ "requests.cpu": quota }), &json!({ "requests.cpu": "0" })).limit_range(&nothing);
        assert_eq!(chosen(&cluster, &loaded("Anywhere")).gpus, gpus, "{quota}");
    }
}

#[test]
fn a_load_generator_that_fits_nowhere_is_named_before_anything_is_created() {
    let busy = || with_busy_cpus("240");
    let small = busy().node(NodeBuilder::named("small").offers("cpu", "4"));
    let mut anywhere = loaded("Anywhere");
    assert_eq!(chosen(&small, &anywhere).gpus, 5, "15.36 of 16");
    anywhere.placement.min_gpus = 7;
    let says = "no node has room for the load generator of 7 GPUs on n1 (cpu 17.92: one for 100 of 1792 requests in flight, \
                as benchmark.resources gives none); the most cpu, 16, is left on n1 before the run";
    waits(&small, &anywhere, Reason::Saturated, says);
    let large = busy().node(NodeBuilder::named("large").offers("cpu", "24"));
    assert_eq!(chosen(&large, &anywhere).gpus, 8);
    for closed in [
        NodeBuilder::named("large").offers("cpu", "24").cordoned(),
        NodeBuilder::named("large").offers("cpu", "24").not_ready(),
        NodeBuilder::named("large")
            .offers("cpu", "24")
            .taint("other", "NoSchedule"),
    ] {
        waits(&busy().node(closed), &anywhere, Reason::Saturated, "no node has room");
    }
    // On the node under test the workers come first.
    let mut greedy = anywhere.clone();
    greedy.dynamo_mut().worker.resources.requests = Some([("cpu".to_owned(), Quantity("30".to_owned()))].into());
    assert_eq!(
        chosen(&eight(), &greedy).gpus,
        7,
        "8 × 30 + 20.48 + 4 of 256 are too much"
    );
    let mut few = loaded("Anywhere");
    few.placement.max_gpus = Some(4);
    assert_eq!(chosen(&busy(), &few).gpus, 4, "12.288 of 16");
    // It mounts the model cache, and the volume may be in one zone.
    let in_zone_a = json!({ "nodeSelectorTerms": [{ "matchExpressions": [
        { "key": "zone", "operator": "In", "values": ["a"] },
    ] }] });
    let with_large_in = |zone: &str| {
        let large = NodeBuilder::named("large").offers("cpu", "24").label("zone", zone);
        let n1 = NodeBuilder::named("n1").label("zone", "a");
        busy().node(n1).node(large).cache_on(&in_zone_a)
    };
    assert_eq!(chosen(&with_large_in("a"), &anywhere).gpus, 8);
    waits(&with_large_in("b"), &anywhere, Reason::Saturated, "no node has room");
    // Something other than CPU may be short.
    let mut vast = loaded("Anywhere");
    vast.benchmark.resources.requests = Some([("memory".to_owned(), Quantity("3Ti".to_owned()))].into());
    let says = "no node has memory 3298534883328 left for the load generator: free some, add a node, or lower \
                minGPUs or benchmark.resources";
    waits(&eight(), &vast, Reason::Saturated, says);
    let mut all = loaded("Anywhere");
    all.placement.min_gpus = 8;
    let nine_slots = eight().node(NodeBuilder::named("n1").offers("pods", "9"));
    let says = "no node has pods 1 left for the load generator";
    waits(&nine_slots, &all, Reason::Saturated, says);
}

#[test]
fn a_namespace_that_cannot_be_read_allows_nothing() {
    for part in 0..2 {
        let mut inventory = eight().inventory();
        let unread = || "list: 403 Forbidden".to_owned();
        match part {
            0 => inventory.quotas = Seen::Unknown(unread()),
            _ => inventory.limit_ranges = Seen::Unknown(unread()),
        }
        let Sizing::Wait { reason, message } = choose(&inventory, &any(), &[]) else {
            panic!()
        };
        assert_eq!(reason, Reason::CallFailed);
        assert!(message.contains("403 Forbidden"), "{message}");
    }
}
