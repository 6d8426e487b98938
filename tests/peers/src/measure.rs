//! One operator, from its start to its end.

use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use kube::{Client, Config};
use perfval_e2e::process::{Meter, Process};
use perfval_e2e::{Audit, Lab};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::Outcome;
use crate::calls::{Calls, Reaction, median, reactions};
use crate::objects;
use crate::subject::Subject;

/// The longest any wait takes.
const LIMIT: Duration = Duration::from_mins(5);
/// Interval at which a starting operator is asked.
const POLL: Duration = Duration::from_millis(20);
/// Time without a write after which the reaction of an operator to a change is over.
const QUIET: Duration = Duration::from_secs(15);
/// Over which it is measured without an object.
const IDLE: Duration = Duration::from_secs(30);
/// Over which it is measured while all objects wait: a status may change once a minute.
const WAIT: Duration = Duration::from_mins(1);
/// Objects whose reactions are measured one by one.
const SINGLE: usize = 15;
/// Between two of them.
const PAUSE: Duration = Duration::from_secs(2);

/// Figures of an operator.
#[derive(Default)]
pub struct Measured {
    /// Its column.
    pub title: &'static str,
    /// Size of the files that are shipped to run it (MiB).
    pub mebibytes: u64,
    /// From the start of its process until it says that it is ready (s).
    pub ready: f64,
    /// Without an object.
    pub idle: Rest,
    /// From a write to its reaction, one object at a time: medians.
    pub reaction: Reaction,
    /// Objects that were created at once.
    pub objects: usize,
    /// The same for these: medians.
    pub at_once: Reaction,
    /// Requests from the first of these to its rest.
    pub creation: Calls,
    /// With all objects waiting.
    pub waiting: Rest,
    /// From the start of its process, with all of them there, until it says that it is ready (s).
    pub ready_again: f64,
    /// From there to its reaction to an object that was created at its start (s).
    pub first_again: Option<f64>,
    /// The most memory of both processes (MiB).
    pub peak: Option<f64>,
}

/// Cost while nothing happens.
#[derive(Default)]
pub struct Rest {
    /// Of a core (%).
    pub cpu: Option<f64>,
    /// Of a core, of the API server (%).
    pub api_server: Option<f64>,
    /// Resident (MiB).
    pub mebibytes: Option<f64>,
    /// Requests a minute.
    pub requests: f64,
}

/// Measures one.
pub async fn of(lab: &Lab, subject: &Subject, count: usize) -> Outcome<Measured> {
    let measured = measure(lab, subject, count).await;
    // The binding gives every right, and outlives the namespace of its account.
    lab.kubectl(&["delete", "clusterrolebinding", subject.name, "--ignore-not-found"])
        .await;
    measured
}

async fn measure(lab: &Lab, subject: &Subject, count: usize) -> Outcome<Measured> {
    let say = |what: &str| println!("{:<26} {what}", subject.title);
    lab.namespace(subject.name).await;
    let place = Place::make(lab, subject).await?;
    let api = objects::api(lab, subject);
    let mut measured = Measured {
        title: subject.title,
        mebibytes: subject.mebibytes(),
        ..Measured::default()
    };

    say("starts");
    let mut running = place.start(subject)?;
    measured.ready = running.ready(subject).await?;
    sleep(QUIET).await;
    say("rests");
    measured.idle = place.rest(lab, &running, IDLE).await?;

    say("sees new objects, one at a time");
    let since = Utc::now();
    let mut names = Vec::new();
    for number in 0..SINGLE.min(count) {
        names.push(objects::create(&api, subject.named(&format!("single-{number:03}"))).await?);
        sleep(PAUSE).await;
    }
    place.quiet(lab).await;
    let calls = Audit::calls(lab, since).await;
    measured.reaction = middle(&reactions(&calls, &place.user, subject.plural, &names));

    let rest = count.saturating_sub(names.len());
    say(&format!("sees {rest} more at once"));
    let since = Utc::now();
    let wanted = (0..rest).map(|number| subject.named(&format!("object-{number:03}")));
    let names = objects::create_all(&api, wanted.collect()).await?;
    let until = place.quiet(lab).await;
    let calls = Audit::calls(lab, since).await;
    measured.objects = names.len();
    measured.at_once = middle(&reactions(&calls, &place.user, subject.plural, &names));
    measured.creation = Calls::of(&calls, &place.user, since, until);

    say("rests, with all of them waiting");
    measured.waiting = place.rest(lab, &running, WAIT).await?;
    measured.peak = running.process.peak();

    say("is killed and starts again");
    running.kill().await?;
    let since = Utc::now();
    let began = Instant::now();
    let mut running = place.start(subject)?;
    let name = objects::create(&api, subject.named("after-restart")).await?;
    let created = began.elapsed().as_secs_f64();
    measured.ready_again = running.ready(subject).await?;
    place.quiet(lab).await;
    let calls = Audit::calls(lab, since).await;
    let again = reactions(&calls, &place.user, subject.plural, &[name]);
    measured.first_again = again.first().and_then(|one| one.first).map(|first| first + created);
    measured.peak = larger(measured.peak, running.process.peak());

    say("sees all of them go");
    // Before its namespace, which holds its account: without that it releases no finalizer.
    let objects = objects::delete_all(&api, LIMIT).await?;
    let namespace = ["delete", "namespace", subject.name, "--timeout=300s"];
    lab.kubectl(&namespace).await;
    running.kill().await?;
    say(&format!("is over; {objects} objects were there"));
    Ok(measured)
}

fn middle(all: &[Reaction]) -> Reaction {
    Reaction {
        first: median(all.iter().map(|one| one.first)),
        status: median(all.iter().map(|one| one.status)),
    }
}

fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}

/// Account and files of an operator.
struct Place {
    folder: TempDir,
    user: String,
}

impl Place {
    /// An account with every right, and a kubeconfig for it.
    async fn make(lab: &Lab, subject: &Subject) -> Outcome<Self> {
        let name = subject.name;
        lab.kubectl(&["create", "serviceaccount", "operator", "-n", name]).await;
        let user = format!("system:serviceaccount:{name}:operator");
        lab.apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
        }))
        .await;
        let token = lab
            .kubectl(&["create", "token", "operator", "-n", name, "--duration=6h"])
            .await;
        let config = lab
            .kubectl(&["config", "view", "--raw", "--minify", "-o", "json"])
            .await;
        let mut config: Value = serde_json::from_str(&config)?;
        config["users"][0]["user"] = json!({"token": token.trim()});
        let folder = TempDir::new()?;
        std::fs::write(folder.path().join("kubeconfig"), config.to_string())?;
        Ok(Self { folder, user })
    }

    /// Starts its process, which ends with this one.
    fn start(&self, subject: &Subject) -> Outcome<Running> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .args(&subject.command)
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            // AIPerf's operator keeps results there.
            .env("AIPERF_RESULTS_DIR", self.folder.path().join("results"))
            .envs(subject.environment.iter().map(|(name, value)| (*name, value.as_str())))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let id = child.id().ok_or("it ended at once")?;
        Ok(Running {
            child,
            process: Process::of(id),
            began: Instant::now(),
            log: self.folder.path().join("log"),
        })
    }

    /// Waits until it writes nothing any more; when it was answered last.
    async fn quiet(&self, lab: &Lab) -> DateTime<Utc> {
        let began = Instant::now();
        let mut last = Utc::now();
        while began.elapsed() < LIMIT {
            sleep(QUIET).await;
            let now = Utc::now();
            let calls = Audit::calls(lab, last).await;
            let wrote = calls.iter().filter(|call| call.user == self.user && call.is_write());
            let wrote = wrote
                .filter(|call| call.kind != "leases")
                .map(|call| call.answered)
                .max();
            match wrote {
                Some(_) => last = now,
                None => return last,
            }
        }
        last
    }

    async fn rest(&self, lab: &Lab, running: &Running, time: Duration) -> Outcome<Rest> {
        let meter = Meter {
            operator: running.process.clone(),
            api_server: Process::api_server()?,
        };
        let (since, before) = (Utc::now(), meter.read());
        sleep(time).await;
        let cost = meter.since(&before);
        let until = Utc::now();
        let calls = Calls::of(&Audit::calls(lab, since).await, &self.user, since, until);
        let requests = u32::try_from(calls.total())?;
        Ok(Rest {
            cpu: cost.operator,
            api_server: cost.api_server,
            mebibytes: running.process.resident(),
            requests: f64::from(requests) / cost.seconds * 60.0,
        })
    }
}

/// A running operator.
struct Running {
    child: Child,
    process: Process,
    began: Instant,
    log: std::path::PathBuf,
}

impl Running {
    /// Waits until it says that it is ready; how long after its start (s).
    async fn ready(&mut self, subject: &Subject) -> Outcome<f64> {
        let base = subject.ready.trim_end_matches(path(&subject.ready));
        let mut config = Config::new(base.parse()?);
        config.default_retry = false;
        let client = Client::try_from(config)?;
        while self.began.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait()? {
                let log = std::fs::read_to_string(&self.log)?;
                let end: Vec<_> = log.lines().rev().take(20).collect();
                let end: Vec<_> = end.into_iter().rev().collect();
                return Err(format!("{} ended ({status}):\n{}", subject.title, end.join("\n")).into());
            }
            let request = http::Request::get(path(&subject.ready)).body(Vec::new())?;
            if client.request_text(request).await.is_ok() {
                return Ok(self.began.elapsed().as_secs_f64());
            }
            sleep(POLL).await;
        }
        Err(format!("{} is not ready after {LIMIT:?}", subject.title).into())
    }

    /// SIGKILL: no time to finish anything.
    async fn kill(mut self) -> Outcome<()> {
        Ok(self.child.kill().await?)
    }
}

/// The path of an address.
fn path(address: &str) -> &str {
    let start = address.rfind('/').unwrap_or_default();
    &address[start..]
}
