//! Result of a command, and what is expected of it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Result of a command.
#[derive(Debug)]
pub struct Answer {
    /// The command.
    pub words: String,
    pub code: u8,
    pub out: String,
    pub err: String,
}

impl Answer {
    /// Runs a program with this text on its standard input.
    pub fn run(command: &mut Command, input: &str) -> Self {
        let words = format!("{command:?}");
        let streams = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = streams.spawn().expect("it starts");
        // It may answer without having read everything.
        let _ = process.stdin.take().expect("its input").write_all(input.as_bytes());
        let output = process.wait_with_output().expect("it ends");
        let code = output.status.code().and_then(|code| u8::try_from(code).ok());
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self {
            words,
            code: code.expect("an exit code"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Checks that standard output contains a text.
    #[track_caller]
    pub fn prints(&self, text: &str) {
        let Self { words, out, err, .. } = self;
        assert!(out.contains(text), "{words} prints no {text:?}:\n{out}{err}");
    }

    /// Checks that standard error contains a text.
    #[track_caller]
    pub fn notes(&self, text: &str) {
        let Self { words, out, err, .. } = self;
        assert!(err.contains(text), "{words} notes no {text:?}:\n{out}{err}");
    }

    /// Checks the exit code, and that standard error contains a text.
    #[track_caller]
    pub fn exits(&self, code: u8, text: &str) {
        assert_eq!(self.code, code, "{self:?}");
        self.notes(text);
    }

    /// What a script reads of it.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    /// Standard output without line breaks and padding.
    pub fn in_one_line(&self) -> String {
        self.out.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
