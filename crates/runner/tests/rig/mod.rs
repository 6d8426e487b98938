//! A scripted `aiperf`, the runner around it, and workers to sample.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use perfval_verdict::frame::{Failure, Framed, Outcome, Payload, TrialRecord, find, find_message};
use tempfile::TempDir;

const NONCE: &str = "rig-1";

/// Long enough for a machine that is busy with everything else.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub fn runner() -> Command {
    Command::new(env!("CARGO_BIN_EXE_perfval-runner"))
}

pub fn fixture(name: &str) -> String {
    fs::read_to_string(fixture_path(name)).expect("a fixture")
}

fn fixture_path(name: &str) -> PathBuf {
    let path = Path::new("../verdict/tests/fixtures").join(name);
    std::path::absolute(path).expect("a current folder")
}

/// One trial to be run.
pub struct Rig {
    dir: TempDir,
    command: PathBuf,
    artifacts: PathBuf,
    options: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Rig {
    /// `aiperf` is a shell script that finds its artifact directory in `$DIR` and a good export in `$EXPORT`.
    pub fn new(script: &str) -> Self {
        let dir = TempDir::new().expect("a directory");
        let command = dir.path().join("aiperf");
        fs::write(&command, format!("#!/bin/sh\n{script}\n")).expect("a script");
        fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).expect("permissions");
        let artifacts = dir.path().to_owned();
        Self {
            dir,
            command,
            artifacts,
            options: Vec::new(),
            variables: Vec::new(),
        }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn command(mut self, command: &str) -> Self {
        self.command = command.into();
        self
    }

    pub fn artifacts(mut self, dir: &Path) -> Self {
        dir.clone_into(&mut self.artifacts);
        self
    }

    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options.extend([name.to_owned(), value.to_owned()]);
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn gated(self, measure: &str) -> Self {
        self.option("--gated", measure)
    }

    pub fn workers(self, hosts: &[String], port: u16) -> Self {
        let rig = self.option("--workers-port", &port.to_string());
        hosts.iter().fold(rig, |rig, host| rig.option("--workers-host", host))
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// Output goes to files: a pipe without a reader would stop a talkative run.
    pub fn start(&self, arguments: &[&str]) -> Running<'_> {
        let file = |name| fs::File::create(self.dir().join(name)).expect("a file");
        let child = runner()
            .args(["run", "--nonce", NONCE])
            .arg("--artifact-dir")
            .arg(&self.artifacts)
            .arg("--termination-log")
            .arg(self.dir().join("termination"))
            .args(&self.options)
            .arg("--")
            .arg(&self.command)
            .args(arguments)
            .env("DIR", &self.artifacts)
            .env("EXPORT", fixture_path("aiperf-success.json"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .expect("the runner");
        Running { rig: self, child }
    }
}

/// A trial under way.
pub struct Running<'a> {
    rig: &'a Rig,
    child: Child,
}

impl Running<'_> {
    /// Waits for a file of the script.
    pub fn wait_for(&self, name: &str) {
        let file = self.rig.dir().join(name);
        wait_until(&format!("{name} is there"), PATIENCE, || file.exists());
    }

    /// Waits for a text in one of its files.
    pub fn wait_for_text(&self, name: &str, text: &str) {
        let file = self.rig.dir().join(name);
        wait_until(&format!("{name} holds {text}"), PATIENCE, || {
            fs::read_to_string(&file).is_ok_and(|found| found.contains(text))
        });
    }

    /// The most memory that the runner itself had (KB).
    pub fn peak_resident_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).expect("a number of KB")
    }

    pub fn signal(&self, name: &str) {
        assert!(self.kill(name).expect("kill").success());
    }

    fn kill(&self, signal: &str) -> io::Result<ExitStatus> {
        let pid = self.child.id().to_string();
        Command::new("kill").args([&format!("-{signal}"), &pid]).status()
    }

    pub fn end(mut self) -> Ended {
        let mut status = None;
        wait_until("the runner has ended", PATIENCE, || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        let read = |name| fs::read(self.rig.dir().join(name)).unwrap_or_default();
        let text = |name| String::from_utf8_lossy(&read(name)).into_owned();
        Ended {
            code: status.and_then(|s| s.code()).expect("an exit code"),
            out: text("stdout"),
            err: text("stderr"),
            termination: text("termination"),
        }
    }
}

impl Drop for Running<'_> {
    /// Ends a runner that a failed test left. It ends its script too.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.kill("TERM");
        }
    }
}

/// Results of a trial.
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
    termination: String,
}

impl Ended {
    pub fn payload(&self) -> Payload {
        match find(&self.out, NONCE) {
            Framed::Complete(payload) => payload,
            other => panic!("{other:?} in the log; stderr: {}", self.err),
        }
    }

    pub fn message(&self) -> TrialRecord {
        match find_message(&self.termination, NONCE) {
            Framed::Complete(record) => record,
            other => panic!(
                "{other:?} in the termination message {}; stderr: {}",
                self.termination, self.err
            ),
        }
    }

    /// The failure, which both records must contain.
    pub fn failure(&self) -> Failure {
        let record = self.message();
        assert_eq!(self.payload().record, record);
        assert_eq!(record.exit_code, self.code);
        match record.outcome {
            Outcome::Failure(failure) => failure,
            Outcome::Report(report) => panic!("{report:?}"),
        }
    }
}

/// A server whose page depends on the number of requests.
pub struct PageServer {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl PageServer {
    /// `treat` gets each connection, and the number of those before it.
    fn start(ip: &str, port: u16, mut treat: impl FnMut(TcpStream, usize) + Send + 'static) -> Self {
        let listener = TcpListener::bind((ip, port)).expect("the port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                treat(stream.expect("a connection"), counter.load(Ordering::SeqCst));
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { address, asked }
    }

    /// A DCGM exporter.
    pub fn exporter(page: impl Fn(usize) -> String + Send + 'static) -> Self {
        Self::start("127.0.9.1", 0, move |stream, asked| reply(stream, &page(asked)))
    }

    /// Workers on one port: 127.0.8.1 answers, 127.0.8.2 hangs, and on 127.0.8.3 nothing listens.
    pub fn workers() -> Self {
        let healthy = Self::start("127.0.8.1", 0, |stream, asked| reply(stream, &worker_page(asked)));
        Self::hanging("127.0.8.2", healthy.port());
        healthy
    }

    /// Keeps every connection, and never answers.
    pub fn hanging(ip: &str, port: u16) -> Self {
        let mut kept = Vec::new();
        Self::start(ip, port, move |stream, _| kept.push(stream))
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    pub fn wait_until_asked(&self, times: usize) {
        wait_until("the server was asked", PATIENCE, || {
            self.asked.load(Ordering::SeqCst) >= times
        });
    }
}

/// Reads a request and sends a whole answer, head and body.
fn reply(mut stream: TcpStream, answer: &str) {
    let mut line = String::new();
    let mut request = BufReader::new(stream.try_clone().expect("a connection"));
    while request.read_line(&mut line).expect("a request") > 2 {
        line.clear();
    }
    // A client may hang up on an answer that is too long for it.
    let _ = stream.write_all(answer.as_bytes());
}

/// An answer with a body.
pub fn page(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// A real worker's metrics, with ten more finished requests each time.
fn worker_page(nth: usize) -> String {
    let more = |counter: usize| format!("bbf2\"}} {}", counter + nth * 10);
    let dump = fixture("dynamo-worker-metrics.txt");
    let body = dump
        .replace("bbf2\"} 295", &more(295))
        .replace("bbf2\"} 280", &more(280));
    page(&body)
}

pub fn wait_until(what: &str, patience: Duration, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
