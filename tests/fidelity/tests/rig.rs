//! The rig itself, where no GPU is: its own tests, and that the corpus reads what it writes.

use std::process::{Command, Output};

use perfval_fidelity::corpus::LabRun;
use perfval_fidelity::fault::Fault;
use perfval_fidelity::setting::Place;

fn python(arguments: &[&str]) -> Output {
    Command::new("python3")
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir("rig")
        .output()
        .expect("python3")
}

#[test]
fn the_rig_passes_its_own_tests() {
    let done = python(&["test_rig.py"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_corpus_reads_what_the_rig_writes() {
    let done = python(&["test_rig.py", "record"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let run: LabRun = serde_json::from_slice(&done.stdout).expect("a record");
    assert_eq!((run.place, run.fault), (Place::Silicon, Fault::SlowGpu));
    assert_eq!(run.what(), "foreign load on one GPU for 15 % of the time");
    assert_eq!(run.deployment.as_deref(), Some("20261122T120000Z"));
    assert!(run.recorded.is_some());
    let hardware = run.hardware.expect("the machine");
    assert_eq!(hardware.devices[1].uuid.as_deref(), Some("GPU-1"));
    assert_eq!(run.trials[0].victim.as_deref(), Some("worker-0"));
    assert_eq!(run.trials[0].before[0].devices, ["silicon/GPU-0"]);
}
