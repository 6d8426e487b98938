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

use perfval_e2e::ready;
