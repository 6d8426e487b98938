use perfval_testkit::api_server::ApiServer;

use crate::{NAMESPACE, Operator, eventually, manifest, phase, reaches, status, with_gpus};

const RUNS: [&str; 4] = ["a", "b", "c", "d"];

fn planned(server: &ApiServer) -> Vec<&'static str> {
    RUNS.into_iter()
        .filter(|name| status(server, name)["placement"]["node"].is_string())
        .collect()
}

#[tokio::test]
async fn runs_that_are_sized_at_once_are_placed_one_by_one_in_their_order() {
    let server = with_gpus(4);
    for name in RUNS {
        server.put(manifest(name));
    }
    let _operator = Operator::start(&server);
    eventually(&server, "the first run deploys, the others wait", |server| {
        // A plan stands for at least the 2 s until it is read again: none is missed here.
        assert!(planned(server).len() <= 1, "{:?} plan the only node", planned(server));
        let waiting = RUNS.iter().filter(|name| phase(server, name) == "Sizing").count();
        phase(server, RUNS[0]) == "WaitingForReady" && waiting == 3
    })
    .await;
    assert_eq!(planned(&server), [RUNS[0]]);

    // Its end wakes the others: the next one plans at once.
    server.delete("perfvalidations", NAMESPACE, RUNS[0]);
    eventually(&server, "the deleted run is gone", |server| {
        server.collect_garbage();
        server.get("perfvalidations", NAMESPACE, RUNS[0]).is_none()
    })
    .await;
    reaches(&server, RUNS[1], "WaitingForReady").await;
    assert_eq!(planned(&server), [RUNS[1]]);
}
