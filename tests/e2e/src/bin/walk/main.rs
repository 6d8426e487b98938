//! `just walk`: what a new user does, by the commands of README and quick start, with their output.
//!
//! Twice on one lab: the operator for all namespaces from the chart, with every panel of the dashboard read from a real
//! Prometheus; then the operator for one namespace from `config/namespaced`. Each time nothing may be left at the end.

mod dashboard;
mod everything;
mod images;
mod pages;
mod prometheus;
mod terminal;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use perfval_e2e::{Lab, eventually};

use crate::everything::Everything;
use crate::pages::Pages;
use crate::prometheus::Prometheus;
use crate::terminal::{Terminal, title};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The sample that the lab can run; a user's own GPUs take `minimal.yaml`.
const SAMPLE: &str = "config/samples/demo.yaml";
const READY: &str = "kubectl rollout status deployment/perfvalidation-operator -n perfvalidation-system";
const WATCH: &str = "kubectl get perfvalidations -n perf -w";

/// The path of a new user, on the lab.
#[derive(Parser)]
struct Cli {
    /// The lab's program.
    #[arg(long)]
    lab: PathBuf,
    /// Folder of Debian's `prometheus` and `promtool`.
    #[arg(long)]
    prometheus: PathBuf,
    /// One of the two ways only.
    #[arg(long)]
    only: Option<Way>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// The chart, for all namespaces.
    Helm,
    /// Kustomize, for one namespace.
    Kustomize,
}

#[tokio::main]
async fn main() -> ExitCode {
    match walk(&Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("walk: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn walk(cli: &Cli) -> Outcome<()> {
    let pages = Pages::read(Path::new("."))?;
    let lab = Lab::at(cli.lab.clone()).await;
    images::name_as_published(&lab).await?;
    let terminal = Terminal::with_helm(&lab).await?;
    let before = Everything::list(&lab).await?;
    for way in [Way::Helm, Way::Kustomize] {
        if cli.only.is_some_and(|only| only != way) {
            continue;
        }
        match way {
            Way::Helm => by_helm(&lab, &terminal, &pages, &cli.prometheus).await?,
            Way::Kustomize => by_kustomize(&terminal, &pages).await?,
        }
        terminal.run("kubectl delete namespace perf").await?;
        nothing_is_left(&lab, &before).await;
    }
    Ok(())
}

/// README's first steps with Helm, and the quick start's dashboard.
async fn by_helm(lab: &Lab, terminal: &Terminal, pages: &Pages, prometheus: &Path) -> Outcome<()> {
    title("README: install with Helm");
    terminal.all(&pages.install).await?;
    terminal.run(READY).await?;
    title("Quick start: see it in Grafana");
    terminal.all(&pages.dashboard).await?;
    terminal.run(READY).await?;
    let prometheus = Prometheus::start(lab, prometheus, &pages.scrape_configs).await?;
    terminal.run("kubectl create namespace perf").await?;
    one_run(terminal, pages).await?;
    title("README: run again");
    terminal.run(&pages.rerun).await?;
    terminal.watch(WATCH).await?;
    terminal.run(&pages.wait).await?;
    title("Dashboard: every panel, asked of Prometheus");
    dashboard::every_panel_has_data(lab, &prometheus).await?;
    title("Quick start: remove it");
    terminal.all(&pages.remove).await
}

/// The quick start for one namespace, with kustomize.
async fn by_kustomize(terminal: &Terminal, pages: &Pages) -> Outcome<()> {
    title("Quick start: one namespace only");
    terminal.all(&pages.install_for_one).await?;
    terminal.run(READY).await?;
    one_run(terminal, pages).await?;
    title("Quick start: remove it");
    terminal.all(&pages.remove_for_one).await
}

/// Apply, watch, and read the verdict.
async fn one_run(terminal: &Terminal, pages: &Pages) -> Outcome<()> {
    title("README: apply a sample, watch it, read the verdict");
    terminal.run(&format!("kubectl apply -f {SAMPLE}")).await?;
    terminal.watch(WATCH).await?;
    for command in [&pages.wait, &pages.wide, &pages.describe] {
        terminal.run(command).await?;
    }
    Ok(())
}

/// The cluster holds what it held before; the garbage collector may take a moment.
async fn nothing_is_left(lab: &Lab, before: &Everything) {
    eventually("nothing is left", Duration::from_mins(2), || async {
        let now = Everything::list(lab).await.map_err(|error| vec![error.to_string()])?;
        let left = now.beyond(before);
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
    println!("\nleft of it in the cluster, of all kinds: nothing");
}
