//! Environment of a run, field by field.

use perfval_api::Environment;

use crate::facts::Facts;

/// A fact and its name, for programs and for people.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub key: &'static str,
    pub label: &'static str,
    pub value: String,
}

/// Known fields; unknown ones are left out.
pub(crate) fn known(facts: &Facts) -> Vec<Fact> {
    let status = &facts.status;
    let environment = status.state.environment.clone().unwrap_or_default();
    let placement = status.placement.clone().unwrap_or_default();
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let spec = facts.spec.as_ref();
    let Environment {
        model,
        revision,
        commit,
        image,
        image_digest,
        settings,
        gpu_product,
        gpus,
        aiperf,
        dynamo,
        kubernetes,
        gpu_driver,
        digest,
    } = environment;
    let gpus = gpus.or(Some(placement.gpus).filter(|gpus| *gpus > 0));
    let of_node = Some(placement.node_gpus).filter(|gpus| *gpus > 0);
    let trials = || facts.trials.iter();
    let exported = || trials().find_map(|trial| trial.report()?.aiperf_version.clone());
    let machine = trials().find_map(|trial| trial.payload.as_ref()?.node.clone());
    let recorded = || trials().find_map(|trial| trial.payload.as_ref()?.record.commit.clone());
    let deployment = status.state.deployment.as_ref();
    let router = deployment.and_then(|deployment| text(&deployment.router_mode));
    let (here, elsewhere) = match machine.map(|machine| (machine.node == placement.node, machine)) {
        Some((true, machine)) => (text(&machine.in_words()), None),
        Some((false, machine)) => (None, Some(format!("{}: {}", machine.node, machine.in_words()))),
        None => (None, None),
    };
    [
        ("run", "Run", status.run.as_ref().map(|run| run.number.to_string())),
        ("model", "Model", text(&model).or_else(|| text(&spec?.model.name))),
        ("revision", "Revision of the weights", revision),
        (
            "commit",
            "Commit of the model, as AIPerf loaded it",
            commit.or_else(recorded),
        ),
        ("image", "Image", text(&image).or_else(|| text(&spec?.dynamo().image))),
        ("imageDigest", "Image digest", image_digest),
        ("settings", "Digest of flags and load", settings),
        ("node", "Node", text(&placement.node)),
        ("machine", "CPUs and kernel of the node", here),
        ("generatorMachine", "Load generator on", elsewhere),
        ("gpuProduct", "GPU", gpu_product.or(placement.product)),
        ("gpus", "GPUs in use", gpus.map(|gpus| gpus.to_string())),
        ("nodeGPUs", "GPUs of the node", of_node.map(|gpus| gpus.to_string())),
        ("allocation", "GPUs given by", text(placement.allocation.as_ref())),
        ("gpuDriver", "GPU driver", gpu_driver.or(placement.driver_version)),
        ("routerMode", "Router", router),
        ("dynamo", "Dynamo operator", dynamo),
        ("aiperf", "AIPerf", aiperf.or_else(exported)),
        ("kubernetes", "Kubernetes", kubernetes),
        ("environment", "Digest of the environment", digest),
    ]
    .into_iter()
    .filter_map(|(key, label, value)| {
        let value = value?;
        Some(Fact { key, label, value })
    })
    .collect()
}
