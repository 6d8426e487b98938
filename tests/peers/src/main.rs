//! `just bench-peers`: what this operator costs and how fast it reacts beside two others, one after the other on one lab:
//! AIPerf's own operator (kopf), and a bare one on controller-runtime that writes as often as this one does.
//!
//! Each is a process of this machine with an account of its own, so that the audit log tells their requests apart. What is
//! read is the audit log and `/proc`. The figures are of one run on one machine; nothing is asserted.

mod calls;
mod measure;
mod objects;
mod subject;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use perfval_e2e::{Gpus, Holder, Lab};

use crate::measure::Measured;
use crate::subject::{Subject, Writes};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// This operator beside others on the lab.
#[derive(Parser)]
struct Cli {
    /// The lab's program.
    #[arg(long)]
    lab: PathBuf,
    /// The project's config folder.
    #[arg(long)]
    config: PathBuf,
    /// Manifests of the others' kinds.
    #[arg(long)]
    manifests: PathBuf,
    /// This operator's program.
    #[arg(long)]
    operator: PathBuf,
    /// The bare operator's program.
    #[arg(long)]
    bare: PathBuf,
    /// The virtual environment with AIPerf.
    #[arg(long)]
    aiperf: PathBuf,
    /// The definition of `JobSets`: AIPerf's operator refuses to work without it.
    #[arg(long)]
    jobset: PathBuf,
    /// Objects of each.
    #[arg(long, default_value_t = 100)]
    objects: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    match bench(&Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn bench(cli: &Cli) -> Outcome<()> {
    let lab = Lab::at(cli.lab.clone()).await;
    let definition = cli.config.join("crd/perfvalidations.perfvalidation.dev.yaml");
    for file in [
        &definition,
        &cli.manifests.join("bare.yaml"),
        &cli.manifests.join("aiperf.yaml"),
        &cli.jobset,
    ] {
        lab.kubectl(&["apply", "--server-side", "-f", &file.to_string_lossy()])
            .await;
    }
    // Every GPU is another's: what is created waits.
    let holders = lab.namespace("peers-holder").await;
    let gpus = Gpus::count(&lab).await.all;
    let holder = Holder::by_claim(&lab, &holders, "holder", gpus).await.holding().await;

    let measured = measure_all(&lab, cli, gpus).await;
    holder.leave().await;
    println!("\n{}", table::of(&measured?, cli.objects));
    Ok(())
}

async fn measure_all(lab: &Lab, cli: &Cli, gpus: usize) -> Outcome<Vec<Measured>> {
    let ours = measure::of(lab, &Subject::ours(&cli.operator, gpus), cli.objects).await?;
    let writes = Writes::of(&ours);
    let mut all: Vec<Measured> = vec![ours];
    for subject in [Subject::bare(&cli.bare, writes), Subject::aiperf(&cli.aiperf)] {
        all.push(measure::of(lab, &subject, cli.objects).await?);
    }
    Ok(all)
}
