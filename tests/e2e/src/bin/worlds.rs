//! `just worlds-lab`: random worlds on the real cluster, and the laws that hold in all of them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use futures::StreamExt as _;
use perfval_e2e::worlds::{Played, Stage, Tally, World, play};
use perfval_e2e::{Lab, Operator};

/// Plays random worlds on the lab, several at once on its one node. Exits with 1 if a law is broken in one; its happenings are
/// printed then.
#[derive(Parser)]
struct Options {
    /// How many worlds
    #[arg(long, default_value_t = 100)]
    worlds: u64,
    /// Seed of the first world: the world of seed S is the same wherever it is played
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Worlds under way at once; they share the operator, and one that is killed is killed for all
    #[arg(long, default_value_t = 4)]
    parallel: usize,
    /// Minutes that the objects of a world may take to rest: all limits of a run are six, and other worlds have the node before
    #[arg(long, default_value_t = 20)]
    patience: u64,
    /// The lab's program
    #[arg(long)]
    lab: PathBuf,
    /// The config folder
    #[arg(long)]
    config: String,
    /// Where the operators write their log
    #[arg(long)]
    log: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let lab = Lab::at(options.lab).await;
    Operator::install(&lab, &options.config).await.scale(0).await;
    let stage = Stage::set(lab, options.log, Duration::from_mins(options.patience)).await;
    let worlds = (options.seed..options.seed + options.worlds).map(World::of);
    let mut played = futures::stream::iter(worlds)
        .map(|world| play(&stage, world))
        .buffer_unordered(options.parallel);
    let mut tally = Tally::default();
    while let Some(world) = played.next().await {
        print_world(&world);
        tally.add(&world);
    }
    println!("{tally}");
    if tally.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn print_world(played: &Played) {
    let (seed, seconds) = (played.world.seed, played.took.as_secs());
    let ends: Vec<&str> = played
        .statuses
        .iter()
        .map(|status| status["reason"].as_str().unwrap_or("-"))
        .collect();
    let Some(broken) = &played.broken else {
        println!("seed {seed}: {seconds} s, {ends:?}");
        return;
    };
    println!("BROKEN: seed {seed}, {seconds} s: {broken}\n{}", played.world);
    for told in &played.told {
        println!("  {told}");
    }
    for status in &played.statuses {
        println!("  {status}");
    }
}
