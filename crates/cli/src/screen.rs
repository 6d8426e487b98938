//! Where a command writes, and what it may do there.

use std::io::{BufRead, ErrorKind, Write};

use chrono::{DateTime, Utc};
use futures::channel::mpsc::UnboundedReceiver;
use futures::stream::FusedStream as _;

use crate::error::Error;

/// The streams of a command.
pub struct Screen {
    /// Standard output.
    pub out: Box<dyn Write + Send>,
    /// Standard error.
    pub err: Box<dyn Write + Send>,
    /// Standard input.
    pub input: Box<dyn BufRead + Send>,
    /// Whether a person answers there.
    pub asks: bool,
    /// Columns of the terminal; `None`: no terminal, or one that cannot move its cursor.
    pub columns: Option<usize>,
    /// Whether it shows more than ASCII.
    pub unicode: bool,
    /// Each Ctrl-C.
    pub interrupts: UnboundedReceiver<()>,
    /// The time of day.
    pub clock: fn() -> DateTime<Utc>,
}

impl Screen {
    /// Prints a text.
    pub fn say(&mut self, text: &str) -> Result<(), Error> {
        self.write(text.as_bytes())
    }

    /// Prints bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Error::Closed,
            _ => Error::Output(error),
        })
    }

    /// Prints a line for people, where it disturbs nobody who reads the output.
    pub fn note(&mut self, text: &str) {
        // Nothing can be said of a standard error that cannot be written.
        let _ = writeln!(self.err, "{text}");
    }

    /// Asks; `None` where nobody answers.
    pub fn ask(&mut self, question: &str) -> Option<String> {
        if !self.asks {
            return None;
        }
        let _ = write!(self.err, "{question} ");
        let _ = self.err.flush();
        let mut line = String::new();
        match self.input.read_line(&mut line) {
            Ok(1..) => Some(line.trim().to_owned()),
            _ => None,
        }
    }

    /// Whether no Ctrl-C can come any more.
    pub fn deaf(&self) -> bool {
        self.interrupts.is_terminated()
    }

    /// The time of day.
    pub fn now(&self) -> DateTime<Utc> {
        (self.clock)()
    }
}
