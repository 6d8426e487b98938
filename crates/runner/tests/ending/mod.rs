//! Ends of a trial from outside: signals, a time-out, processes that stay behind.

use std::fs;

use perfval_verdict::frame::Failure;

use crate::rig::Rig;

#[test]
fn sigterm_becomes_an_interrupt_and_a_cancelled_run() {
    // What AIPerf does under load: it ends with 0 and leaves an export, which is no result of a whole run.
    let rig = Rig::new(
        "trap 'cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json; exit 0' INT
         touch \"$DIR\"/up; while :; do sleep 0.05; done",
    );
    let running = rig.start(&[]);
    running.wait_for("up");
    running.signal("TERM");
    let ended = running.end();
    assert_eq!(ended.code, 143);
    assert_eq!(ended.failure(), Failure::Cancelled { signal: 15 });
    let export = rig.dir().join("profile_export_aiperf.json");
    assert!(export.exists(), "it was interrupted, not terminated");
    assert!(!ended.out.contains("PERFVAL-RESULT"));
}

#[test]
fn a_second_signal_does_not_interrupt_again() {
    // A second interrupt makes AIPerf kill itself.
    let rig = Rig::new(
        "trap 'echo once >> \"$DIR\"/interrupts' INT
         touch \"$DIR\"/up; while :; do sleep 0.05; done",
    );
    let rig = rig.option("--stop-grace", "2");
    let running = rig.start(&[]);
    running.wait_for("up");
    running.signal("TERM");
    running.wait_for("interrupts");
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.failure(), Failure::Cancelled { signal: 15 });
    assert_eq!(fs::read_to_string(rig.dir().join("interrupts")).unwrap(), "once\n");
}

#[test]
fn a_hanging_interrupt_ends_in_a_kill_of_all_processes() {
    // One helper in the group, one in a session of its own; both ignore what can be ignored.
    let rig = Rig::new(
        "trap '' INT TERM; sleep 3001 & echo $! > \"$DIR\"/helper; setsid sleep 3002 & echo $! > \"$DIR\"/escaped; touch \"$DIR\"/up; while :; do sleep 0.05; done",
    );
    let rig = rig.option("--stop-grace", "1");
    let running = rig.start(&[]);
    running.wait_for("up");
    running.signal("TERM");
    let ended = running.end();
    assert_eq!(ended.code, 143);
    assert!(ended.err.contains("killing it"));
    for helper in ["helper", "escaped"] {
        let pid = fs::read_to_string(rig.dir().join(helper)).unwrap();
        assert!(
            !fs::exists(format!("/proc/{}", pid.trim())).unwrap(),
            "{helper} outlived the runner"
        );
    }
}

#[test]
fn helpers_that_are_left_behind_are_killed() {
    let rig = Rig::new("cp \"$EXPORT\" \"$DIR\"/profile_export_aiperf.json; sleep 3003 & echo $! > \"$DIR\"/helper");
    let ended = rig.run(&[]);
    assert_eq!(ended.code, 0);
    let pid = fs::read_to_string(rig.dir().join("helper")).unwrap();
    assert!(!fs::exists(format!("/proc/{}", pid.trim())).unwrap());
}

#[test]
fn a_run_beyond_its_timeout_is_124() {
    let rig = Rig::new("trap 'exit 0' INT; while :; do sleep 0.05; done").option("--timeout", "1");
    let ended = rig.run(&[]);
    assert_eq!(ended.code, 124);
    assert_eq!(ended.failure(), Failure::TimedOut { seconds: 1 });
}
