//! One lab for one test.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::machine::traces;

/// Not the folder of a lab that may be in use.
pub const STATE: &str = "/var/lib/perfval-lab-test";
const DEADLINE: Duration = Duration::from_mins(2);
static TURN: Mutex<()> = Mutex::new(());

/// A pod with one GPU.
pub const POD: &str = r#"
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: claimer}
spec:
  terminationGracePeriodSeconds: 1
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers:
    - name: main
      image: localhost/busybox:lab
      command: [sh, -c, "ls /dev; while true; do sleep 0.1; done"]
      resources: {claims: [{name: gpu}]}
"#;

/// One lab at a time; whatever happens in the test, it is taken down.
pub struct Lab {
    _turn: MutexGuard<'static, ()>,
    /// The machine before it.
    pub before: BTreeSet<String>,
}

impl Lab {
    /// Brings a new lab up when it is this test's turn.
    pub fn up(arguments: &[&str]) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        ok(&["down"]);
        let lab = Self {
            _turn: turn,
            before: traces(),
        };
        ok(&[&["up"], arguments].concat());
        lab
    }
}

/// A `lab` command that must succeed; its output.
pub fn ok(arguments: &[&str]) -> String {
    let output = run(arguments, "");
    assert!(output.status.success(), "lab {arguments:?}: {}", both(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// kubectl inside the lab; must succeed.
pub fn kubectl(arguments: &[&str]) -> String {
    ok(&[&["exec", "--", "kubectl"], arguments].concat())
}

/// Starts [`POD`] and waits until it is ready.
pub fn start_pod() {
    kubectl(&["wait", "--for=create", "serviceaccount/default", "--timeout=60s"]);
    let applied = run(&["exec", "--", "kubectl", "apply", "-f", "-"], POD);
    assert!(applied.status.success(), "{}", both(&applied));
    kubectl(&["wait", "--for=condition=Ready", "pod/claimer", "--timeout=120s"]);
}

/// A `lab` command.
pub fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(arguments)
        .env("PERFVAL_LAB_DIR", STATE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the lab's program starts");
    // A command that reads nothing closes the pipe.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    child.wait_with_output().expect("the lab's program ends")
}

impl Drop for Lab {
    fn drop(&mut self) {
        run(&["down"], "");
    }
}

/// All that a command said.
pub fn both(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Waits for a condition.
pub fn within(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}
