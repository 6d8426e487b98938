//! `size`: what every node has for a run, and the plan that a run would get. Nothing is written.

mod cluster;
mod error;
mod report;
mod saved;

use std::process::ExitCode;

use perfval_api::PerfValidation;
use perfval_sizing as sizing;
use perfval_sizing::inventory::Saved;
use serde_json::{from_value, json};

use crate::answer::Answer;
use crate::cli::{Output, SizeArgs};
use crate::manifest;

pub use error::Error;

/// The answer. Exit codes: 0 a run would get a plan, 1 it would not; the caller's for an error are [`Error::code`].
pub fn run(args: &SizeArgs) -> Result<Answer, Error> {
    let object = match &args.filename {
        Some(path) => manifest::read(path)?,
        None => defaults().map_err(Error::Defaults)?,
    };
    let Saved { inventory, busy, notes } = match &args.from {
        Some(path) => saved::read(path, &object)?,
        None => cluster::read(&object)?,
    };
    let (nodes, sizing) = sizing::explain(&inventory, &object.spec, &busy);
    let report = report::Report::new(nodes, sizing, notes, &args.nodes)?;
    let text = match args.output {
        Output::Table => report.to_string(),
        Output::Json => serde_json::to_string_pretty(&report).map_err(Error::Render)? + "\n",
    };
    Ok((text, ExitCode::from(u8::from(!report.has_plan()))))
}

/// A `PerfValidation` of which nothing is given that sizing asks about.
fn defaults() -> Result<PerfValidation, serde_json::Error> {
    let spec = json!({ "model": { "name": "any" }, "workload": { "image": "any" } });
    from_value(json!({ "metadata": {}, "spec": spec }))
}
