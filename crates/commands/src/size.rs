//! `size`: what every node has for a run, and the plan that a run would get. Nothing is written.

mod cluster;
mod error;
mod report;
mod saved;

use kube::Client;
use perfval_api::PerfValidation;
use perfval_sizing as sizing;
use perfval_sizing::inventory::Saved;
use serde_json::{from_value, json};

use crate::answer::Answer;
use crate::args::{Output, SizeArgs};
use crate::manifest;

pub use error::Error;
pub use saved::cluster_in;

/// The answer. `connect` gives the cluster and the namespace for an object without one; saved objects need neither.
/// Exit codes: 0 a run would get a plan, 1 it would not; the caller's for an error are [`Error::code`].
pub async fn run(
    args: &SizeArgs,
    connect: impl AsyncFnOnce() -> Result<(Client, String), String>,
) -> Result<Answer, Error> {
    let object = match &args.filename {
        Some(path) => manifest::read(path)?,
        None => defaults()?,
    };
    size_object(object, args, connect).await
}

/// The answer for an object that is there already.
pub async fn size_object(
    object: PerfValidation,
    args: &SizeArgs,
    connect: impl AsyncFnOnce() -> Result<(Client, String), String>,
) -> Result<Answer, Error> {
    let Saved { inventory, busy, notes } = if let Some(path) = &args.from {
        saved::read(path, &object)?
    } else {
        let (client, namespace) = connect().await.map_err(Error::Unreadable)?;
        Box::pin(cluster::read(&object, client, namespace)).await?
    };
    let (nodes, sizing) = sizing::explain(&inventory, &object.spec, &busy);
    let report = report::SizeReport::new(nodes, sizing, notes, &args.nodes)?;
    let text = match args.output {
        Output::Table => report.to_string(),
        Output::Json => serde_json::to_string_pretty(&report).map_err(Error::Render)? + "\n",
    };
    Ok((text, u8::from(!report.has_plan())))
}

/// A `PerfValidation` with the defaults of every field that sizing reads.
pub fn defaults() -> Result<PerfValidation, Error> {
    let spec = json!({ "model": { "name": "any" }, "workload": { "dynamo": { "image": "any" } } });
    from_value(json!({ "metadata": {}, "spec": spec })).map_err(Error::Defaults)
}
