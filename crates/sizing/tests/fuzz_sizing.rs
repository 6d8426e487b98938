//! Mutates slices, claims, pods and all else that sizing reads, and holds it to its promises: never a panic, never a GPU
//! that is not there or not free.

use std::collections::BTreeSet;

use fastrand::Rng;
use perfval_api::{Allocation, PerfValidationSpec};
use perfval_sizing::inventory::{Dump, Inventory, Slice};
use perfval_sizing::{Fleet, NodeReport, Plan, Sizing, explain, intruder};
use perfval_testkit::fuzz;
use perfval_testkit::inventory::{ClaimBuilder, Cluster, GPU_DRIVER, NodeBuilder, PodBuilder, SliceBuilder, gpu};
use serde_json::{Value, from_value, json};

#[test]
fn mutated_clusters_never_break_a_promise() {
    let corpus = corpus();
    let mut tally = Tally::default();
    fuzz::rounds(1300, |rng| {
        for objects in &corpus {
            let mut mutated = objects.clone();
            for _ in 0..rng.usize(1..5) {
                mutate(rng, &mut mutated);
            }
            tally.add(&mutated);
        }
        tally.executions
    });
    println!("{tally:?}");
    // A run in which nothing was read, refused, chosen or kept back has tested nothing.
    assert!(
        tally.unreadable > 0 && tally.chosen > 0 && tally.waiting > 0 && tally.refused > 0,
        "{tally:?}"
    );
}

/// Clusters that reach every rule: counters, partitions, shares, taints, several slices, mixed allocation, a namespace.
fn corpus() -> Vec<Vec<Value>> {
    let counted = SliceBuilder::of("n1")
        .named("a")
        .generation(3, 2)
        .counter_set("set-0", "memory", "80Gi");
    let devices = SliceBuilder::of("n1")
        .named("b")
        .generation(3, 2)
        .device(gpu(0).consumes("set-0", "memory", "80Gi"))
        .device(
            gpu(0)
                .named("gpu-0-mig-0")
                .attribute("type", "mig")
                .attribute("parentUUID", "GPU-0")
                .consumes("set-0", "memory", "40Gi"),
        )
        .device(gpu(1).shareable())
        .device(gpu(2).taint("gpu.nvidia.com/xid", "NoSchedule"))
        .device(gpu(3).field("bindingConditions", json!(["attached"])))
        .device(gpu(4))
        .device(gpu(5));
    let partitioned = Cluster::empty()
        .node(NodeBuilder::named("n1"))
        .slice(counted)
        .slice(devices)
        .claim(ClaimBuilder::named("c").holds("n1", "gpu-0-mig-0"))
        .taint_rule(
            &json!({ "deviceSelector": { "device": "gpu-5" }, "taint": { "key": "k", "effect": "NoExecute" } }),
        );
    let twin = Cluster::of_gpus(4)
        .slice(
            SliceBuilder::of("n1")
                .pool("vfio")
                .device(gpu(0).named("gpu-vfio-0").attribute("type", "vfio")),
        )
        .claim(ClaimBuilder::named("c").holds("vfio", "gpu-vfio-0"));
    let elsewhere = json!({ "nodeSelector": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "rack", "operator": "In", "values": ["a"] }] },
    ] } });
    let shared = Cluster::of_gpus(2)
        .node(
            NodeBuilder::named("n2")
                .label("rack", "a")
                .taint("nvidia.com/gpu=present", "NoSchedule"),
        )
        .slice(SliceBuilder::of("rack").gpus(3).target(&elsewhere))
        .cache_on(&elsewhere["nodeSelector"])
        .pod(
            PodBuilder::on("n2", "p")
                .requests("cpu", "30")
                .requests("memory", "64Gi"),
        );
    let dual = Cluster::of_gpus(4)
        .node(NodeBuilder::named("n1").offers("nvidia.com/gpu", "4"))
        .pod(
            PodBuilder::on("n1", "p")
                .requests("nvidia.com/gpu", "1")
                .has_devices("nvidia.com/gpu", &["GPU-2"]),
        );
    let namespace = [
        json!({ "kind": "PodList", "items": [] }),
        json!({ "kind": "PersistentVolumeClaim", "metadata": { "name": "weights", "namespace": "n" }, "spec": { "volumeName": "pv-weights" } }),
        json!({ "kind": "ResourceQuota", "metadata": { "name": "q", "namespace": "n" }, "spec": { "hard": { "pods": "6", "limits.cpu": "900" } }, "status": { "used": { "pods": "1", "limits.cpu": "1" } } }),
        json!({ "kind": "LimitRange", "metadata": { "name": "l", "namespace": "n" }, "spec": { "limits": [
            { "type": "Container", "default": { "cpu": "2" }, "defaultRequest": { "cpu": "1" }, "max": { "cpu": "64" }, "min": { "cpu": "1m" } },
        ] } }),
        json!({ "apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest", "metadata": { "name": "b", "namespace": "n" }, "spec": { "resourceClaimAllocations": [
            { "allocation": { "devices": { "results": [{ "request": "gpu", "driver": GPU_DRIVER, "pool": "n1", "device": "gpu-1" }] } } },
        ] }, "status": { "phase": "Pending" } }),
    ];
    [partitioned, twin, shared, dual]
        .iter()
        .map(|cluster| cluster.objects().into_iter().chain(namespace.clone()).collect())
        .collect()
}

/// Unexpected content of objects.
fn oddity(rng: &mut Rng) -> Value {
    let oddities = [
        json!(null),
        json!(-1),
        json!(0),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(true),
        json!(""),
        json!("gpu-0"),
        json!("n1"),
        json!("Newer"),
        json!("-80Gi"),
        json!("1e400"),
        json!("79228162514264337593543950335"),
        json!("-79228162514264337593543950335"),
        json!("999999999999Ei"),
        json!("0.000000000000000000000000001"),
        json!("1 GiB"),
        json!("ö'\"\\"),
        json!([]),
        json!({}),
    ];
    rng.choice(oddities).unwrap_or_default()
}

/// Changes one place of one object, drops it, or doubles it; or doubles a whole object.
fn mutate(rng: &mut Rng, objects: &mut Vec<Value>) {
    let index = rng.usize(0..objects.len());
    if rng.u8(0..12) == 0 && objects[index]["kind"] != "Node" {
        let twice = objects[index].clone();
        objects.push(twice);
        return;
    }
    let mut pointers = Vec::new();
    walk(&objects[index], String::new(), &mut pointers);
    let pointer = pointers[rng.usize(0..pointers.len())].clone();
    let Some((parent, field)) = pointer.rsplit_once('/').filter(|(_, field)| *field != "kind") else {
        return;
    };
    let new = oddity(rng);
    match objects[index].pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            let field = field.replace("~1", "/").replace("~0", "~");
            if rng.u8(0..4) == 0 {
                fields.remove(&field);
            } else {
                fields.insert(field, new);
            }
        }
        Some(Value::Array(items)) => {
            let Ok(at) = field.parse::<usize>() else { return };
            match rng.u8(0..4) {
                0 => drop(items.remove(at)),
                1 => items[at] = new,
                _ => items.push(items[at].clone()),
            }
        }
        _ => {}
    }
}

fn walk(value: &Value, pointer: String, pointers: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                walk(field, format!("{pointer}/{name}"), pointers);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, format!("{pointer}/{index}"), pointers);
            }
        }
        _ => {}
    }
    pointers.push(pointer);
}

#[derive(Debug, Default)]
struct Tally {
    executions: u64,
    unreadable: u64,
    chosen: u64,
    waiting: u64,
    refused: u64,
}

impl Tally {
    fn add(&mut self, objects: &[Value]) {
        self.executions += 1;
        // A list with an object of another shape is unreadable.
        let Some(inventory) = read(objects) else {
            self.unreadable += 1;
            return;
        };
        for allocation in ["Auto", "DRA", "DevicePlugin"] {
            let spec: PerfValidationSpec = from_value(json!({
                "model": { "name": "m" },
                "workload": { "dynamo": { "image": "i:1", "worker": {"resources": { "limits": { "cpu": "8" } }} } },
                "benchmark": { "resources": { "limits": { "cpu": "2" } } },
                "placement": { "allocation": allocation },
            }))
            .expect("a spec");
            let (reports, sizing) = explain(&inventory, &spec, &[]);
            reports.iter().for_each(is_sane);
            match sizing {
                Sizing::Chosen(plan) => {
                    self.chosen += 1;
                    is_kept(&plan, &inventory, &reports);
                    assert_eq!(
                        intruder(&inventory, &spec, &plan, plan.details.neighbours.as_deref()),
                        Ok(None),
                        "{plan:?}"
                    );
                }
                Sizing::Wait { message, .. } => {
                    self.waiting += 1;
                    assert!(!message.is_empty());
                }
                Sizing::Refuse { message, .. } => {
                    self.refused += 1;
                    assert!(!message.is_empty());
                }
            }
        }
        let _ = Fleet::new(&inventory).warnings(&inventory.naming); // any answer is right but a panic
    }
}

fn is_sane(report: &NodeReport) {
    let taken: i64 = report.taken.iter().map(|taken| taken.gpus).sum();
    assert!((0..=report.total).contains(&report.free), "{report:?}");
    assert!((0..=report.free).contains(&report.usable), "{report:?}");
    assert_eq!(report.free + taken, report.total, "{report:?}");
    assert_eq!(report.obstacle.is_none(), report.usable > 0, "{report:?}");
    assert!(!report.summary().is_empty());
}

/// A plan names devices that are published, and that no claim and no promise holds.
fn is_kept(plan: &Plan, inventory: &Inventory, reports: &[NodeReport]) {
    // Two nodes may bear one name here, which no API server allows.
    let mut named = reports.iter().filter(|report| report.node == plan.node);
    assert!(named.any(|report| plan.gpus <= report.usable), "{plan:?} {reports:?}");
    assert!(plan.gpus > 0, "{plan:?}");
    if plan.allocation != Allocation::Dra {
        return;
    }
    assert_eq!(i64::try_from(plan.details.device_ids.len()), Ok(plan.gpus));
    let claims = [&inventory.claims, &inventory.promises];
    let held: BTreeSet<[&str; 3]> = claims
        .into_iter()
        .flat_map(|list| list.present().into_iter().flatten())
        .flat_map(|claim| &claim.devices)
        .map(|held| [&*held.driver, &*held.pool, &*held.device])
        .collect();
    for planned in &plan.details.device_ids {
        let is_free = |slice: &&Slice| {
            *slice.pool == *planned.pool
                && slice.devices.iter().any(|device| *device.name == *planned.name)
                && !held.contains(&[&*slice.driver, &*slice.pool, planned.name.as_str()])
        };
        let free = inventory.slices.present().into_iter().flatten().filter(is_free).count();
        let times = plan
            .details
            .device_ids
            .iter()
            .filter(|device| *device == planned)
            .count();
        assert!(times <= free, "{planned:?} of {plan:?}");
    }
}

/// Inventory that `size` reads from these objects; `None` if one of them has another shape.
fn read(objects: &[Value]) -> Option<Inventory> {
    let mut dump = Dump::default();
    for object in objects {
        dump.add(object.clone()).ok()?;
    }
    Some(dump.finish(GPU_DRIVER, "n", Some("weights")).ok()?.inventory)
}
