//! Runs programs and turns their failures into errors that show what they said.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::error::Error;

/// How much of a failed program's output an error shows, in bytes.
const OUTPUT_SHOWN: usize = 4000;

/// Runs a program to its end and returns its standard output.
pub fn output(command: &mut Command) -> Result<String, Error> {
    output_with_input(command, "")
}

/// Runs a program to its end with text on its standard input, and returns its standard output.
pub fn output_with_input(command: &mut Command, input: &str) -> Result<String, Error> {
    let start_error = |command: &Command, source| Error::Start {
        program: line(command),
        source,
    };
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| start_error(command, source))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input closes the pipe; its exit status says whether that matters.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|source| start_error(command, source))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let said = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    Err(Error::Command {
        command: line(command),
        status: output.status,
        output: tail(&said, OUTPUT_SHOWN).to_owned(),
    })
}

/// The last bytes of a text, from the start of a line where there is one.
pub fn tail(text: &str, bytes: usize) -> &str {
    let text = text.trim_end();
    let Some(mut start) = text.len().checked_sub(bytes) else {
        return text;
    };
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let rest = &text[start..];
    rest.split_once('\n').map_or(rest, |(_, lines)| lines)
}

/// A command as a person would type it.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_the_command_and_its_output() {
        let error = output(Command::new("sh").args(["-c", "echo out; echo boom >&2; exit 3"]))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("exit 3") && error.contains("out\nboom") && error.contains("exit status: 3"),
            "{error}"
        );
    }

    #[test]
    fn input_reaches_the_program() {
        assert_eq!(output_with_input(&mut Command::new("cat"), "hello").unwrap(), "hello");
    }

    #[test]
    fn a_tail_starts_at_a_line() {
        assert_eq!(tail("one\ntwo\nthree\n", 8), "three");
        assert_eq!(tail("short\n", 100), "short");
        assert_eq!(tail("äöü", 3), "ü");
    }
}
