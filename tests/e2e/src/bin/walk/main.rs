//! `just walk`: what a new user does, by the commands of README and the pages on installation and the first run, with their output.
//!
//! On one lab, one after the other: the files of a release without a clone (where `just release` wrote them); the chart,
//! with every panel of the dashboard read from a real Prometheus; `config/default`. Each time nothing may be left at the
//! end.

mod dashboard;
mod everything;
mod images;
mod pages;
mod prometheus;
mod release;
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
    /// Folder of a release's files.
    #[arg(long, default_value = "dist")]
    dist: PathBuf,
    /// One of the ways only.
    #[arg(long)]
    only: Option<Way>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// README's first page with the files of a release, outside of a clone.
    Release,
    /// The chart.
    Helm,
    /// Kustomize.
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
    for way in [Way::Release, Way::Helm, Way::Kustomize] {
        if cli.only.is_some_and(|only| only != way) {
            continue;
        }
        match way {
            Way::Release if cli.only.is_none() && !cli.dist.is_dir() => {
                println!("no release in {}: just release VERSION writes one", cli.dist.display());
                continue;
            }
            Way::Release => by_release(&terminal, &pages, &cli.dist).await?,
            Way::Helm => by_helm(&lab, &terminal, &pages, &cli.prometheus).await?,
            Way::Kustomize => by_kustomize(&terminal, &pages).await?,
        }
        terminal.run("kubectl delete namespace perf --ignore-not-found").await?;
        nothing_is_left(&lab, &before).await;
    }
    Ok(())
}

/// README's first page as somebody without a clone types it: with kubectl, doctor, a run; then again with Helm.
async fn by_release(in_clone: &Terminal, pages: &Pages, dist: &Path) -> Outcome<()> {
    let (dist, sample) = (dist.canonicalize()?, Path::new(SAMPLE).canonicalize()?);
    let (folder, bin) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let terminal = in_clone.elsewhere(folder.path(), bin.path());
    let offline = |commands: &[String]| release::offline(commands, &dist, &sample, bin.path());
    title("README: install with kubectl, without a clone");
    terminal.all(&offline(&pages.release.kubectl)).await?;
    terminal.run(READY).await?;
    title("README: allow a namespace");
    terminal.all(&pages.release.allow).await?;
    title("README: check the cluster");
    terminal.all(&offline(&pages.release.plug_in)).await?;
    title("README: first run");
    for command in offline(&pages.release.run) {
        if command.ends_with(" -w") {
            terminal.watch(&command).await?;
        } else {
            terminal.run(&command).await?;
        }
    }
    terminal.run(&pages.describe).await?;
    title("README: install with Helm, without a clone");
    terminal
        .run("kubectl delete perfvalidations --all --all-namespaces")
        .await?;
    terminal
        .run(&format!("kubectl delete -f {}/install.yaml", dist.display()))
        .await?;
    terminal.all(&offline(&pages.release.helm)).await?;
    terminal.run(READY).await?;
    title("Install: remove it");
    terminal.all(&pages.remove).await
}

/// The chart of a clone, and its dashboard.
async fn by_helm(lab: &Lab, terminal: &Terminal, pages: &Pages, prometheus: &Path) -> Outcome<()> {
    title("Install: the chart of a clone");
    // The lab has the images under the names that the chart gives them. Nothing is built for a registry.
    for command in pages.install.iter().filter(|command| command.starts_with("helm ")) {
        terminal
            .run(&command.replace("--set global.imageRegistry=$REGISTRY", ""))
            .await?;
    }
    terminal.run(READY).await?;
    title("Install: Grafana");
    terminal.all(&pages.dashboard).await?;
    terminal.run(READY).await?;
    let prometheus = Prometheus::start(lab, prometheus, &pages.scrape_configs).await?;
    title("Install: allow a namespace");
    terminal.all(&pages.allow).await?;
    one_run(terminal, pages).await?;
    title("First run: run again");
    terminal.run(&pages.rerun).await?;
    terminal.watch(WATCH).await?;
    terminal.run(&pages.wait).await?;
    title("Dashboard: every panel, asked of Prometheus");
    dashboard::every_panel_has_data(lab, &prometheus).await?;
    title("Install: remove it");
    terminal.all(&pages.remove).await
}

/// A folder of a clone.
async fn by_kustomize(terminal: &Terminal, pages: &Pages) -> Outcome<()> {
    title("Upgrade: kubectl");
    terminal.all(&pages.apply).await?;
    terminal.run(READY).await?;
    title("Install: allow a namespace");
    terminal.all(&pages.allow).await?;
    one_run(terminal, pages).await?;
    title("Install: remove it");
    terminal.all(&pages.remove_applied).await
}

/// Apply, watch, and read the verdict.
async fn one_run(terminal: &Terminal, pages: &Pages) -> Outcome<()> {
    title("First run: apply a sample, watch it, read the verdict");
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
