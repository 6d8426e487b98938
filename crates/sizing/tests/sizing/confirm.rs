//! The check after allocation: the devices of workers against published and held ones.

use perfval_sizing::{HeldByWorker, Seen, Unconfirmed, confirm};
use perfval_testkit::inventory::{ClaimBuilder, Cluster, GPU_DRIVER, SliceBuilder, gpu};

use super::n1_with;

fn given(worker: &str, device: &'static str) -> HeldByWorker<'static> {
    HeldByWorker {
        worker: worker.to_owned(),
        claim: format!("other/{worker}"),
        driver: GPU_DRIVER,
        pool: "n1",
        device,
    }
}

/// Two workers with a GPU each, and the claims by which they hold it.
fn two() -> (Cluster, [HeldByWorker<'static>; 2]) {
    let cluster = Cluster::of_gpus(4)
        .claim(ClaimBuilder::named("w0").holds("n1", "gpu-3"))
        .claim(ClaimBuilder::named("w1").holds("n1", "gpu-1"));
    (cluster, [given("w0", "gpu-3"), given("w1", "gpu-1")])
}

#[track_caller]
fn wrong(cluster: &Cluster, given: &[HeldByWorker<'_>], words: &[&str]) {
    match confirm(&cluster.inventory(), "n1", given) {
        Err(Unconfirmed::Wrong(why)) => assert!(words.iter().all(|word| why.contains(word)), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn whole_gpus_of_the_node_are_confirmed_with_their_uuids() {
    let (cluster, given) = two();
    let devices = confirm(&cluster.inventory(), "n1", &given).expect("all is well");
    let found: Vec<_> = devices
        .iter()
        .map(|device| (&*device.name, device.uuid.as_deref()))
        .collect();
    assert_eq!(found, [("gpu-1", Some("GPU-1")), ("gpu-3", Some("GPU-3"))]);
}

#[test]
fn a_gpu_that_is_not_published_or_that_another_claim_holds_is_reported() {
    let (cluster, mut held) = two();
    held[1].device = "gpu-9";
    wrong(&cluster, &held, &["gpu-9", "w1", "no ResourceSlice"]);
    held[1] = given("w1", "gpu-1");
    held[1].driver = "other.example.com";
    wrong(&cluster, &held, &["gpu-1", "no ResourceSlice"]);

    let (cluster, given) = two();
    let cluster = cluster.claim(ClaimBuilder::named("forced").holds("n1", "gpu-3"));
    wrong(&cluster, &given, &["gpu-3", "w0", "other/forced"]);
}

#[test]
fn claims_that_lack_the_workers_own_confirm_nothing() {
    let given = [given("w0", "gpu-3")];
    match confirm(&Cluster::of_gpus(4).inventory(), "n1", &given) {
        Err(Unconfirmed::Unknown(why)) => assert!(why.contains("other/w0 is not yet"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_devices_of_one_card_are_one_gpu() {
    let twin = || gpu(0).named("gpu-vfio-0");
    let cluster = n1_with(SliceBuilder::of("n1").device(gpu(0)).device(twin()))
        .claim(ClaimBuilder::named("w0").holds("n1", "gpu-0"))
        .claim(ClaimBuilder::named("vm").holds("n1", "gpu-vfio-0"));
    wrong(
        &cluster,
        &[given("w0", "gpu-0")],
        &["one card", "gpu-vfio-0", "other/vm"],
    );
}

#[test]
fn a_gpu_that_is_given_out_in_shares_is_not_a_whole_one() {
    let cluster = n1_with(SliceBuilder::of("n1").device(gpu(0).shareable()))
        .claim(ClaimBuilder::named("w0").holds("n1", "gpu-0"));
    wrong(&cluster, &[given("w0", "gpu-0")], &["gpu-0", "shares"]);
}

#[test]
fn an_unknown_placement_is_not_wrong() {
    let (cluster, given) = two();
    let unknown = |confirmed| matches!(confirmed, Err(Unconfirmed::Unknown(_)));
    let mut inventory = cluster.inventory();
    inventory.claims = Seen::Unknown("403".into());
    assert!(unknown(confirm(&inventory, "n1", &given)));
    let network = SliceBuilder::of("n1")
        .driver("dra.example.com")
        .pool("nics")
        .generation(2, 2);
    let others = cluster.clone().slice(network);
    assert!(
        confirm(&others.inventory(), "n1", &given).is_ok(),
        "its network driver has no part in it"
    );
    let publishing = cluster.slice(SliceBuilder::of("n1").generation(2, 2));
    assert!(unknown(confirm(&publishing.inventory(), "n1", &given)));
}
