//! A command, typed.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Cursor, PipeReader, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use clap::Parser as _;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use perfval_cli::args::{Cli, Target};
use perfval_cli::screen::{Screen, Size};
use perfval_cli::session::Session;
use perfval_cli::{Error, execute};
use perfval_testkit::api_server::ApiServer;
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::sync::oneshot;

use super::answer::Answer;

/// Long enough for a machine that is busy with everything else.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Somebody is there, and answers nothing.
pub const SILENCE: &str = "(silence)";

fn silence() -> PipeReader {
    let (reader, writer) = io::pipe().expect("a pipe");
    std::mem::forget(writer);
    reader
}

/// A text that is written while it is read.
#[derive(Clone, Default)]
pub struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Text {
    pub fn get(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text")
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no panic").clone()
    }
}

/// The end of a pipe whose reader left.
struct Left;

impl Write for Left {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

thread_local! {
    /// Time of day of the command in this thread.
    static CLOCK: Cell<DateTime<Utc>> = const { Cell::new(DateTime::<Utc>::UNIX_EPOCH) };
}

/// Clock of a command. It moves by a millisecond at each look.
fn tick() -> DateTime<Utc> {
    let now = CLOCK.get();
    CLOCK.set(now + TimeDelta::milliseconds(1));
    now
}

/// A cluster, and a person in front of it.
pub struct Desk {
    pub server: ApiServer,
    pub namespace: &'static str,
    /// Time of day at which the next command begins: minutes after the recorded runs.
    pub moment: DateTime<Utc>,
    /// What the person answers, line by line; `None`: nobody is there.
    pub answers: Option<&'static str>,
    pub columns: Option<usize>,
    pub rows: Arc<AtomicUsize>,
    pub unicode: bool,
    /// Whether the reader of the output left.
    pub nobody_reads: bool,
    pub has_cluster: bool,
}

impl Desk {
    pub fn new() -> Self {
        Self {
            server: ApiServer::new(),
            namespace: "perf",
            moment: "2026-09-21T14:20:00Z".parse().expect("well-formed"),
            answers: None,
            columns: None,
            rows: Arc::new(AtomicUsize::new(50)),
            unicode: true,
            nobody_reads: false,
            has_cluster: true,
        }
    }

    /// With a validation as v0.1.0 stored it at some moment of its life.
    pub fn with(moment: &str) -> Self {
        let desk = Self::new();
        desk.server.put(stored(moment));
        desk
    }

    /// Gives a validation the status of another moment.
    pub fn becomes(&self, name: &str, moment: &str) {
        let status = stored(moment)["status"].clone();
        self.server.edit("perfvalidations", "perf", name, |object| {
            object["status"] = status;
        });
    }

    pub async fn types(&self, words: &str) -> Answer {
        self.start(words).ends().await
    }

    /// Begins a command that goes on while the test changes the cluster.
    pub fn start(&self, words: &str) -> Typed {
        let cli = ["kubectl-perfval"].into_iter().chain(words.split_whitespace());
        let cli = Cli::try_parse_from(cli).expect("a command");
        let (interrupt, interrupts) = unbounded();
        let (out, err) = (Text::default(), Text::default());
        let (columns, rows) = (self.columns, self.rows.clone());
        let size = move || {
            let rows = rows.load(Ordering::Relaxed);
            columns.map(|columns| Size { columns, rows })
        };
        let input: Box<dyn BufRead + Send> = match self.answers {
            Some(SILENCE) => Box::new(BufReader::new(silence())),
            answers => Box::new(Cursor::new(answers.unwrap_or_default())),
        };
        let mut screen = Screen {
            out: if self.nobody_reads {
                Box::new(Left)
            } else {
                Box::new(out.clone())
            },
            err: Box::new(err.clone()),
            input,
            asks: self.answers.is_some(),
            size: Box::new(size),
            echoes: false,
            unicode: self.unicode,
            interrupts,
            interrupt: None,
            clock: tick,
        };
        let (server, namespace) = (self.server.clone(), self.namespace.to_owned());
        let (has_cluster, moment) = (self.has_cluster, self.moment);
        let (done, task) = oneshot::channel();
        // As in the program: a runtime of its own.
        std::thread::spawn(move || {
            CLOCK.set(moment);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let code = runtime.expect("a runtime").block_on(async {
                let open = async |target: &Target| {
                    if !has_cluster {
                        return Err(Error::NoCluster("no kubeconfig".to_owned()));
                    }
                    Ok(Session {
                        client: server.client(),
                        namespace: target.namespace.clone().unwrap_or(namespace.clone()),
                        flags: target.cluster_flags(),
                    })
                };
                Box::pin(execute(cli, &mut screen, open)).await
            });
            done.send(code)
        });
        Typed {
            words: words.to_owned(),
            task,
            out,
            err,
            interrupt,
        }
    }
}

/// A command under way.
pub struct Typed {
    words: String,
    task: oneshot::Receiver<u8>,
    pub out: Text,
    err: Text,
    interrupt: UnboundedSender<()>,
}

impl Typed {
    pub async fn ends(self) -> Answer {
        let code = tokio::time::timeout(PATIENCE, self.task).await;
        let code = code.unwrap_or_else(|_| panic!("it does not end: {}{}", self.out.get(), self.err.get()));
        Answer {
            words: self.words,
            code: code.expect("no panic"),
            out: String::from_utf8_lossy(&self.out.bytes()).into_owned(),
            err: self.err.get(),
        }
    }

    pub fn is_over(&self) -> bool {
        !self.task.is_empty()
    }

    /// Waits until it has printed a text.
    pub async fn shows(&self, text: &str) {
        self.wrote(&self.out, text).await;
    }

    /// Waits until it has printed a note to a person.
    pub async fn notes(&self, text: &str) {
        self.wrote(&self.err, text).await;
    }

    async fn wrote(&self, to: &Text, text: &str) {
        let written = async {
            while !to.get().contains(text) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let written = tokio::time::timeout(PATIENCE, written).await;
        assert!(written.is_ok(), "no {text:?} in {}{}", self.out.get(), self.err.get());
    }

    pub fn is_interrupted(&self) {
        self.interrupt.unbounded_send(()).expect("it listens");
    }
}

/// An object as v0.1.0 stored it.
pub fn stored(moment: &str) -> Value {
    let path = format!("../api/tests/fixtures/v0.1.0/{moment}.json");
    let mut object: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("a fixture")).expect("JSON");
    object["metadata"]["creationTimestamp"] = "2026-09-21T14:13:20Z".into();
    perfval_testkit::stored::unpack(&mut object);
    object
}

/// The sample `quick.yaml` with other texts instead of these. The file is removed with the value.
pub fn edited_sample(changes: &[(&str, &str)]) -> NamedTempFile {
    let mut text = std::fs::read_to_string("../../config/samples/quick.yaml").expect("the sample");
    for (before, after) in changes {
        assert!(text.contains(before), "{before} is not in {text}");
        text = text.replacen(before, after, 1);
    }
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("written");
    file
}

/// Id of the run of a stored object.
pub fn run_id(object: &Value) -> String {
    let number = object["status"]["run"]["number"].as_i64().expect("a run");
    perfval_run::names::run_id(object["metadata"]["uid"].as_str().expect("a uid"), number)
}

/// Compares with the text under `golden/`; `UPDATE_GOLDEN=1` writes it.
pub fn golden(name: &str, text: &str) {
    let path = PathBuf::from(format!("tests/golden/{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{}: UPDATE_GOLDEN=1 writes it", path.display());
}
