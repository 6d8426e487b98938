//! Differences between the real scheduler and an earlier version of sizing: clusters that `just oracle` found,
//! shrunk.

use perfval_api::Reason;
use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, PodBuilder, gpu};
use serde_json::json;

use super::{any, chosen, n1_with, names, one_of_two, spec, waits};

#[test]
fn workers_that_ask_for_nothing_do_not_fit_where_the_load_generator_does_not() {
    // Seed 355: the workers' own resources were the only ones looked at.
    let cluster = Cluster::of_gpus(1)
        .node(NodeBuilder::named("n1").offers("cpu", "6"))
        .pod(PodBuilder::on("n1", "other").requests("cpu", "3700m")); // the frontend asks for 256m
    let trial = |cpu: &str| {
        spec(&json!({ "benchmark": { "placement": "WorkloadNode", "resources": { "requests": { "cpu": cpu } } } }))
    };
    assert_eq!(chosen(&cluster, &trial("2")).gpus, 1);
    let short = "cpu for only 0 workers";
    waits(&cluster, &trial("4"), Reason::Saturated, short);
}

#[test]
fn counters_below_zero_block_every_device_of_the_pool_that_counts() {
    // gpu-0 is held as a whole and by a partition, as after a driver published its partitions again.
    let counters = one_of_two("a-counters")
        .counter_set("set-0", "memory", "80Gi")
        .counter_set("set-1", "memory", "80Gi");
    let partition = gpu(8).named("gpu-0-mig").attribute("type", "mig");
    let devices = one_of_two("b-devices")
        .device(gpu(0).consumes("set-0", "memory", "80Gi"))
        .device(partition.consumes("set-0", "memory", "20Gi"))
        .device(gpu(1).consumes("set-1", "memory", "80Gi"))
        .device(gpu(2));
    let cluster = n1_with(counters)
        .slice(devices)
        .claim(ClaimBuilder::named("whole").holds("n1", "gpu-0"))
        .claim(ClaimBuilder::named("partition").holds("n1", "gpu-0-mig"));
    let plan = chosen(&cluster, &any());
    assert_eq!(names(&plan), ["gpu-2"], "the one that consumes no counter");
}
