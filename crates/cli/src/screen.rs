//! Output of a command, with the abilities of its terminal.

use std::io::{self, BufRead, ErrorKind, Write};
use std::mem;
use std::process;
use std::thread;

use chrono::{DateTime, Utc};
use futures::StreamExt as _;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender};
use futures::channel::oneshot;
use perfval_api::text::reorders;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;
use crate::keys;

/// Size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Characters in a row.
    pub columns: usize,
    /// Number of rows.
    pub rows: usize,
}

/// The streams of a command.
pub struct Screen {
    /// Standard output.
    pub out: Box<dyn Write + Send>,
    /// Standard error.
    pub err: Box<dyn Write + Send>,
    /// Standard input.
    pub input: Box<dyn BufRead + Send>,
    /// True if a person answers there.
    pub asks: bool,
    /// The terminal's size at this moment; `None`: no terminal, or a terminal that cannot move its cursor.
    pub size: Box<dyn Fn() -> Option<Size> + Send>,
    /// True if typed keys would be visible in the drawing.
    pub echoes: bool,
    /// True if it shows more than ASCII.
    pub unicode: bool,
    /// Each Ctrl-C, once it is listened for.
    pub interrupts: UnboundedReceiver<()>,
    /// Its other end, until then: a Ctrl-C ends the program, as people expect.
    pub interrupt: Option<UnboundedSender<()>>,
    /// The time of day.
    pub clock: fn() -> DateTime<Utc>,
}

/// A text without characters that reorder the line around them, and with a space for each control character of a terminal.
pub fn harmless(text: &str) -> String {
    let controls = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    text.replace(reorders, "").replace(controls, " ")
}

impl Screen {
    /// Prints a text without harmful characters.
    pub fn print(&mut self, text: &str) -> Result<(), Error> {
        self.write(harmless(text).as_bytes())
    }

    /// Prints an answer. Its exit code is valid also if the reader leaves before the end.
    pub fn answer(&mut self, text: &str) -> Result<(), Error> {
        match self.print(text) {
            Err(Error::Closed) => Ok(()),
            other => other,
        }
    }

    /// Prints bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Error::Closed,
            _ => Error::Output(error),
        })
    }

    /// Prints a line for people on standard error, where it does not disturb programs that read the output.
    pub fn note(&mut self, text: &str) {
        // There is no place to report a standard error that cannot be written.
        let _ = writeln!(self.err, "{}", harmless(text));
    }

    /// Asks; `None` without a person who answers.
    pub fn ask(&mut self, question: &str) -> Option<String> {
        self.prompt(question).then(|| read_answer(&mut self.input)).flatten()
    }

    /// Asks, if a person answers. Ctrl-C counts as no answer.
    pub async fn ask_unless_interrupted(&mut self, question: &str) -> Option<String> {
        if !self.prompt(question) {
            return None;
        }
        let input = mem::replace(&mut self.input, Box::new(io::empty()));
        let (answer, answered) = oneshot::channel();
        // Reading cannot be given up; a thread that reads ends with the program.
        thread::spawn(move || {
            let _ = answer.send(read_answer(input));
        });
        tokio::select! {
            answer = answered => answer.ok().flatten(),
            Some(()) = self.interrupts.next() => None,
        }
    }

    /// Shows a question, if a person answers. Returns true if it did.
    fn prompt(&mut self, question: &str) -> bool {
        if self.asks {
            let _ = write!(self.err, "{} ", harmless(question));
            let _ = self.err.flush();
        }
        self.asks
    }

    /// Listens for Ctrl-C from now on. Other signals end the program as ever, but leave no muted terminal.
    pub fn hear(&mut self) {
        if let Some(interrupt) = self.interrupt.take() {
            // Handled from here on: on a busy machine a task may begin only after the terminal is muted.
            if let Ok(mut interrupts) = signal(SignalKind::interrupt()) {
                tokio::spawn(async move {
                    while interrupts.recv().await.is_some() && interrupt.unbounded_send(()).is_ok() {}
                });
            }
            for kind in [SignalKind::hangup(), SignalKind::quit(), SignalKind::terminate()] {
                if let Ok(signals) = signal(kind) {
                    tokio::spawn(ends_by(kind, signals));
                }
            }
        }
    }

    /// Columns of the terminal at this moment.
    pub fn columns(&self) -> Option<usize> {
        (self.size)().map(|size| size.columns)
    }

    /// The time of day.
    pub fn now(&self) -> DateTime<Utc> {
        (self.clock)()
    }
}

/// A typed line; `None` at the end of the input.
fn read_answer(mut input: impl BufRead) -> Option<String> {
    let mut line = String::new();
    match input.read_line(&mut line) {
        Ok(1..) => Some(line.trim().to_owned()),
        _ => None,
    }
}

/// Without a handler a signal ends the program directly.
async fn ends_by(kind: SignalKind, mut signals: Signal) {
    signals.recv().await;
    keys::restore();
    process::exit(128 + kind.as_raw_value());
}
