use std::path::Path;
use std::thread;

use super::*;

fn sh(script: &str) -> Invocation {
    Invocation::new("sh", ["-c", script])
}

fn start(name: &str, script: &str) -> Step {
    Step::Start(Process {
        name: name.to_owned(),
        command: sh(script),
    })
}

fn wait_for(script: &str, deadline_seconds: u64) -> Step {
    Step::Await {
        what: "waiting for it".to_owned(),
        command: sh(script),
        deadline_seconds,
    }
}

/// A supervisor of its own, without a namespace. It ends with the test's process.
fn supervisor(folder: &Path, steps: Vec<Step>) -> StateDir {
    let state = StateDir::at(folder);
    fs::create_dir(state.join("logs")).unwrap();
    let plan = Plan {
        title: "test".to_owned(),
        steps,
    };
    fs::write(state.plan(), serde_json::to_string(&plan).unwrap()).unwrap();
    let its = state.clone();
    thread::spawn(move || run(&its));
    // The file of the socket is there a moment before anybody listens.
    within(|| client::status(&state).unwrap());
    state
}

fn within<T>(mut condition: impl FnMut() -> Option<T>) -> T {
    let started = std::time::Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "not within a minute");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_death_on_the_way_up_is_reported_with_the_end_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let state = supervisor(
        folder.path(),
        vec![start("boom", "echo it broke >&2; exit 3"), wait_for("false", 600)],
    );
    let error = client::follow(&state, |_| {}).unwrap_err().to_string();
    assert!(error.contains("boom died (exit status: 3)"), "{error}");
    assert!(error.contains("it broke"), "{error}");
}

#[test]
fn a_step_that_never_succeeds_is_given_up_with_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let state = supervisor(folder.path(), vec![wait_for("echo not yet; false", 0)]);
    let error = client::follow(&state, |_| {}).unwrap_err().to_string();
    assert!(
        error.contains("waiting for it: not within 0 s") && error.contains("not yet"),
        "{error}"
    );
}

#[test]
fn a_later_death_shows_in_the_status_and_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = format!(
        "until [ -e {} ]; do sleep 0.01; done; echo last words; kill -9 $$",
        go.display()
    );
    let state = supervisor(folder.path(), vec![start("mortal", &script)]);
    assert!(client::follow(&state, |_| {}).unwrap().is_healthy());
    fs::write(go, "").unwrap();
    let report = within(|| client::status(&state).unwrap().filter(|report| !report.is_healthy()));
    let shown = report.to_string();
    assert!(
        shown.contains("mortal") && shown.contains("DIED: signal: 9") && shown.contains("last words"),
        "{shown}"
    );
    within(|| {
        fs::read_to_string(state.status())
            .ok()
            .filter(|text| text.contains("last words"))
    });
}

#[test]
fn a_requested_stop_is_no_death_and_can_start_again() {
    let folder = tempfile::tempdir().unwrap();
    let state = supervisor(folder.path(), vec![start("sleeper", "exec sleep 1000")]);
    client::follow(&state, |_| {}).unwrap();
    let running = || match client::status(&state).unwrap().unwrap().processes["sleeper"] {
        State::Running(pid) => Some(pid),
        _ => None,
    };
    let first = running().unwrap();
    client::stop(&state, "sleeper").unwrap();
    assert_eq!(running(), None);
    assert!(client::status(&state).unwrap().unwrap().is_healthy());
    client::start(&state, "sleeper").unwrap();
    assert_ne!(running().unwrap(), first);
    let twice = client::start(&state, "sleeper").unwrap_err().to_string();
    assert!(twice.contains("already running"), "{twice}");
    client::stop(&state, "sleeper").unwrap();
    let unknown = client::stop(&state, "nobody").unwrap_err().to_string();
    assert!(
        unknown.contains("no process \"nobody\"; there are sleeper"),
        "{unknown}"
    );
}

#[test]
fn no_supervisor_is_not_an_error_for_status() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(client::status(&StateDir::at(folder.path())).unwrap(), None);
}
