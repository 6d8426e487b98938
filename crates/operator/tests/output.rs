//! What a command answers, into a pipe without a reader and onto a disk that is full.

use std::fs::File;
use std::process::{Command, Output, Stdio};

fn reasons(stdout: impl Into<Stdio>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perfvalidation-operator"));
    command.args(["docs", "reasons"]).stdout(stdout).stderr(Stdio::piped());
    let child = command.spawn().expect("the operator starts");
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_reader_that_left_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = reasons(writer);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stderr.is_empty());
}

#[test]
fn an_answer_that_is_lost_is_an_error() {
    let output = reasons(File::create("/dev/full").expect("/dev/full"));
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("cannot be written to standard output: No space left"),
        "{said}"
    );
}
