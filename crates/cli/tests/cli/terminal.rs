//! The program on a real terminal: what a person sees, and how the terminal is left.

use serde_json::json;

use super::desk::Desk;
use super::pty::Terminal;

const XTERM: &str = "xterm-256color";
const MANIFEST: &str = "../../config/samples/quick.yaml";

#[test]
fn watch_draws_in_place_however_narrow_the_terminal_is() {
    for columns in [100, 60, 20] {
        let desk = Desk::with("sizing");
        let mut watch = Terminal::start(&desk.server, columns, XTERM, "watch run");
        watch.shows("> Sizing");
        watch.types("x\n\ny");
        desk.becomes("run", "benchmarking-second-trial");
        watch.shows("> Benchmarking");
        let text = watch.text();
        assert_eq!(text.matches("perf/run").count(), 1, "{columns}: one picture:\n{text}");
        assert!(!text.contains("> Sizing"), "{columns}:\n{text}");
        assert!(text.starts_with("perf/run"), "{columns}:\n{text}");
        assert!(!watch.breaks_a_line(), "{columns}:\n{text}");
        desk.becomes("run", "failed");
        assert_eq!(watch.ends(), 1);
        let text = watch.text();
        assert!(text.contains("perf/run: Failed"), "{columns}: the page:\n{text}");
        assert!(!watch.breaks_a_line(), "{columns}:\n{text}");
    }
}

#[test]
fn keys_that_are_typed_while_it_draws_are_seen_nowhere_and_reach_no_shell() {
    let desk = Desk::with("sizing");
    let mut watch = Terminal::start(&desk.server, 80, XTERM, "watch run");
    watch.shows("> Sizing");
    watch.echoes(false);
    for keys in ["\n", "rm -rf xyz\n", "\n\n\n", "\x1b[A\x1b[B", "\x04", "\t\x7f", "ü\r"] {
        watch.types(keys);
    }
    desk.becomes("run", "benchmarking-second-trial");
    watch.shows("> Benchmarking");
    let text = watch.text();
    assert_eq!(text.matches("perf/run").count(), 1, "one picture:\n{text}");
    assert!(text.starts_with("perf/run") && !text.contains("xyz"), "{text}");
    desk.becomes("run", "failed");
    assert_eq!(watch.ends(), 1);
    watch.types("fresh\n");
    watch.shows("[read fresh]");
    let text = watch.text();
    assert_eq!(text.matches("[read ").count(), 1, "nothing older is read:\n{text}");
}

#[test]
fn the_terminal_is_as_it_was_however_the_program_ends() {
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("QUIT", 131), ("INT", 3)] {
        let desk = Desk::with("sizing");
        let watch = Terminal::start(&desk.server, 80, XTERM, "watch run");
        watch.shows("> Sizing");
        watch.echoes(false);
        watch.is_sent(signal);
        assert_eq!(watch.ends(), code, "{signal}");
    }
    let desk = Desk::with("sizing");
    // On a busy machine its time may be over before it draws.
    let late = Terminal::start(&desk.server, 80, XTERM, "watch run --timeout 1s");
    assert_eq!(late.ends(), 3, "patience");
    let watch = Terminal::start(&desk.server, 80, XTERM, "watch run");
    watch.shows("> Sizing");
    desk.server.edit("perfvalidations", "perf", "run", |object| {
        object["metadata"]["finalizers"] = json!([]);
    });
    desk.server.delete("perfvalidations", "perf", "run");
    assert_eq!(watch.ends(), 4, "it is gone");
}

#[test]
fn a_panic_leaves_the_terminal_as_it_was() {
    let program = std::env::current_exe().expect("this one");
    let program = program.to_str().expect("text");
    let words = [
        program,
        "--ignored",
        "--exact",
        "--nocapture",
        "cli::terminal::panics_on_a_muted_terminal",
    ];
    let panics = Terminal::open(None, 100, XTERM, &words);
    panics.shows("nobody expected this");
    assert_eq!(panics.ends(), 101);
}

#[test]
#[ignore = "only in the terminal of the test above"]
fn panics_on_a_muted_terminal() {
    // As in the program, which ends at once: nothing is dropped.
    std::mem::forget(perfval_cli::keys::Muted::start());
    let settings = rustix::termios::tcgetattr(std::io::stdout()).expect("a terminal");
    assert!(
        !settings.local_modes.contains(rustix::termios::LocalModes::ECHO),
        "it is muted"
    );
    panic!("nobody expected this");
}

#[test]
fn a_window_that_becomes_narrow_is_drawn_again() {
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
    desk.becomes("run", "benchmarking-second-trial");
    watch.shows("trial 2 is running");
    desk.becomes("run", "failed");
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
    let is_drawn = |letter: char| "█│·→■□".contains(letter);
    assert!(!text.contains(is_drawn), "only ASCII is drawn: {text}");
}

#[test]
fn ctrl_c_asks_and_an_answer_or_another_ctrl_c_ends_the_command() {
    for (keys, code, is_suspended) in [("s\n", 130, true), ("\x03", 3, false)] {
        let desk = Desk::new();
        let run = format!("run -f {MANIFEST} --name mine");
        let mut run = Terminal::start(&desk.server, 80, XTERM, &run);
        run.shows("waiting for an operator");
        desk.becomes("mine", "benchmarking");
        run.shows("> Benchmarking");
        run.types("s\n\x03");
        run.shows("[l]eave it running, [s]uspend it and free its GPUs, or [d]elete it?");
        run.echoes(true);
        run.types(keys);
        assert_eq!(run.ends(), code, "{keys:?}");
        let object = desk.server.get("perfvalidations", "perf", "mine").expect("it is there");
        assert_eq!(object["spec"]["suspend"], json!(is_suspended), "{keys:?}");
    }
}
