//! The DynamoGraphDeployment: one frontend, and the workers of the plan.

mod component;
mod v1alpha1;
mod v1beta1;

use kube::core::{DynamicObject, TypeMeta};
use serde_json::json;

use self::component::Component;
use crate::build::meta::metadata;
use crate::names::dynamo::KIND;
use crate::{Run, names};

const V1ALPHA1: &str = "nvidia.com/v1alpha1";

/// The DynamoGraphDeployment of a run, in the shape of the recorded apiVersion.
pub fn deployment(run: &Run<'_>) -> DynamicObject {
    let api_version = run
        .status()
        .state
        .deployment
        .as_ref()
        .map_or("nvidia.com/v1beta1", |deployment| &deployment.api_version);
    let components = [Component::frontend(run), Component::worker(run)];
    let mut spec = if api_version == V1ALPHA1 {
        v1alpha1::spec(components)
    } else {
        v1beta1::spec(components)
    };
    spec["backendFramework"] = json!(backend(run));

    let mut metadata = metadata(run, names::deployment(&run.id()), "deployment");
    // Plain Deployments on every cluster: with Grove the pods would need its scheduler's queue to exist, and a gang
    // has no use here, where every worker is bound to one node by name and counted by the operator itself.
    metadata.annotations = Some([("nvidia.com/enable-grove".to_owned(), "false".to_owned())].into());
    DynamicObject {
        types: Some(TypeMeta {
            api_version: api_version.to_owned(),
            kind: KIND.to_owned(),
        }),
        metadata,
        data: json!({ "spec": spec }),
    }
}

/// The engine; vLLM is the default one. Dynamo's operator looks for its module in command and arguments together, also
/// inside of a shell's line, and refuses a graph of another engine.
fn backend(run: &Run<'_>) -> &'static str {
    let worker = &run.spec().dynamo().worker;
    let runs = |module: &str| {
        let mut words = worker.command.iter().chain(&worker.args);
        // Without a command of the user, the arguments are those of vLLM.
        !worker.command.is_empty() && words.any(|word| word.contains(module))
    };
    if runs("dynamo.sglang") {
        "sglang"
    } else if runs("dynamo.trtllm") {
        "trtllm"
    } else {
        "vllm"
    }
}
