//! Run after run: `just soak [RUNS]` has many, `just e2e-all` ten: each takes up to a minute where two labs share two cores.

use perfval_e2e::soak::{is_flat, soak};

use crate::ready;

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn runs_in_a_row_cost_no_more_than_the_first() {
    let runs = std::env::var("PERFVAL_SOAK_RUNS").map_or(10, |runs| runs.parse().expect("a number of runs"));
    let (lab, operator) = ready().await;
    let namespace = lab.namespace("e2e-soak").await;
    let readings = soak(&lab, &operator, &namespace, runs).await;
    lab.run(&["fault", "clear"]).await;
    is_flat(&readings);
}
