use perfval_testkit::api_server::ApiServer;

use crate::{NAMESPACE, Operator, eventually, manifest, phase, status, with_gpus};

const RUNS: [&str; 4] = ["a", "b", "c", "d"];

fn planned(server: &ApiServer) -> Vec<&'static str> {
    RUNS.into_iter()
        .filter(|name| status(server, name)["placement"]["node"].is_string())
        .collect()
}

#[tokio::test]
async fn runs_that_are_sized_at_once_never_plan_the_same_node() {
    let server = with_gpus(4);
    for name in RUNS {
        server.put(manifest(name));
    }
    let _operator = Operator::start(&server);
    eventually(&server, "one run deploys, the others wait", |server| {
        // A plan stands for at least the 2 s until it is read again: none is missed here.
        assert!(planned(server).len() <= 1, "{:?} plan the only node", planned(server));
        let count = |wanted: &str| RUNS.iter().filter(|name| phase(server, name) == wanted).count();
        count("WaitingForReady") == 1 && count("Sizing") == 3
    })
    .await;
    let holder = planned(&server);

    // Its end wakes the others: the next one plans at once.
    server.delete("perfvalidations", NAMESPACE, holder[0]);
    let gone = |server: &ApiServer| server.get("perfvalidations", NAMESPACE, holder[0]).is_none();
    eventually(&server, "the deleted run is gone", |server| {
        server.collect_garbage();
        gone(server)
    })
    .await;
    eventually(&server, "the next run deploys", |server| {
        RUNS.iter().any(|name| phase(server, name) == "WaitingForReady")
    })
    .await;
    assert_eq!(planned(&server).len(), 1);
}
