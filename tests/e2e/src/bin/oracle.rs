//! `just oracle`: sizing against the real kube-scheduler on random clusters.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use futures::StreamExt as _;
use perfval_e2e::oracle::{Cluster, Judged, Report, Session, cluster, shrink};
use serde_json::json;

/// Writes random clusters to the lab's API server, asks sizing how many workers each node takes, and gives the real
/// scheduler one worker more. Exits with 1 if they ever differ.
#[derive(Parser)]
struct Options {
    /// How many clusters
    #[arg(long, default_value_t = 500)]
    clusters: u64,
    /// Where the random numbers begin: cluster I of seed S is the first cluster of seed S + I
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Clusters under way at once
    #[arg(long, default_value_t = 8)]
    parallel: usize,
    /// Differences that are shrunk; the others are only listed
    #[arg(long, default_value_t = 5)]
    shrink: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    match Box::pin(run(&Options::parse())).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

async fn run(options: &Options) -> Result<bool, Box<dyn std::error::Error>> {
    let began = Instant::now();
    let session = Session::open(options.parallel).await?;
    session.sweep().await?;
    let seeds = options.seed..options.seed + options.clusters;
    let mut judged = futures::stream::iter(seeds.map(cluster))
        .map(|cluster| {
            let session = &session;
            async move { (session.judge(&cluster).await, cluster) }
        })
        .buffer_unordered(options.parallel);
    let mut report = Report::default();
    let mut suspects = Vec::new();
    let mut again = 0;
    while let Some((found, cluster)) = judged.next().await {
        match found {
            Ok(found) if found.iter().all(|judged| judged.difference().is_none()) => report.add(&found),
            Ok(found) => {
                let differing = found.iter().filter(|judged| judged.difference().is_some());
                differing.for_each(|judged| eprintln!("to be judged again: seed {}, {judged}", cluster.seed));
                suspects.push(cluster);
            }
            Err(error) => {
                eprintln!("to be judged again: {error}");
                suspects.push(cluster);
            }
        }
    }
    drop(judged);
    let mut shrunk = 0;
    for cluster in suspects {
        // Once more, alone: two cores under load may show the scheduler an older world than was read.
        let found = session.judge(&cluster).await?;
        report.add(&found);
        let differing: Vec<&Judged> = found.iter().filter(|judged| judged.difference().is_some()).collect();
        again += usize::from(differing.is_empty());
        for judged in differing {
            println!("DIFFERS: seed {}, {judged}", cluster.seed);
            if shrunk < options.shrink {
                shrunk += 1;
                if let Some(difference) = judged.difference() {
                    let smallest = shrink(&session, &cluster, &judged.node, difference, options.parallel).await;
                    println!("{}", dump(&smallest)?);
                }
            }
        }
    }
    println!("{report}");
    println!(
        "{again} clusters agreed only when judged again, alone; {} s",
        began.elapsed().as_secs()
    );
    if !report.is_conclusive() {
        println!("too little was compared to mean anything: raise --clusters");
    }
    Ok(report.is_clean() && report.is_conclusive())
}

/// A cluster as `kubectl get -o yaml` would print it, with the question on top.
fn dump(cluster: &Cluster) -> Result<String, Box<dyn std::error::Error>> {
    let question = json!({ "seed": cluster.seed, "spec": cluster.spec, "probes": cluster.probes });
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": cluster.objects });
    Ok(format!(
        "---\n{}---\n{}",
        serde_saphyr::to_string(&question)?,
        serde_saphyr::to_string(&list)?
    ))
}
