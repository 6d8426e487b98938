//! The program on a real terminal: what a person sees, and how the terminal is left.

use serde_json::{Value, json};

use super::desk::{Desk, stored};
use super::pty::Terminal;

const XTERM: &str = "xterm-256color";
const MANIFEST: &str = "../../config/samples/quick.yaml";

/// The validation as it was at another moment.
fn becomes(desk: &Desk, name: &str, moment: &str) {
    let later = stored(moment);
    desk.server.edit("perfvalidations", "perf", name, |object| {
        object["status"] = later["status"].clone();
    });
}

#[test]
fn watch_draws_in_place_however_narrow_the_terminal_is() {
    for columns in [100, 60, 20] {
        let desk = Desk::with("sizing");
        let mut watch = Terminal::start(&desk.server, columns, XTERM, "watch run");
        watch.shows("> Sizing");
        // What is typed meanwhile is echoed where the cursor stands.
        watch.types("x");
        becomes(&desk, "run", "benchmarking-second-trial");
        watch.shows("> Benchmarking");
        let text = watch.text();
        assert_eq!(text.matches("perf/run").count(), 1, "{columns}: one picture:\n{text}");
        assert!(!text.contains("> Sizing"), "{columns}:\n{text}");
        assert!(text.starts_with("perf/run"), "{columns}:\n{text}");
        assert!(!watch.breaks_a_line(), "{columns}:\n{text}");
        becomes(&desk, "run", "failed");
        assert_eq!(watch.ends(), 1);
        let text = watch.text();
        assert!(text.contains("perf/run: Failed"), "{columns}: the page:\n{text}");
        assert!(!watch.breaks_a_line(), "{columns}:\n{text}");
    }
}

#[test]
fn a_window_that_becomes_narrow_is_drawn_anew() {
    let desk = Desk::with("benchmarking-second-trial");
    let mut watch = Terminal::start(&desk.server, 100, XTERM, "watch run");
    watch.shows("TTFT p99 264.681 ms");
    watch.resize(30);
    watch.shows("trial 1  Pass\n2000 tok/s, TTFT p99 264.681\nms\n");
    let text = watch.text();
    assert_eq!(text.matches("perf/run").count(), 1, "{text}");
    watch.types("\x03");
    assert_eq!(watch.ends(), 3);
    watch.shows("run goes on without you");
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_lines() {
    let desk = Desk::with("sizing");
    let watch = Terminal::start(&desk.server, 80, "dumb", "watch run");
    watch.shows("Sizing");
    becomes(&desk, "run", "benchmarking-second-trial");
    watch.shows("trial 2 is running");
    becomes(&desk, "run", "failed");
    assert_eq!(watch.ends(), 1);
    let bytes = watch.bytes();
    assert!(
        !bytes.contains(&0x1b),
        "no sequence: {}",
        String::from_utf8_lossy(&bytes)
    );
    let text = watch.text();
    assert!(
        text.contains("Sizing") && text.contains("Benchmarking"),
        "every line stays: {text}"
    );
    assert!(
        bytes.is_ascii() || text.contains('≥'),
        "only its own words are in more than ASCII"
    );
}

/// A run on a terminal, after the first Ctrl-C.
fn asked(desk: &Desk) -> Terminal {
    let run = format!("run -f {MANIFEST} --name mine");
    let mut run = Terminal::start(&desk.server, 80, XTERM, &run);
    run.shows("not looked at yet");
    becomes(desk, "mine", "benchmarking");
    run.shows("> Benchmarking");
    run.types("\x03");
    run.shows("[l]eave it running, [s]uspend it and free its GPUs, or [d]elete it?");
    run
}

fn mine(desk: &Desk) -> Option<Value> {
    desk.server.get("perfvalidations", "perf", "mine")
}

#[test]
fn ctrl_c_asks_and_the_answer_is_done() {
    for (keys, code, said) in [
        ("l\n", 3, "mine goes on; follow it with"),
        ("s\n", 130, "mine stops, and its GPUs are freed; go on with"),
        ("d\n", 130, "mine is deleted; the operator frees its GPUs"),
    ] {
        let desk = Desk::new();
        let mut run = asked(&desk);
        run.types(keys);
        assert_eq!(run.ends(), code, "{keys:?}");
        run.shows(said);
        match (keys, mine(&desk)) {
            ("l\n", Some(object)) => assert_eq!(object["spec"]["suspend"], json!(false)),
            ("s\n", Some(object)) => assert_eq!(object["spec"]["suspend"], json!(true)),
            ("d\n", None) => {}
            (_, left) => panic!("{keys:?}: {left:?}"),
        }
    }
}

#[test]
fn a_second_ctrl_c_leaves_at_once_and_harms_nothing() {
    let desk = Desk::new();
    let mut run = asked(&desk);
    let before = mine(&desk).expect("it is there");
    run.types("\x03");
    assert_eq!(run.ends(), 3);
    run.shows("mine goes on; follow it with");
    assert_eq!(mine(&desk), Some(before));
}
