//! `ready` says by its exit code whether an operator is ready, and why not.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::thread;

/// Answers one question and ends.
fn answering(status: &'static str, text: &'static str) -> String {
    answering_with(status, "", text.to_owned())
}

fn answering_with(status: &'static str, headers: &'static str, text: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/readyz", listener.local_addr().expect("it has one"));
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a caller");
        let _ = stream.read(&mut [0; 1024]);
        let length = text.len();
        let _ = write!(
            stream,
            "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{text}"
        );
    });
    url
}

fn ready(url: &str) -> Output {
    ready_into(url, Stdio::piped())
}

fn ready_into(url: &str, stdout: impl Into<Stdio>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_perfvalidation-operator"))
        .args(["ready", url, "--timeout", "0"])
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
        .wait_with_output()
        .expect("it ends")
}

#[test]
fn a_reader_that_left_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = ready_into(&answering("200 OK", "ok"), writer);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn an_answer_that_is_lost_is_an_error() {
    let full = File::create("/dev/full").expect("/dev/full");
    let output = ready_into(&answering("200 OK", "ok"), full);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("cannot be written to standard output: No space left"),
        "{said}"
    );
}

#[test]
fn a_ready_operator_is_success() {
    let output = ready(&answering("200 OK", "ok"));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n");
}

#[test]
fn an_answer_that_is_not_ready_is_a_failure_with_its_reason() {
    for (status, headers, text) in [
        ("503 Service Unavailable", "", "nodes cannot be listed: Forbidden"),
        // It is not followed.
        ("302 Found", "Location: http://127.0.0.1:1/readyz\r\n", "over there"),
    ] {
        let output = ready(&answering_with(status, headers, text.to_owned()));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&status[..3]) && said.contains(text), "{said}");
    }
}

#[test]
fn no_listener_is_a_failure_that_names_the_address() {
    let unused = TcpListener::bind("127.0.0.1:0")
        .expect("a free port")
        .local_addr()
        .unwrap();
    let output = ready(&format!("http://{unused}/readyz"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains(&unused.to_string()),
        "{output:?}"
    );
}

#[test]
fn an_answer_without_end_is_no_answer() {
    let output = ready(&answering_with("200 OK", "", "ok".repeat(1 << 20)));
    assert_eq!(output.status.code(), Some(1), "{:?}", output.status);
    assert!(output.stderr.len() < 1000, "{output:?}");
}
