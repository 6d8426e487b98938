//! What the real scheduler did otherwise than sizing had thought: clusters that the oracle (`just oracle`) found and shrank.

use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, SliceBuilder, gpu};

use super::{any, chosen};

#[test]
fn counters_below_zero_block_every_device_of_the_pool_that_counts() {
    // gpu-0 is held as a whole and by a partition, as after a driver published its partitions anew.
    let counters = SliceBuilder::of("n1")
        .named("a-counters")
        .generation(1, 2)
        .counter_set("set-0", "memory", "80Gi")
        .counter_set("set-1", "memory", "80Gi");
    let devices = |last| {
        SliceBuilder::of("n1")
            .named("b-devices")
            .generation(1, 2)
            .device(gpu(0).consumes("set-0", "memory", "80Gi"))
            .device(
                gpu(8)
                    .named("gpu-0-mig")
                    .attribute("type", "mig")
                    .consumes("set-0", "memory", "20Gi"),
            )
            .device(gpu(1).consumes("set-1", "memory", "80Gi"))
            .device(last)
    };
    let cluster = |last| {
        Cluster::empty()
            .node(NodeBuilder::named("n1"))
            .slice(counters.clone())
            .slice(devices(last))
            .claim(ClaimBuilder::named("whole").holds("n1", "gpu-0"))
            .claim(ClaimBuilder::named("partition").holds("n1", "gpu-0-mig"))
    };
    let plan = chosen(&cluster(gpu(2)), &any());
    assert_eq!(plan.devices[0].name, "gpu-2", "the one that consumes no counter");
    assert_eq!(plan.gpus, 1);
}
