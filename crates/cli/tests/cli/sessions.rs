//! Sessions of docs/evidence/sessions.md, taken on a running lab: `just sessions`. What stands on the terminal is printed as it is.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use serde_json::Value;

use super::pty::Terminal;
use super::socket::PROGRAM;

const COLUMNS: u16 = 120;

/// Goes where a person would be: into a folder with the manifests.
fn sit_down() {
    let folder = PathBuf::from(std::env::var_os("PERFVAL_SESSIONS").expect("the folder to write into"));
    for name in ["small.yaml", "broken.yaml"] {
        let from = format!("{}/tests/sessions/{name}", env!("CARGO_MANIFEST_DIR"));
        fs::copy(from, folder.join(name)).expect("copied");
    }
    std::env::set_current_dir(folder).expect("it is there");
}

/// A page of the folder, with what was typed and what came of it.
fn keep(name: &str, typed: &str, text: &str, code: Option<u8>) {
    let code = code.map_or_else(String::new, |code| format!("\nExit code {code}.\n"));
    let text = text.split("[ended ").next().unwrap_or_default().trim_end();
    let page = format!("$ kubectl perfval {typed}\n{text}\n{code}");
    fs::write(format!("{name}.txt"), page).expect("written");
}

fn open(typed: &str) -> Terminal {
    let words: Vec<&str> = [PROGRAM].into_iter().chain(typed.split_whitespace()).collect();
    Terminal::open(None, COLUMNS, "xterm-256color", &words)
}

/// On a terminal, to its end.
fn on_a_terminal(name: &str, typed: &str) {
    let terminal = open(typed);
    let code = terminal.ends();
    keep(name, typed, &terminal.text(), Some(code));
}

/// Into a file, to its end.
fn into_a_file(name: &str, typed: &str) {
    let ended = Command::new(PROGRAM)
        .args(typed.split_whitespace())
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    let code = ended.status.code().and_then(|code| u8::try_from(code).ok());
    keep(name, typed, &text, code);
}

/// The picture in the middle of the second trial.
fn picture(name: &str, typed: &str) {
    let terminal = open(typed);
    for sign in ["> Benchmarking", "trial 1 ", "workers in the last trial", "tok/s    "] {
        terminal.shows(sign);
    }
    keep(name, typed, &terminal.text(), None);
}

#[test]
#[ignore = "needs a lab without an operator: just sessions"]
fn without_an_operator() {
    sit_down();
    on_a_terminal("10-doctor-nothing", "doctor -n perf");
}

#[test]
#[ignore = "needs a lab with an operator: just sessions"]
fn healthy() {
    sit_down();
    on_a_terminal("20-doctor", "doctor -f small.yaml");
    let run = thread::spawn(|| into_a_file("21-run", "run -f small.yaml --report report"));
    runs("small");
    picture("22-watch", "watch small -n perf");
    run.join().expect("it ends");
    on_a_terminal("23-describe", "describe small -n perf");
}

#[test]
#[ignore = "needs a lab with a slow GPU: just sessions"]
fn slow() {
    sit_down();
    let run = thread::spawn(|| into_a_file("31-rerun", "rerun small -n perf --watch"));
    runs("small");
    picture("30-watch", "watch small -n perf");
    run.join().expect("it ends");
    on_a_terminal("32-describe", "describe small -n perf");
    on_a_terminal("33-diff", "diff small -n perf");
    on_a_terminal("34-history", "history small -n perf");
}

#[test]
#[ignore = "needs a lab with an operator: just sessions"]
fn broken() {
    sit_down();
    on_a_terminal("40-doctor", "doctor -f broken.yaml");
    let run = thread::spawn(|| into_a_file("41-run", "run -f broken.yaml"));
    runs("broken");
    into_a_file("42-watch", "watch broken -n perf");
    run.join().expect("it ends");
    on_a_terminal("43-describe", "describe broken -n perf");
    on_a_terminal("44-diff", "diff small broken -n perf");
}

/// Waits until a validation runs.
fn runs(name: &str) {
    let asked = || {
        Command::new(PROGRAM)
            .args(["get", name, "-n", "perf", "-o", "json"])
            .output()
    };
    let phase = || -> Option<String> {
        let object: Value = serde_json::from_slice(&asked().ok()?.stdout).ok()?;
        Some(object["status"]["phase"].as_str()?.to_owned())
    };
    super::pty::until(&format!("{name} runs"), || {
        phase().is_some_and(|phase| phase != "Completed")
    });
}
