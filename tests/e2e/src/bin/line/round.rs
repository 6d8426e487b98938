//! One round: so many validations wait behind one, from nothing to nothing.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use kube::Api;
use perfval_api::PerfValidation;
use perfval_e2e::{Audit, Gpus, Holder, Lab, Operator, eventually, quick};
use serde_json::{Value, json};

use crate::head::{self, Head};
use crate::operator::Running;
use crate::reached::Reached;
use crate::waiting::{self, Greeted};
use crate::{LIMIT, Outcome};
use perfval_e2e::process::{Cost, Meter, Process};

/// Over which an idle operator is measured.
const IDLE: Duration = Duration::from_secs(30);
/// Over which a line that waits is measured, after as long a wait: a status may change once a minute.
const WAIT: Duration = Duration::from_mins(1);
/// What an operator or a line does after something changed is over by then.
const SETTLE: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);
const HEAD: &str = "head";

/// What a round showed.
#[derive(Default)]
pub struct Round {
    /// Validations behind the head.
    pub waiting: usize,
    pub idle: Cost,
    pub idle_mib: Option<f64>,
    pub greeted: Greeted,
    /// From then until all of them were in the queue.
    pub queued: Option<Reached>,
    /// All of them wait behind another user's pod.
    pub all_wait: Cost,
    pub all_wait_mib: Option<f64>,
    /// Requests of the operator a minute meanwhile.
    pub all_wait_requests: Option<f64>,
    pub restart: Option<Reached>,
    pub head: Head,
    /// Requests of the operator a minute while the head measured.
    pub head_requests: Option<f64>,
    /// From a change of a trial's Job to the operator's next write during the run at the head (s).
    pub reaction: Option<f64>,
    pub deletion: Option<Reached>,
    /// The most memory of the operator in the whole round.
    pub peak_mib: Option<f64>,
    /// Unrequested restarts of the operator.
    pub restarts: i32,
}

/// Lets `waiting` validations wait behind one.
pub async fn run(lab: &Lab, operator: &Operator, waiting: usize) -> Outcome<Round> {
    let say = Progress::of(waiting);
    let mut round = Round {
        waiting,
        ..Round::default()
    };
    let namespace = lab.namespace(&namespace(waiting)).await;
    let validations: Api<PerfValidation> = Api::namespaced(lab.client.clone(), &namespace);

    say.that("a fresh operator, idle");
    let mut running = Running::fresh(operator).await?;
    let mut meter = Meter {
        operator: running.process.clone(),
        api_server: Process::api_server()?,
    };
    tokio::time::sleep(SETTLE).await;
    round.idle = over(IDLE, &meter).await;
    round.idle_mib = running.process.resident();

    say.that("another user's pod takes all GPUs; the head and the others come");
    let gpus = Gpus::count(lab).await.all;
    let holder = Holder::by_claim(lab, &namespace, "holder", gpus).await.holding().await;
    let manifest = whole_node(&namespace, gpus);
    let first = waiting::create(lab, &validations, &namespace, &manifest, vec![HEAD.to_owned()]).await?;
    // Who is older is known in whole seconds.
    tokio::time::sleep(SECOND).await;
    let others = (0..waiting).map(|number| format!("waiting-{number:04}")).collect();
    round.greeted = waiting::create(lab, &validations, &namespace, &manifest, others).await?;
    if waiting == 0 {
        round.greeted = first;
    }

    say.that(&format!(
        "all wait; {} of {} say what for",
        round.greeted.ever, round.greeted.all
    ));
    round.queued = Some(waiting::all_queued(&validations).await?);
    // A place may be said again a minute after it was said first.
    tokio::time::sleep(WAIT).await;
    let since = Utc::now();
    round.all_wait = over(WAIT, &meter).await;
    round.all_wait_requests = requests_per_minute(lab, since, Utc::now()).await;
    round.all_wait_mib = running.process.resident();
    round.peak_mib = running.process.peak();

    say.that(&format!("that cost {}; the operator is killed", round.all_wait));
    round.restart = Some(running.restart(lab, waiting + 1).await?);
    meter.operator = running.process.clone();
    tokio::time::sleep(SETTLE).await;

    say.that("all were looked at, or the limit came; the GPUs become free, and the head runs");
    let since = Utc::now();
    ((), round.head) = tokio::join!(holder.leave(), head::follow(&validations, HEAD, &meter));
    say.that(&format!("the head: {}: {}", round.head.end, round.head.message));
    if let Some((since, until)) = round.head.measured {
        round.head_requests = requests_per_minute(lab, since, until).await;
    }
    round.reaction = Audit::read(lab, &namespace, since).await.reactions.median_seconds();

    say.that("all are deleted");
    round.deletion = Some(waiting::delete(lab, &validations, &namespace).await?);
    round.peak_mib = largest(round.peak_mib, meter.operator.peak());
    round.restarts = running.restarts(operator).await - 1;
    say.that("over");
    Ok(round)
}

fn namespace(waiting: usize) -> String {
    format!("line-{waiting}")
}

/// Leaves the lab as it was, whatever the operator left behind.
pub async fn clear(lab: &Lab, operator: &Operator, round: &Round) -> Outcome<()> {
    let namespace = &namespace(round.waiting);
    if matches!(round.deletion, Some(Reached::Only(..))) {
        operator.scale(0).await;
        waiting::abandon(&Api::namespaced(lab.client.clone(), namespace)).await?;
    }
    lab.kubectl(&["delete", "namespace", namespace, "--timeout=300s"]).await;
    eventually("all GPUs are free", LIMIT, || async {
        let held = Gpus::count(lab).await.held;
        if held.is_empty() { Ok(()) } else { Err(held) }
    })
    .await;
    Ok(())
}

/// A run of one trial on every GPU of the node, for which it waits as long as it has to. Two cores serve so few requests at
/// once with eight workers, and the trial is long enough to show what it costs to wait meanwhile.
fn whole_node(namespace: &str, gpus: usize) -> Value {
    let mut manifest = quick(HEAD, namespace);
    let spec = &mut manifest["spec"];
    spec["placement"] = json!({"minGPUs": gpus, "maxGPUs": gpus});
    spec["benchmark"]["concurrencyPerGPU"] = json!(1);
    spec["benchmark"]["requestsPerConcurrency"] = json!(40);
    spec["timeouts"]["sizing"] = json!("12h");
    manifest
}

async fn over(time: Duration, meter: &Meter) -> Cost {
    let before = meter.read();
    tokio::time::sleep(time).await;
    meter.since(&before)
}

async fn requests_per_minute(lab: &Lab, since: DateTime<Utc>, until: DateTime<Utc>) -> Option<f64> {
    let requests = u32::try_from(Audit::requests(lab, since, until).await).ok()?;
    let seconds = (until - since).to_std().ok()?.as_secs_f64();
    Some(f64::from(requests) / seconds * 60.0)
}

fn largest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        _ => one.or(other),
    }
}

/// What the round is at: it takes minutes.
struct Progress {
    waiting: usize,
    began: Instant,
}

impl Progress {
    fn of(waiting: usize) -> Self {
        let began = Instant::now();
        Self { waiting, began }
    }

    fn that(&self, text: &str) {
        println!(
            "{:>5} waiting {:>6.1} s  {text}",
            self.waiting,
            self.began.elapsed().as_secs_f64()
        );
        let _ = io::stdout().flush();
    }
}
