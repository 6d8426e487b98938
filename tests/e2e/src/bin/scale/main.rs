//! `just bench`: sizing at scale, what one look at a large cluster costs, from the first list to the plan.
//!
//! A child process serves nodes, slices, pods and claims in pages over HTTP, as large as real ones; another one, fresh for
//! each size, reads and decides. The server writes its lists beforehand: while it wrote each page when asked, 13 of 17
//! seconds of a look were its own. The ratios are of one run on one machine; nothing is asserted.

mod crowd;
mod fleet;
mod measure;
mod real;
mod serve;

use std::process::{Command, ExitCode, Stdio};

use crowd::Size;
use fleet::ControlPlane;
use measure::Cost;

/// As the operator has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Nodes with eight GPUs each, eight allocated claims and twenty pods.
const SIZES: [usize; 3] = [500, 1_000, 5_000];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["serve", nodes] => with(nodes, serve::serve),
        ["measure", nodes] => with(nodes, measure::measure),
        ["crowd", program] => crowd::crowd(program.as_ref(), Size::default()),
        ["crowd", program, nodes, objects, mebibytes] => {
            size(nodes, objects, mebibytes).and_then(|size| crowd::crowd(program.as_ref(), size))
        }
        ["tenant", program, minutes] => minutes
            .parse()
            .map_err(Into::into)
            .and_then(|minutes| crowd::tenant(program.as_ref(), minutes)),
        ["fleet", program, nodes] => fleet_of(program, nodes, "20", nodes, ControlPlane::Stub),
        ["fleet", program, nodes, speedup] => fleet_of(program, nodes, speedup, nodes, ControlPlane::Stub),
        ["fleet", program, nodes, speedup, enough] => fleet_of(program, nodes, speedup, enough, ControlPlane::Stub),
        ["fleet-lab", program, nodes, speedup, enough] => fleet_of(program, nodes, speedup, enough, ControlPlane::Lab),
        ["cluster", nodes] => with(nodes, real::real),
        _ => compare(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scale: {error}");
            ExitCode::FAILURE
        }
    }
}

fn size(nodes: &str, objects: &str, mebibytes: &str) -> Outcome<Size> {
    let (nodes, objects, mebibytes) = (nodes.parse()?, objects.parse()?, mebibytes.parse()?);
    Ok(Size {
        nodes,
        objects,
        mebibytes,
    })
}

fn fleet_of(program: &str, nodes: &str, speedup: &str, enough: &str, on: ControlPlane) -> Outcome<()> {
    let size = fleet::Size {
        nodes: nodes.parse()?,
        speedup: speedup.parse()?,
        enough: enough.parse()?,
    };
    if size.nodes < 20 || !(0.1..=100.0).contains(&size.speedup) {
        return Err("write at least 20 nodes, and a speed-up from 0.1 to 100".into());
    }
    fleet::fleet(program.as_ref(), size, on)
}

fn with(nodes: &str, run: fn(usize) -> Outcome<()>) -> Outcome<()> {
    run(nodes.parse()?)
}

fn compare() -> Outcome<()> {
    println!(
        " nodes    GPUs  claims    pods  lists MB  observe s  observe CPU s  server CPU s  decide CPU ms  CPU ms of a later look  MiB above idle: peak, kept"
    );
    let mut costs = Vec::new();
    for nodes in SIZES {
        costs.push((nodes, measured(nodes)?));
    }
    if let [(few, smallest), .., (many, largest)] = &costs[..] {
        println!(
            "{}x the nodes: {:.1}x the CPU to decide, {:.1}x the CPU to observe, {:.1}x the memory",
            many / few,
            largest.decide_ms / smallest.decide_ms,
            largest.observe_cpu / smallest.observe_cpu,
            largest.peak_mib / smallest.peak_mib,
        );
    }
    Ok(())
}

/// A fresh process: memory that an earlier size left behind counts for nothing.
fn measured(nodes: usize) -> Outcome<Cost> {
    let child = Command::new(std::env::current_exe()?)
        .args(["measure", &nodes.to_string()])
        // As config/operator has it.
        .env("MIMALLOC_PURGE_DELAY", "0")
        .stderr(Stdio::inherit())
        .output()?;
    if !child.status.success() {
        return Err(format!("measuring {nodes} nodes failed").into());
    }
    let cost: Cost = serde_json::from_slice(&child.stdout)?;
    println!(
        "{nodes:>6}  {:>6}  {:>6}  {:>6}  {:>8.1}  {:>9.2}  {:>13.2}  {:>12.2}  {:>13.1}  {:>22.1}  {:>20.1}  {:>4.1}",
        nodes * 8,
        nodes * serve::CLAIMS,
        nodes * serve::PODS,
        cost.megabytes,
        cost.observe,
        cost.observe_cpu,
        cost.server_cpu,
        cost.decide_ms,
        cost.again_ms,
        cost.peak_mib,
        cost.kept_mib,
    );
    Ok(cost)
}
