//! `just walk`: what a new user does, by the commands of README and quick start, with their output.
//!
//! Twice on one lab: the operator for all namespaces from the chart, with every panel of the dashboard read from a real
//! Prometheus; then the operator for one namespace from `config/namespaced`. Each time nothing may be left at the end.

mod dashboard;
mod everything;
mod images;
mod page;
mod prometheus;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use perfval_e2e::{Lab, eventually};

use crate::everything::Everything;
use crate::page::Page;
use crate::prometheus::Prometheus;
use crate::terminal::{Terminal, title};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The sample that the lab can run; a user's own GPUs take `minimal.yaml`.
const SAMPLE: &str = "config/samples/demo.yaml";
/// What the pages call their validation, and what the sample calls its own.
const NAMES: (&str, &str) = ("h100-baseline", "demo");

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
    let lab = Lab::at(cli.lab.clone()).await;
    images::name_as_published(&lab).await?;
    let terminal = Terminal::with_helm(&lab).await?;
    let before = Everything::list(&lab).await?;
    for way in [Way::Helm, Way::Kustomize] {
        if cli.only.is_some_and(|only| only != way) {
            continue;
        }
        match way {
            Way::Helm => by_helm(&lab, &terminal, cli).await?,
            Way::Kustomize => by_kustomize(&terminal).await?,
        }
        nothing_is_left(&lab, &before).await;
    }
    Ok(())
}

/// README's first steps with Helm, and the quick start's dashboard.
async fn by_helm(lab: &Lab, terminal: &Terminal, cli: &Cli) -> Outcome<()> {
    title("README: install with Helm");
    let readme = Page::read("README.md")?;
    terminal.all(&readme.block("helm install")?).await?;
    terminal
        .run("kubectl rollout status deployment/perfvalidation-operator -n perfvalidation-system")
        .await?;

    let quickstart = Page::read("docs/quickstart.md")?;
    title("Quick start: see it in Grafana");
    terminal.all(&quickstart.block("dashboard.enabled=true")?).await?;
    terminal
        .run("kubectl rollout status deployment/perfvalidation-operator -n perfvalidation-system")
        .await?;
    let prometheus = Prometheus::start(lab, &cli.prometheus, &quickstart.yaml("scrape_configs")?).await?;

    terminal.run("kubectl create namespace perf").await?;
    one_run(terminal).await?;
    title("README: run again");
    let again = |words: &str| readme.command(words).map(|command| command.replace(NAMES.0, NAMES.1));
    terminal.run(&again("perfvalidation.dev/rerun")?).await?;
    terminal.watch("kubectl get perfvalidations -n perf -w").await?;
    terminal.run(&again("kubectl wait")?).await?;

    title("Dashboard: every panel, asked of Prometheus");
    dashboard::every_panel_has_data(lab, &prometheus).await?;

    title("Quick start: remove it");
    terminal.all(&quickstart.block("helm uninstall")?).await?;
    terminal.run("kubectl delete namespace perf").await
}

/// The quick start for one namespace, with kustomize.
async fn by_kustomize(terminal: &Terminal) -> Outcome<()> {
    let quickstart = Page::read("docs/quickstart.md")?;
    title("Quick start: one namespace only");
    terminal
        .all(&quickstart.block("apply --server-side -k config/namespaced")?)
        .await?;
    terminal
        .run("kubectl rollout status deployment/perfvalidation-operator -n perfvalidation-system")
        .await?;
    one_run(terminal).await?;
    title("Quick start: remove it");
    terminal.all(&quickstart.block("delete -k config/namespaced")?).await?;
    terminal.run("kubectl delete namespace perf").await
}

/// Apply, watch, and read the verdict, by the commands of README's table.
async fn one_run(terminal: &Terminal) -> Outcome<()> {
    let readme = Page::read("README.md")?;
    let command = |words: &str| readme.command(words).map(|command| command.replace(NAMES.0, NAMES.1));
    title("README: apply a sample, watch it, read the verdict");
    terminal.run(&format!("kubectl apply -f {SAMPLE}")).await?;
    terminal.watch("kubectl get perfvalidations -n perf -w").await?;
    for words in ["kubectl wait", "jsonpath='{.status.message}'", "kubectl describe"] {
        terminal.run(&command(words)?).await?;
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
