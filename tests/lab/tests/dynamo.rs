//! The stand-in for Dynamo's operator on the real lab: both shapes serve a completion, and leave nothing when deleted.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Not the folder of a lab that may be in use.
const STATE: &str = "/var/lib/perfval-lab-dynamo";
const DEADLINE: Duration = Duration::from_mins(2);
const NAMESPACE: &str = "dynamo-stand-in";
const V1BETA1: &str = include_str!("dynamo/v1beta1.yaml");
const V1ALPHA1: &str = include_str!("dynamo/v1alpha1.yaml");
/// From a pod to the frontend's Service, by name.
const ASK: &str = r#"
import urllib.request as http
body = b'{"model": "lab/tiny-qwen3", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}'
url = "http://graph-frontend:8000/v1/chat/completions"
print(http.urlopen(http.Request(url, body, {"content-type": "application/json"}), timeout=30).read().decode())
"#;

#[test]
#[ignore = "needs root: just lab-test-parts"]
fn both_shapes_serve_and_leave_nothing() {
    succeed(&lab(&["down"], ""));
    let _down = DownAtEnd;
    succeed(&lab(&["up"], ""));
    succeed(&kubectl(&["create", "namespace", NAMESPACE], ""));

    serve_versions("v1alpha1");
    run_graph("v1alpha1", V1ALPHA1);
    serve_versions("both");
    run_graph("v1beta1", V1BETA1);
    // Written at the version that does not store.
    run_graph("v1alpha1", V1ALPHA1);
    refuses_what_the_schema_does_not_know();
    shows_faults();

    succeed(&kubectl(&["delete", "namespace", NAMESPACE], ""));
}

/// Takes the lab down, whatever happens in the test.
struct DownAtEnd;

impl Drop for DownAtEnd {
    fn drop(&mut self) {
        lab(&["down"], "");
    }
}

fn run_graph(version: &str, manifest: &str) {
    succeed(&kubectl(&["apply", "-f", "-"], manifest));
    wait_for_state(version, "successful");
    // Pods are Ready before the frontend has found the workers.
    until("a completion", || {
        let answer = kubectl(&["exec", "deployment/graph-worker", "--", "python3", "-c", ASK], "");
        stdout(&answer).contains(r#""completion_tokens":4"#)
    });
    let claims = succeed(&kubectl(
        &[
            "get",
            "resourceclaims",
            "-o",
            "jsonpath={.items[*].status.allocation.devices.results[*].device}",
        ],
        "",
    ));
    let mut gpus: Vec<_> = claims.split_whitespace().collect();
    gpus.sort_unstable();
    gpus.dedup();
    assert_eq!(gpus.len(), 2, "two workers, two GPUs: {claims}");

    succeed(&kubectl(&["delete", &resource(version), "graph"], ""));
    let kinds = "pods,deployments,services,roles,rolebindings,dynamoworkermetadatas,resourceclaims";
    until("nothing to be left", || {
        succeed(&kubectl(&["get", kinds, "-o", "name"], "")).is_empty()
    });
}

fn refuses_what_the_schema_does_not_know() {
    let cases = [
        (
            V1BETA1.replace("sharedMemorySize", "sharedMemory"),
            "components[1].sharedMemory",
        ),
        (V1BETA1.replace("image:", "picture:"), "containers[0].picture"),
        (
            V1BETA1.replace("name: main", "name: other"),
            "a container named main with an image is required",
        ),
        (
            V1BETA1.replace("  components:", "  services: {}\n  components:"),
            "services is a field of v1alpha1",
        ),
        (V1ALPHA1.replace("componentType", "type"), "services.frontend.type"),
        (V1ALPHA1.replace("vllm", "none"), "Unsupported value"),
    ];
    for (manifest, complaint) in cases {
        let answer = kubectl(
            &["apply", "--validate=strict", "--dry-run=server", "-f", "-"],
            &manifest,
        );
        let words = String::from_utf8_lossy(&answer.stderr).into_owned();
        assert!(
            !answer.status.success() && words.contains(complaint),
            "expected {complaint}: {words}"
        );
    }
}

/// No pod has to run for these: the frontend alone, with an image that is not there.
fn shows_faults() {
    let faults = [
        ("ready-below-spec", "successful"),
        ("failed-then-heals=3600", "failed"),
        ("never-ready", "pending"),
    ];
    let manifest = V1BETA1.replace("localhost/dynamo-lab:1.4.2", "localhost/absent:lab");
    succeed(&kubectl(&["apply", "-f", "-"], &manifest));
    for (fault, state) in faults {
        succeed(&lab(&["fault", "dgd", &format!("{fault}@{NAMESPACE}")], ""));
        wait_for_state("v1beta1", state);
    }
    succeed(&lab(&["fault", "clear"], ""));
    wait_for_state("v1beta1", "pending");
    succeed(&kubectl(&["delete", &resource("v1beta1"), "graph"], ""));
}

fn serve_versions(served: &str) {
    let lab_binary = env!("CARGO_BIN_EXE_lab");
    succeed(&lab(
        &[
            "exec",
            "--",
            lab_binary,
            "dynamo-operator",
            "--install-only",
            "--served",
            served,
        ],
        "",
    ));
    let version = if served == "both" { "v1beta1" } else { served };
    until("the version to be served", || {
        kubectl(&["get", &resource(version)], "").status.success()
    });
}

fn wait_for_state(version: &str, state: &str) {
    until(&format!("state {state}"), || {
        stdout(&kubectl(
            &["get", &resource(version), "graph", "-o", "jsonpath={.status.state}"],
            "",
        )) == state
    });
}

fn resource(version: &str) -> String {
    format!("dynamographdeployments.{version}.nvidia.com")
}

fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < DEADLINE, "waited {} s for {what}", DEADLINE.as_secs());
        thread::sleep(Duration::from_millis(500));
    }
}

fn kubectl(arguments: &[&str], input: &str) -> Output {
    lab(
        &[
            &[
                "exec",
                "--",
                "kubectl",
                "--namespace",
                NAMESPACE,
                "--request-timeout=60s",
            ],
            arguments,
        ]
        .concat(),
        input,
    )
}

fn lab(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(arguments)
        .env("PERFVAL_LAB_DIR", STATE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lab starts");
    // A command that does not read may be gone already.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("lab ends")
}

fn succeed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    stdout(output)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
