//! `suite` with programs that only say what they were asked: which lab is brought up and taken down when, which tests run,
//! and what the exit code is.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use tempfile::TempDir;

/// Writes down what it is asked; a test that it runs is the fake below.
const LAB: &str = r#"#!/bin/sh
echo "${PERFVAL_LAB_DIR:-usual} $*" >> "$FAKE/asked"
case "$1" in
  image) echo "$FAKE/operator.tar" ;;
  up) [ ! -e "$FAKE/broken" ] ;;
  down) [ ! -e "$FAKE/stays" ] || ! grep -q "^${PERFVAL_LAB_DIR:-usual} up" "$FAKE/asked" ;;
  exec) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
esac
"#;

/// A test fails as often as there are lines in the file of its name.
const TEST: &str = r#"#!/bin/sh
[ "$1" = --list ] && { grep "$5" "$FAKE/names" | sed 's/$/: test/'; echo; exit 0; }
[ "$1" = --ignored ] && [ "$2" != --exact ] && { echo "all tests"; exit 3; }
[ -s "$FAKE/$3" ] || exit 0
sed -i 1d "$FAKE/$3"
echo "words of $3"; exit 101
"#;

const CARGO: &str = r#"#!/bin/sh
for word; do [ "$previous" = --test ] && name=$word; previous=$word; done
[ -n "$name" ] && echo "{\"target\":{\"name\":\"$name\"},\"executable\":\"$(dirname "$0")/test\"}"
exit 0
"#;

const DEMO: &str = "#!/bin/sh\nexit 0\n";

/// The programs, written before the first of them runs: one that is open for writing cannot be started.
fn programs() -> &'static Path {
    static PROGRAMS: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("suite");
        fs::create_dir_all(&folder).expect("a folder");
        for (name, script) in [("lab", LAB), ("test", TEST), ("cargo", CARGO), ("demo", DEMO)] {
            let path = folder.join(name);
            fs::write(&path, script).expect("write a script");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("make it executable");
        }
        folder
    });
    &PROGRAMS
}

/// What the programs read and write down.
struct Fakes(TempDir);

impl Fakes {
    fn new(names: &[&str]) -> Self {
        let fakes = Self(tempfile::tempdir().expect("a folder"));
        fs::write(fakes.path("names"), names.join("\n") + "\n").expect("write the names");
        fakes
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn failing(self, name: &str) -> Self {
        fs::write(self.path(name), "fails\n").expect("write a file");
        self
    }

    fn suite(&self, arguments: &[&str]) -> Output {
        let path = std::env::var("PATH").expect("a path");
        Command::new(env!("CARGO_BIN_EXE_suite"))
            .arg("--debug")
            .arg(programs())
            .args(["--release", "/release"])
            .args(arguments)
            .env("FAKE", self.0.path())
            .env("PATH", format!("{}:{path}", programs().display()))
            .env_remove("PERFVAL_LAB_DIR")
            .output()
            .expect("the suite runs")
    }

    /// What the lab was asked, in order, without the process that a lab is held by.
    fn asked(&self) -> Vec<String> {
        let asked = fs::read_to_string(self.path("asked")).unwrap_or_default();
        let folders = [self.0.path(), programs()].map(|folder| format!("{}/", folder.display()));
        let short = |line: &str| {
            let line = line.split_once(" --holder ").map_or(line, |(call, _)| call);
            line.replace(&folders[0], "").replace(&folders[1], "")
        };
        asked.lines().map(short).collect()
    }
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(without_seconds).collect()
}

fn without_seconds(line: &str) -> String {
    let rest = line.rsplit_once(", ").filter(|(_, time)| time.ends_with(" s"));
    rest.map_or(line, |(rest, _)| rest).to_owned()
}

fn up(lab: &str) -> Vec<String> {
    let made = "image operator /release/perfvalidation-operator /release/perfval-runner";
    ["down", "up", made, "load-image operator.tar"]
        .map(|call| format!("{lab} {call}"))
        .into()
}

const FIRST: &str = "/var/lib/perfval-e2e-0";
const SECOND: &str = "/var/lib/perfval-e2e-1";

fn downs() -> Vec<String> {
    [FIRST, SECOND].map(|lab| format!("{lab} down")).into()
}

fn runs(asked: &[String]) -> Vec<&str> {
    let names = asked
        .iter()
        .filter_map(|call| call.split_once("--exact ").map(|(_, rest)| rest));
    let mut names: Vec<&str> = names.filter_map(|rest| rest.split(' ').next()).collect();
    names.sort_unstable();
    names
}

#[test]
fn tests_that_pass_run_once_in_two_labs() {
    let fakes = Fakes::new(&["one", "two", "three"]);
    let output = fakes.suite(&["runs", "--labs", "2"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut said = lines(&output.stdout);
    said.sort();
    assert_eq!(said, ["one ... ok", "three ... ok", "two ... ok"]);
    let asked = fakes.asked();
    assert_eq!(asked[..8], [up(FIRST), up(SECOND)].concat());
    assert_eq!(asked[asked.len() - 2..], downs());
    assert_eq!(runs(&asked), ["one", "three", "two"]);
}

#[test]
fn tests_for_maintainers_run_only_on_request() {
    let tests = ["e2e::one", "more::two"];
    for (arguments, expected) in [
        (&["runs"][..], &["e2e::one"][..]),
        (&["runs", "--all"], &["e2e::one", "more::two"]),
        (&["runs", "two"], &["more::two"]),
    ] {
        let fakes = Fakes::new(&tests);
        let output = fakes.suite(&[arguments, &["--labs", "1"]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let asked = fakes.asked();
        assert_eq!(runs(&asked), expected);
        assert!(!asked.contains(&format!("{SECOND} up")), "one lab: {asked:?}");
    }
}

#[test]
fn one_test_needs_one_lab() {
    let fakes = Fakes::new(&["one", "two"]);
    let output = fakes.suite(&["runs", "on", "--labs", "2"]);
    assert_eq!(
        (output.status.code(), lines(&output.stdout)),
        (Some(0), vec!["one ... ok".to_owned()])
    );
    assert!(!fakes.asked().contains(&format!("{SECOND} up")));
}

#[test]
fn a_test_that_fails_is_named_last_and_runs_once() {
    let fakes = Fakes::new(&["one", "two"]).failing("one");
    let output = fakes.suite(&["runs", "--labs", "2"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let lines = lines(&output.stdout);
    assert!(
        lines.windows(2).any(|two| two == ["words of one", "one ... FAILED"]),
        "{lines:?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("FAILED: one"));
    assert_eq!(runs(&fakes.asked()), ["one", "two"]);
}

#[test]
fn a_name_that_no_test_has_is_an_error() {
    let fakes = Fakes::new(&["one"]);
    let output = fakes.suite(&["runs", "other"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(lines(&output.stderr), ["no test has other in its name"]);
}

#[test]
fn a_lab_that_does_not_come_up_is_taken_down() {
    for what in ["runs", "races", "admission", "demo"] {
        let fakes = Fakes::new(&["one"]);
        fs::write(fakes.path("broken"), "").expect("write a file");
        assert_eq!(fakes.suite(&[what]).status.code(), Some(1), "{what}");
        let asked = fakes.asked();
        assert!(
            asked.last().is_some_and(|call| call.ends_with(" down")),
            "{what}: {asked:?}"
        );
        assert_eq!(runs(&asked), [""; 0], "{what}");
    }
}

#[test]
fn a_lab_that_does_not_go_down_keeps_no_other_one_up() {
    let fakes = Fakes::new(&["one", "two"]);
    fs::write(fakes.path("stays"), "").expect("write a file");
    let output = fakes.suite(&["runs", "--labs", "2"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let asked = fakes.asked();
    assert_eq!(asked[asked.len() - 2..], downs());
}

#[test]
fn what_runs_on_one_lab_passes_its_exit_code_on() {
    let fakes = Fakes::new(&[]);
    let output = fakes.suite(&["races"]);
    assert_eq!(
        (output.status.code(), lines(&output.stdout)),
        (Some(3), vec!["all tests".to_owned()])
    );
    let asked = fakes.asked();
    let run = ["exec --network-only -- test --ignored --nocapture", "down"].map(|call| format!("usual {call}"));
    assert_eq!(asked, [up("usual"), run.into()].concat());
}

#[test]
fn a_demo_that_is_kept_leaves_the_lab_up() {
    for (arguments, kept) in [(&["demo", "--keep"][..], true), (&["demo"], false)] {
        let fakes = Fakes::new(&[]);
        let output = fakes.suite(arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(
            lines(&output.stdout)[0].starts_with("total since lab up: "),
            "{output:?}"
        );
        let asked = fakes.asked();
        assert_eq!(
            asked.last().is_some_and(|call| call == "usual down"),
            !kept,
            "{asked:?}"
        );
        assert!(
            asked
                .iter()
                .any(|call| call.contains("exec --network-only -- demo --lab lab --config"))
        );
    }
}
