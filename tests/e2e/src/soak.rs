//! Runs in a row, and what they cost the operator and the cluster.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use kube::ResourceExt as _;
use perfval_api::Verdict;
use serde_json::json;

use crate::install::Operator;
use crate::lab::{Lab, eventually};
use crate::leftovers::Gpus;
use crate::process::Process;
use crate::spec::short;
use crate::validation::Validation;

/// Kinds that change by themselves.
const RESTLESS: [&str; 3] = ["events", "events.events.k8s.io", "leases.coordination.k8s.io"];

/// What was measured after a run.
#[derive(Clone, Debug)]
pub struct AfterRun {
    /// How long the run took, from its creation until it was gone (s).
    pub seconds: u64,
    /// Memory of the operator (KB).
    pub resident_kb: u64,
    /// Open files and connections of the operator.
    pub descriptors: usize,
    /// What etcd holds after a compaction (KB).
    pub etcd_kb: u64,
}

/// So many runs in a row, each of which has to pass and to leave nothing; what was measured after each.
///
/// # Panics
/// If a run does not pass, something stays, or the operator is another process in the end.
pub async fn soak(lab: &Lab, operator: &Operator, namespace: &str, runs: usize) -> Vec<AfterRun> {
    lab.run(&["fault", "dgd", &format!("grace=1@{namespace}")]).await;
    let kinds = kinds(lab).await;
    let process = process_of(operator).await;
    let (mut readings, mut before) = (Vec::new(), Vec::new());
    for number in 1..=runs {
        let began = Instant::now();
        let run = Validation::create(lab, short(&format!("soak-{number}"), namespace)).await;
        run.ends(Verdict::Passed).await;
        run.delete().await;
        let reading = AfterRun {
            seconds: began.elapsed().as_secs(),
            resident_kb: process.resident_kib().expect("it runs"),
            descriptors: process.descriptors().expect("it runs"),
            etcd_kb: etcd_kb().await,
        };
        println!("{number}/{runs}: {reading:?}");
        readings.push(reading);
        if number == 1 {
            // With what Kubernetes puts into a new namespace.
            before = objects(lab, &kinds, namespace).await;
        }
    }
    // The garbage collector takes some seconds for what an object owned.
    eventually("the namespace is as it was", Duration::from_mins(1), || async {
        let now = objects(lab, &kinds, namespace).await;
        let left: Vec<&String> = now.iter().filter(|name| !before.contains(name)).collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    })
    .await;
    assert_eq!(Gpus::count(lab).await.free(), 8);
    assert_eq!(process, process_of(operator).await, "the operator restarted");
    readings
}

/// Every kind that a namespace can hold.
async fn kinds(lab: &Lab) -> String {
    let listed = lab
        .kubectl(&["api-resources", "--verbs=list", "--namespaced", "--output=name"])
        .await;
    let kinds: Vec<&str> = listed.lines().filter(|kind| !RESTLESS.contains(kind)).collect();
    kinds.join(",")
}

async fn objects(lab: &Lab, kinds: &str, namespace: &str) -> Vec<String> {
    let named = lab
        .kubectl(&["get", kinds, "-n", namespace, "--output=name", "--ignore-not-found"])
        .await;
    named.lines().map(str::to_owned).collect()
}

async fn process_of(operator: &Operator) -> Process {
    let uid = operator.pod().await.uid().expect("a pod has a uid");
    let process = Process::operator(&uid).expect("/proc can be read");
    process.expect("the operator's process is on this machine")
}

/// etcd's own figure, of what is live: each run writes half a megabyte of history, which is compacted every five minutes only.
async fn etcd_kb() -> u64 {
    let first: serde_json::Value = etcd("POST", "/v3/kv/range", r#"{"key":"AA==","limit":1}"#)
        .await
        .and_then(|answer| serde_json::from_str(&answer).map_err(io::Error::other))
        .expect("etcd's revision");
    let revision = first["header"]["revision"].as_str().expect("a revision");
    let compaction = json!({"revision": revision, "physical": true}).to_string();
    let _compacted = etcd("POST", "/v3/kv/compaction", &compaction)
        .await
        .expect("a compaction");
    let page = etcd("GET", "/metrics", "").await.expect("etcd's metrics");
    let series: BTreeMap<&str, &str> = page.lines().filter_map(|line| line.split_once(' ')).collect();
    let bytes: f64 = series["etcd_mvcc_db_total_size_in_use_in_bytes"]
        .parse()
        .expect("a number");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size")]
    let kb = bytes as u64 / 1024;
    kb
}

/// The body of etcd's answer.
async fn etcd(method: &str, path: &str, body: &str) -> io::Result<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect("127.0.0.1:2379").await?;
    let length = body.len();
    let request = format!("{method} {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    if head.lines().next().is_some_and(|line| line.contains(" 200 ")) {
        Ok(body.to_owned())
    } else {
        Err(io::Error::other(answer))
    }
}

/// Whether memory and descriptors stayed where they were: the last fifth of the runs against the second.
///
/// # Panics
/// If they grew.
pub fn is_flat(readings: &[AfterRun]) {
    assert!(readings.len() >= 5, "too few runs show nothing");
    let part = readings.len() / 5;
    let (early, late) = (&readings[part..2 * part], &readings[readings.len() - part..]);
    let median = |part: &[AfterRun], of: fn(&AfterRun) -> u64| {
        let mut values: Vec<u64> = part.iter().map(of).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    let grown = |of: fn(&AfterRun) -> u64| {
        let (early, late) = (median(early, of), median(late, of));
        println!("{early} → {late}");
        late.saturating_sub(early)
    };
    let runs = readings.len() as u64;
    // An allocator keeps pages of its own, some MB more or less.
    assert!(
        grown(|reading| reading.resident_kb) < (4 << 10) + runs * 100,
        "the operator's memory grows: {readings:?}"
    );
    assert!(
        grown(|reading| reading.descriptors as u64) <= 2,
        "descriptors are kept: {readings:?}"
    );
    // Events stay for an hour, some thirty of a run.
    assert!(
        grown(|reading| reading.etcd_kb) < (2 << 10) + runs * 100,
        "etcd grows: {readings:?}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thirty runs after which each figure grew by so much a run.
    fn runs(resident_kb: u64, descriptors: usize, etcd_kb: u64) -> Vec<AfterRun> {
        let after = |run: usize| AfterRun {
            seconds: 25,
            resident_kb: 27_000 + resident_kb * run as u64,
            descriptors: 28 + descriptors * run,
            etcd_kb: 6_000 + etcd_kb * run as u64,
        };
        (1..=30).map(after).collect()
    }

    #[test]
    fn what_a_run_leaves_in_events_is_flat() {
        is_flat(&runs(10, 0, 80));
    }

    #[test]
    #[should_panic(expected = "memory grows")]
    fn a_run_that_is_kept_in_memory_is_not() {
        is_flat(&runs(600, 0, 80));
    }

    #[test]
    #[should_panic(expected = "descriptors are kept")]
    fn a_descriptor_for_each_run_is_not() {
        is_flat(&runs(10, 1, 80));
    }

    #[test]
    #[should_panic(expected = "etcd grows")]
    fn objects_that_stay_are_not() {
        is_flat(&runs(10, 0, 400));
    }
}
