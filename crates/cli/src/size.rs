//! `size`: what every node has for a run, and the plan that a run would get. It writes nothing to the cluster.

mod cluster;
pub mod error;
mod report;
mod saved;

use kube::Client;
use perfval_api::PerfValidation;
use perfval_sizing as sizing;
use perfval_sizing::inventory::Saved;
use serde_json::{from_value, json};

use crate::args::SizeArgs;
use crate::error::Error;
use crate::screen::Screen;
use crate::session::Session;
use crate::{manifest, output};

pub use report::SizeReport;
pub use saved::cluster_in;

/// Prints the answer; saved objects need no cluster. Exit codes: 0 a run would get a plan, 1 it would not.
pub async fn run(
    screen: &mut Screen,
    args: &SizeArgs,
    open: impl AsyncFnOnce() -> Result<Session, Error>,
) -> Result<u8, Error> {
    let object = match &args.filename {
        Some(path) => manifest::read(path)?,
        None => defaults()?,
    };
    let saved = if let Some(path) = &args.from {
        saved::read(path, &object)?
    } else {
        let session = open()
            .await
            .map_err(|error| error::Error::Unreadable(error.to_string()))?;
        Box::pin(cluster::read(&object, session.client, session.namespace)).await?
    };
    let report = report(&object, saved, &args.nodes)?;
    let text = output::written(&report, args.output)?.unwrap_or_else(|| report.to_string());
    screen.answer(&text)?;
    Ok(u8::from(!report.has_plan()))
}

/// The answer for an object that is there already.
pub async fn size_object(
    object: &PerfValidation,
    client: Client,
    namespace: String,
) -> Result<SizeReport, error::Error> {
    let saved = Box::pin(cluster::read(object, client, namespace)).await?;
    report(object, saved, &[])
}

fn report(object: &PerfValidation, saved: Saved, only: &[String]) -> Result<SizeReport, error::Error> {
    let Saved { inventory, busy, notes } = saved;
    let (nodes, sizing) = sizing::explain(&inventory, &object.spec, &busy);
    SizeReport::new(nodes, sizing, notes, only)
}

/// A `PerfValidation` with the defaults of every field that sizing reads.
pub fn defaults() -> Result<PerfValidation, error::Error> {
    let spec = json!({ "model": { "name": "any" }, "workload": { "dynamo": { "image": "any" } } });
    from_value(json!({ "metadata": {}, "spec": spec })).map_err(error::Error::Defaults)
}
