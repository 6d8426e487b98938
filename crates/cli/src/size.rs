//! `size`: what every node has for a run, and the plan that a run would get. It writes nothing to the cluster.

mod cluster;
mod report;
mod saved;

use std::collections::BTreeSet;
use std::path::PathBuf;

use kube::Client;
use perfval_api::PerfValidation;
use perfval_run::build::ARCHITECTURE_LABEL;
use perfval_sizing as sizing;
use perfval_sizing::inventory::{Inventory, Saved};
use perfval_sizing::{Sizing, frontend_is_pinned, trial_is_pinned};
use serde_json::{from_value, json};

use crate::args::SizeArgs;
use crate::error::Error;
use crate::screen::Screen;
use crate::session::{Session, common_namespace};
use crate::{input, manifest, output, registry};

pub use report::SizeReport;
pub use saved::cluster_in;

/// Prints the answer; saved objects need no cluster. Exit codes: 0 a run would get a plan, 1 it would not. `namespace` is
/// that of the flags.
pub async fn run(
    screen: &mut Screen,
    args: &SizeArgs,
    namespace: Option<&str>,
    open: impl AsyncFnOnce() -> Result<Session, Error>,
) -> Result<u8, Error> {
    let files = args.filename.iter().chain(&args.from);
    input::check_stdin(files.map(PathBuf::as_path))?;
    let mut object = match &args.filename {
        Some(path) => manifest::read(path)?,
        None => defaults()?,
    };
    object.metadata.namespace = common_namespace(&object, namespace)?;
    let saved = if let Some(path) = &args.from {
        saved::read(path, &object)?
    } else {
        let session = open().await?;
        let version = session.client.apiserver_version().await;
        let version = version.map_err(|error| Error::from_call("read the version of the cluster", error));
        // Without this right, sizing may still have all that it needs.
        if let Err(error @ (Error::Unreachable { .. } | Error::Undecodable { .. } | Error::Unauthorized { .. })) =
            version
        {
            return Err(error);
        }
        Box::pin(cluster::read(&object, session.client, session.namespace)).await?
    };
    let (mut report, architecture) = report(&object, saved, &args.nodes)?;
    // With `--from`, the registries of the cluster may be out of reach.
    if let (Some(architecture), Some(_), None) = (architecture, &args.filename, &args.from) {
        report.add_notes(unfit_images(&object, &architecture).await);
    }
    let text = output::in_format(&report, args.output)?.unwrap_or_else(|| report.to_string());
    screen.answer(&text)?;
    Ok(u8::from(!report.has_plan()))
}

/// The answer for an object that is there already.
pub async fn size_object(object: &PerfValidation, client: Client, namespace: String) -> Result<SizeReport, Error> {
    let saved = Box::pin(cluster::read(object, client, namespace)).await?;
    Ok(report(object, saved, &[])?.0)
}

/// The report, and the architecture of the planned node.
fn report(object: &PerfValidation, saved: Saved, only: &[String]) -> Result<(SizeReport, Option<String>), Error> {
    let Saved { inventory, busy, notes } = saved;
    let (nodes, sizing) = sizing::explain(&inventory, &object.spec, &busy);
    let architecture = architecture(&inventory, &sizing);
    Ok((SizeReport::new(nodes, sizing, notes, only)?, architecture))
}

fn architecture(inventory: &Inventory, sizing: &Sizing) -> Option<String> {
    let Sizing::Chosen(plan) = sizing else { return None };
    let node = inventory
        .nodes
        .present()?
        .iter()
        .find(|node| *node.name == *plan.node)?;
    node.label(ARCHITECTURE_LABEL).map(str::to_owned)
}

/// Images of pods on the planned node that its architecture does not fit, or may not. All images of Dynamo fit amd64.
async fn unfit_images(object: &PerfValidation, architecture: &str) -> Vec<String> {
    let spec = &object.spec;
    let mut images = BTreeSet::from([&spec.dynamo().image]);
    if frontend_is_pinned(spec) {
        images.insert(&spec.dynamo().frontend.image);
    }
    if trial_is_pinned(spec) {
        images.insert(&spec.benchmark.image);
    }
    images.retain(|image| !image.is_empty() && architecture != "amd64");
    let mut notes = Vec::new();
    for image in images {
        match registry::architectures(image).await {
            Ok(found) if found.contains(architecture) => {}
            Ok(found) => {
                let found = Vec::from_iter(found).join(", ");
                notes.push(format!(
                    "{image} is for {found}, and the node is {architecture}: the run would end with ContainerFailed"
                ));
            }
            Err(why) => notes.push(format!("architectures of {image} are not known: {why}")),
        }
    }
    notes
}

/// A `PerfValidation` with the defaults of every field that sizing reads.
pub fn defaults() -> Result<PerfValidation, Error> {
    let spec = json!({ "model": { "name": "any" }, "workload": { "dynamo": { "image": "any" } } });
    let object = from_value(json!({ "metadata": {}, "spec": spec }));
    object.map_err(|error| Error::BadInput(format!("the CRD leaves fields without a default: {error}")))
}
