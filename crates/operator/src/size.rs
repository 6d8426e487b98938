//! `size`: what every node has for a run, and the plan that a run would get. Nothing is written.

mod cluster;
mod report;
mod saved;

use std::path::PathBuf;
use std::process::ExitCode;

use perfval_api::PerfValidation;
use perfval_sizing as sizing;
use perfval_sizing::inventory::{DumpError, Saved};
use serde_json::{from_value, json};

use crate::cli::{Output, SizeArgs};
use crate::{Answer, manifest};

/// No answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is neither YAML nor JSON.
    #[error("{} is neither YAML nor JSON: {why}", path.display())]
    Syntax {
        /// Which.
        path: PathBuf,
        /// Where and why not.
        why: String,
    },
    /// The manifest.
    #[error(transparent)]
    Manifest(#[from] manifest::Error),
    /// The CRD has no defaults for everything.
    #[error("the CRD leaves fields without a default")]
    Defaults(#[source] serde_json::Error),
    /// Saved objects tell nothing.
    #[error("{}", path.display())]
    Dump {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: DumpError,
    },
    /// A node was asked for that is not there.
    #[error("there is no node {name}: {}", known(nodes))]
    NoSuchNode {
        /// Its name.
        name: String,
        /// Those that are.
        nodes: Vec<String>,
    },
    /// The cluster could not be read.
    #[error("the cluster cannot be read: {0}")]
    Unreadable(String),
    /// The answer has no JSON form.
    #[error("the answer cannot be written as JSON")]
    Render(#[source] serde_json::Error),
}

impl Error {
    /// 2 for bad input, 4 for a cluster that could not be read.
    pub fn code(&self) -> u8 {
        match self {
            Self::Unreadable(_) => 4,
            _ => 2,
        }
    }
}

fn known(nodes: &[String]) -> String {
    const NAMED: usize = 5;
    let more = match nodes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("there are {}{more}", nodes[..nodes.len().min(NAMED)].join(", "))
}

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
