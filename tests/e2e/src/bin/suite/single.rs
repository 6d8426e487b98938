//! Programs and tests on one lab.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::build::{Built, code, succeed};
use crate::fresh::Fresh;

/// The CRD and the claims of the fake API server against a real one, and a little of the oracle.
pub async fn admission(built: &Built, lab: &Fresh) -> io::Result<u8> {
    let tests = [built.test("admission").await?, built.test("api_server").await?];
    // Cargo builds the programs of a package with its tests.
    let oracle = built.program("oracle");
    lab.up(true).await?;
    for test in tests {
        let mut command = lab.exec(test);
        command
            .arg("--ignored")
            .env("PERFVAL_OPERATOR", built.program("perfvalidation-operator"));
        succeed(command).await?;
    }
    let mut command = lab.exec(oracle);
    command.args(["--clusters", "30", "--seed", "200"]);
    code(command).await
}

/// Sizing against the real scheduler on random clusters.
pub async fn oracle(built: &Built, lab: &Fresh, arguments: &[String]) -> io::Result<u8> {
    let oracle = built.program("oracle");
    lab.up(true).await?;
    let mut command = lab.exec(oracle);
    command.args(arguments);
    code(command).await
}

/// Ten validations at once.
pub async fn races(built: &Built, lab: &Fresh) -> io::Result<u8> {
    let races = built.test("races").await?;
    lab.up(false).await?;
    let mut command = lab.exec_in_network(races);
    command
        .args(["--ignored", "--nocapture"])
        .env("LAB", lab.program())
        .env("PERFVAL_CONFIG", config()?);
    code(command).await
}

/// Runs in a row.
pub async fn soak(built: &Built, lab: &Fresh, runs: usize) -> io::Result<u8> {
    let e2e = built.test("e2e").await?;
    lab.up(false).await?;
    let mut command = lab.exec_in_network(e2e);
    command
        .args(["--ignored", "--nocapture", "soak::"])
        .env("LAB", lab.program())
        .env("PERFVAL_CONFIG", config()?)
        .env("PERFVAL_SOAK_RUNS", runs.to_string());
    code(command).await
}

/// Every failure of the table and of the node; `name` picks rows or tests.
pub async fn failures(built: &Built, lab: &Fresh, name: &str) -> io::Result<u8> {
    let failures = built.test("failures").await?;
    lab.up(false).await?;
    let mut command = lab.exec_in_network(&failures);
    command
        .args(["--ignored", "--nocapture", "--test-threads", "1"])
        .env("LAB", lab.program())
        .env("PERFVAL_CONFIG", config()?)
        .env("PERFVAL_OPERATOR", built.release("perfvalidation-operator"));
    let row = perfval_e2e::failures::TABLE.iter().any(|row| row.name.contains(name));
    match name {
        "" => {}
        row_name if row => {
            command.arg("every_row").env("PERFVAL_FAILURE", row_name);
        }
        test => {
            command.arg(test);
        }
    }
    code(command).await
}

/// Whole runs on each release of Dynamo that the lab has.
pub async fn versions(built: &Built, lab: &Fresh) -> io::Result<u8> {
    let versions = built.test("versions").await?;
    let mut worst = 0;
    for version in ["1.2.1", "1.4.2", "1.6.1"] {
        lab.up_with(version).await?;
        let mut command = lab.exec_in_network(&versions);
        command
            .args(["--ignored", "--nocapture", "--test-threads", "1"])
            .env("LAB", lab.program())
            .env("PERFVAL_CONFIG", config()?)
            .env("PERFVAL_DYNAMO", version);
        worst = code(command).await?.max(worst);
    }
    Ok(worst)
}

/// The life of a Helm release, with runs in flight.
pub async fn chart(built: &Built, lab: &Fresh) -> io::Result<u8> {
    let chart = built.test("chart_lab").await?;
    lab.up(false).await?;
    let mut command = lab.exec_in_network(chart);
    command
        .args(["--ignored", "--nocapture", "--test-threads", "1"])
        .env("LAB", lab.program())
        .env("PERFVAL_CONFIG", config()?);
    code(command).await
}

/// What a new user does.
pub async fn walk(built: &Built, lab: &Fresh, prometheus: &Path, only: Option<&str>) -> io::Result<u8> {
    let walk = built.program("walk");
    lab.up(false).await?;
    let mut command = lab.exec_in_network(walk);
    command.arg("--lab").arg(lab.program());
    command.arg("--prometheus").arg(prometheus);
    command.args(only.into_iter().flat_map(|way| ["--only", way]));
    code(command).await
}

/// One whole run, and how long all of it took.
pub async fn demo(built: &Built, lab: &Fresh, keep: bool) -> io::Result<u8> {
    // `prepare` has built it.
    let demo = built.program("demo");
    let began = Instant::now();
    lab.up(false).await?;
    let mut command = lab.exec_in_network(demo);
    command.arg("--lab").arg(lab.program()).arg("--config").arg(config()?);
    if keep {
        command.arg("--keep");
    }
    let code = code(command).await;
    println!("total since lab up: {} s", began.elapsed().as_secs());
    code
}

/// A policy over three nodes of two GPUs.
pub async fn policy(built: &Built, lab: &Fresh, validations: usize) -> io::Result<u8> {
    let policy = built.program("policy");
    lab.up_with_flags(&["--nodes", "3", "--gpus", "2"]).await?;
    let mut command = lab.exec_in_network(policy);
    command.arg("--lab").arg(lab.program()).arg("--config").arg(config()?);
    command.args(["--validations", &validations.to_string()]);
    code(command).await
}

/// Random worlds; what the operators say is kept next to the program.
pub async fn worlds(built: &Built, lab: &Fresh, arguments: &[String]) -> io::Result<u8> {
    let worlds = built.program("worlds");
    lab.up(false).await?;
    let mut command = lab.exec_in_network(worlds);
    command.arg("--lab").arg(lab.program()).arg("--config").arg(config()?);
    command
        .arg("--log")
        .arg(built.program("worlds-operator.log"))
        .args(arguments);
    command.env("PERFVAL_OPERATOR", built.release("perfvalidation-operator"));
    code(command).await
}

/// What a line of waiting validations costs.
pub async fn line(built: &Built, lab: &Fresh, waiting: &str) -> io::Result<u8> {
    let line = built.program("line");
    lab.up(false).await?;
    let mut command = lab.exec_in_network(line);
    command.arg("--lab").arg(lab.program()).arg("--config").arg(config()?);
    command.args(["--waiting", waiting]);
    code(command).await
}

/// The operator beside others, with so many objects of each.
pub async fn peers(built: &Built, lab: &Fresh, files: &Path, jobset: &Path, objects: &str) -> io::Result<u8> {
    let peers = built.build("peers").await?;
    lab.up(false).await?;
    let mut command = lab.exec_in_network(peers);
    command.arg("--lab").arg(lab.program()).arg("--config").arg(config()?);
    command
        .arg("--manifests")
        .arg(config()?.with_file_name("tests/peers/manifests"));
    command.arg("--operator").arg(built.release("perfvalidation-operator"));
    command.arg("--bare").arg(files.join("bare"));
    command.arg("--aiperf").arg(files.join("aiperf"));
    command.arg("--jobset").arg(jobset).args(["--objects", objects]);
    code(command).await
}

/// What sizing costs with this many nodes.
pub async fn scale(built: &Built, lab: &Fresh, nodes: &str) -> io::Result<u8> {
    lab.up(true).await?;
    let mut crd = lab.exec_in_network("kubectl");
    crd.args(["apply", "--server-side", "-f"])
        .arg(config()?.join("crd/perfvalidations.perfvalidation.dev.yaml"));
    succeed(crd).await?;
    let mut command = lab.exec_in_network(built.release("scale"));
    command
        .args(["cluster", nodes])
        .env("LAB", lab.program())
        .env("PERFVAL_OPERATOR", built.release("perfvalidation-operator"));
    code(command).await
}

/// A policy over many simulated nodes.
pub async fn fleet(built: &Built, lab: &Fresh, size: &[String]) -> io::Result<u8> {
    lab.up(true).await?;
    for (flag, path) in [
        ("-f", "operator/namespace.yaml"),
        ("-k", "crd"),
        ("-k", "rbac"),
        ("-f", "rbac/outside_role.yaml"),
    ] {
        let mut apply = lab.exec_in_network("kubectl");
        apply.args(["apply", "--server-side", flag]).arg(config()?.join(path));
        succeed(apply).await?;
    }
    let mut bind = lab.exec_in_network("kubectl");
    bind.args(["create", "clusterrolebinding", "perfvalidation-operator-outside"])
        .arg("--clusterrole=perfvalidation-operator-outside")
        .arg("--serviceaccount=perfvalidation-system:perfvalidation-operator");
    succeed(bind).await?;
    let mut command = lab.exec_in_network(built.release("scale"));
    command
        .arg("fleet-lab")
        .arg(built.release("perfvalidation-operator"))
        .args(size)
        .env("LAB", lab.program());
    code(command).await
}

/// Every router and fault; what was recorded is kept until all of it is there.
pub async fn fidelity(built: &Built, lab: &Fresh, record: &Path, arguments: &[String]) -> io::Result<u8> {
    let fidelity = built.program("fidelity");
    let here = std::env::current_dir()?;
    lab.up(false).await?;
    let mut command = lab.exec_in_network(fidelity);
    command.arg("--lab").arg(lab.program()).arg("--config").arg(config()?);
    command.arg("--record").arg(record).arg("--pack");
    command.arg("--runs").arg(here.join("tests/fidelity/recorded.jsonl.gz"));
    command
        .arg("--page")
        .arg(here.join("docs/evidence/fidelity.md"))
        .args(arguments);
    let code = code(command).await?;
    if code == 0 {
        std::fs::remove_file(record)?;
    }
    Ok(code)
}

fn config() -> io::Result<PathBuf> {
    Ok(std::env::current_dir()?.join("config"))
}
