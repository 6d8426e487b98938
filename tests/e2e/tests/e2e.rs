//! Whole runs on the real cluster, one after the other in each lab: each file of `e2e/` and `more/` is one topic.

/// Tests of every change: part of `just test`.
mod e2e {
    pub mod cleanup;
    pub mod device_plugin;
    pub mod dynamo_missing;
    pub mod faults;
    pub mod interrupted;
    pub mod plugin;
    pub mod policy;
    pub mod restart;
    pub mod saturation;
    pub mod verdicts;
}

mod more;

use perfval_e2e::{Lab, Operator};

/// The lab with the operator installed in the cluster and without a fault.
async fn ready() -> (Lab, Operator) {
    let lab = Lab::connect().await;
    // What an earlier test that failed left behind.
    lab.run(&["fault", "clear"]).await;
    if !e2e::dynamo_missing::serves_both(&lab).await {
        e2e::dynamo_missing::install(&lab, "both").await;
    }
    let config = std::env::var("PERFVAL_CONFIG").expect("PERFVAL_CONFIG names the config folder");
    let operator = Operator::install(&lab, &config).await;
    (lab, operator)
}
