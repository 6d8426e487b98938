//! The scripts that prepare a lab: their own tests.

use std::process::Command;

#[test]
fn the_preparation_passes_its_own_tests() {
    let done = Command::new("python3")
        .arg("test_prepare.py")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir("prepare")
        .output()
        .expect("python3");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
