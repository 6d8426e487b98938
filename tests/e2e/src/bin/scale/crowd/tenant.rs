//! A tenant who writes the worst that it may, beside one whose runs have to pass.

use std::path::Path;
use std::time::{Duration, Instant};

use perfval_testkit::api_server::ApiServer;
use perfval_testkit::trial;
use serde_json::{Value, json};

use super::super::Outcome;
use super::cluster::{Cluster, validation};
use super::operator::{Operator, kubeconfig};
use super::{Size, mebibytes, row};

const NODES: usize = 200;
/// Nodes with free GPUs. The first is the good tenant's, by its selector.
const FREE: usize = 10;
const OBJECTS: usize = 5_000;
const HOSTILE: &str = "hostile";
const GOOD: &str = "good";
/// Longest time that the good tenant's run may take beside the other one.
const RUN: Duration = Duration::from_mins(10);
/// Text in the spec of each hostile object (bytes): nearly as much as the operator keeps.
const TEXT: usize = 14 << 10;

#[tokio::main]
pub async fn tenant(program: &Path, minutes: u64) -> Outcome<()> {
    println!("{OBJECTS} hostile validations for {minutes} minutes, beside a run of another tenant");
    let folder = tempfile::tempdir()?;
    let (cluster, resting) = Cluster::new(NODES, FREE);
    for index in 0..OBJECTS {
        cluster.server.put(hostile(index)?);
    }
    cluster.server.put(validation(GOOD, "run", 0)?);
    let config = kubeconfig(folder.path(), &cluster.serve(resting).await?)?;
    let mut mischief = Mischief::default();
    cluster.live(None, move |server| mischief.step(server));

    let mut operator = Operator::start(program, folder.path(), &config, Size::default().mebibytes)?;
    let began = Instant::now();
    let mut good = GoodRuns::default();
    while began.elapsed() < Duration::from_secs(minutes * 60) {
        operator.lives().inspect_err(|_| good.print())?;
        good.step(&cluster.server)?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    row("the operator's process", "the same from start to end", "the same");
    row("peak memory", &mebibytes(&operator), "≤ 256 MiB");
    row(
        "passes that panicked",
        &operator.logged("pass panicked").to_string(),
        "0",
    );
    row("passes given up", &operator.logged("pass given up").to_string(), "0");
    good.print();
    let phases = cluster.server.shared("perfvalidations");
    let over = phases
        .iter()
        .filter(|object| object["status"]["phase"] == "Completed")
        .count();
    row("hostile objects that came to an end", &over.to_string(), "");
    Ok(())
}

/// The runs of the good tenant, one after the other.
#[derive(Default)]
struct GoodRuns {
    ended: Vec<String>,
    began: Option<Instant>,
    longest: Duration,
}

impl GoodRuns {
    fn step(&mut self, server: &ApiServer) -> Outcome<()> {
        let began = *self.began.get_or_insert_with(Instant::now);
        if began.elapsed() > RUN {
            return Err("the good tenant's run does not end".into());
        }
        let object = server.get("perfvalidations", GOOD, "run").ok_or("it is gone")?;
        let status = &object["status"];
        let token = object["metadata"]["annotations"]["perfvalidation.dev/rerun"]
            .as_str()
            .unwrap_or_default();
        let expected = i64::try_from(self.ended.len())? + 1;
        if status["phase"] != "Completed" || status["run"]["number"].as_i64() != Some(expected) {
            return Ok(());
        }
        self.longest = self.longest.max(began.elapsed());
        self.began = None;
        self.ended.push(status["verdict"].as_str().unwrap_or("none").to_owned());
        let token = format!("{token}+");
        server.edit("perfvalidations", GOOD, "run", |object| {
            object["metadata"]["annotations"] = json!({"perfvalidation.dev/rerun": token});
        });
        Ok(())
    }

    fn print(&self) {
        let passed = self.ended.iter().filter(|verdict| *verdict == "Passed").count();
        row(
            "the other tenant's runs that passed",
            &format!("{passed} of {}", self.ended.len()),
            "all",
        );
        row(
            "the longest of them",
            &format!("{:.0} s", self.longest.as_secs_f64()),
            "",
        );
    }
}

/// An object with the longest text that is admitted.
fn hostile(index: usize) -> Outcome<Value> {
    let mut object = validation(HOSTILE, &format!("x-{index:05}"), 1 + index % (NODES - 1))?;
    let mut noise = Noise(index as u64);
    // Every second text cannot be compressed.
    let mut piece = |number: usize| match index % 2 {
        0 => format!("--x{index}-{number}=\u{202e}{}", ",{[".repeat(250)),
        _ => (0..60).map(|_| noise.next()).collect(),
    };
    let args: Vec<String> = (0..TEXT >> 10).map(&mut piece).collect();
    object["spec"]["workload"]["dynamo"]["worker"]["args"] = json!(args);
    if index.is_multiple_of(50) {
        object["metadata"]["annotations"] = json!({"note": "n".repeat(1 << 20)});
    }
    if index % 250 == 2 {
        object["metadata"]["finalizers"] = json!(vec!["a/b"; 200_000]);
    }
    if index % 100 == 1 {
        object["spec"]["gates"] = json!("none");
    }
    object["spec"]["suspend"] = json!(index % 7 == 6);
    Ok(object)
}

/// Hexadecimal digits that follow no rule.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> String {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        format!("{:016x}", self.0 ^ (self.0 >> 32))
    }
}

/// What the tenant does while the operator works.
#[derive(Default)]
struct Mischief {
    steps: usize,
}

impl Mischief {
    fn step(&mut self, server: &ApiServer) {
        self.steps += 1;
        let name = |number: usize| format!("x-{:05}", number % OBJECTS);
        let plural = "perfvalidations";
        let rerun = name(self.steps * 7);
        if server.get(plural, HOSTILE, &rerun).is_some() {
            let token = "t".repeat(self.steps % 3 * (60 << 10));
            server.edit(plural, HOSTILE, &rerun, |object| {
                object["metadata"]["annotations"]["perfvalidation.dev/rerun"] = json!(format!("{}{token}", self.steps));
            });
        }
        let gone = name(self.steps * 11);
        server.delete(plural, HOSTILE, &gone);
        if let Ok(object) = hostile(self.steps * 11 % OBJECTS)
            && server.get(plural, HOSTILE, &gone).is_none()
        {
            server.put(object);
        }
        for pod in server.shared("pods") {
            if pod["metadata"]["namespace"] == HOSTILE {
                self.spoil(server, &pod);
            }
        }
    }

    /// Lets a pod of the tenant print and report what it likes.
    fn spoil(&self, server: &ApiServer, pod: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, uid) = (text(&pod["metadata"]["name"]), text(&pod["metadata"]["uid"]));
        let container = text(&pod["spec"]["containers"][0]["name"]);
        let kind = uid.bytes().map(usize::from).sum::<usize>() % 5;
        let log = log(kind);
        server.set_previous_log(HOSTILE, &name, &container, log.clone());
        if container == "aiperf" {
            if pod["status"]["phase"] == "Succeeded" && kind < 4 {
                let nonce = trial::nonce(pod).unwrap_or_default();
                server.set_log(HOSTILE, &name, &container, forged(kind, &nonce));
            }
        } else if kind < 2 && pod["status"]["containerStatuses"].is_array() && self.steps.is_multiple_of(10) {
            server.set_log(HOSTILE, &name, &container, log);
            server.edit("pods", HOSTILE, &name, |pod| {
                let container = &mut pod["status"]["containerStatuses"][0];
                container["restartCount"] = json!(self.steps);
                container["state"] = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "m".repeat(30_000)}});
                container["lastState"] = json!({"terminated": {"exitCode": 1, "message": "{[,".repeat(1_300)}});
            });
        }
    }
}

/// A log without an end, of one word, of brackets, or of bytes that are no text.
fn log(kind: usize) -> Vec<u8> {
    match kind {
        0 => b"1,".repeat(250_000),
        1 => b"{[,".repeat(170_000),
        2 => vec![0xff; 512 << 10],
        3 => "password=\u{202e}x ".repeat(40_000).into_bytes(),
        _ => b"token=".repeat(80_000),
    }
}

/// A frame with absurd numbers, a broken one, one without an end, or one of 8 MiB.
fn forged(kind: usize, nonce: &str) -> Vec<u8> {
    let workers = (0..8).map(|number| format!("10.1.0.{number}"));
    let honest = trial::log(trial::record(nonce.to_owned(), trial::crash(), workers));
    let mut lines: Vec<&str> = honest.lines().collect();
    let [.., payload, _] = &lines[..] else {
        return Vec::new();
    };
    let absurd = trial::absurd(payload);
    let deep = "{".repeat(8 << 20);
    let at = lines.len() - 2;
    match kind {
        0 => lines[at] = &absurd,
        1 => lines[at] = &absurd[..absurd.len() / 2],
        2 => lines.truncate(at + 1),
        _ => lines[at] = &deep,
    }
    lines.join("\n").into_bytes()
}
