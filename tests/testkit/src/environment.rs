//! The environment of a run.

use perfval_api::Environment;

/// Environment on a node of H100s. Every field that two runs must share is known.
pub fn known() -> Environment {
    Environment {
        model: "m".into(),
        revision: None,
        commit: None,
        image: "vllm-runtime:1.4.2".into(),
        image_digest: Some("registry/vllm-runtime@sha256:aa".into()),
        settings: Some("01234567".into()),
        gpu_product: Some("NVIDIA H100 80GB HBM3".into()),
        gpus: Some(8),
        gpu_driver: Some("580.82.7".into()),
        dynamo: Some("1.4.2".into()),
        aiperf: Some("0.13.0".into()),
        kubernetes: Some("v1.36.4".into()),
        digest: None,
    }
}
