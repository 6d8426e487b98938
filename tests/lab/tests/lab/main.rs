//! The lab itself, on the real thing. Needs root; `cargo build -p mock-nvml` first. The tests take turns.

mod cluster;
mod machine;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use cluster::{Lab, POD, STATE, both, kubectl, ok, run, start_pod, within};
use machine::{cgroup_folders, namespace_members, namespace_of_the_lab, traces};

#[test]
#[ignore = "needs root: just lab-test"]
fn a_pod_gets_its_gpu_faults_hit_it_and_down_leaves_nothing() {
    let lab = Lab::up(&["--without-dynamo-image", "--gpus", "2"]);
    start_pod();
    // A container runs a moment before its output is in the log; `ls` prints this name last.
    let mut devices = String::new();
    within("it lists its devices", || {
        devices = kubectl(&["logs", "claimer"]);
        devices.lines().any(|line| line == "zero")
    });
    let gpus = devices
        .lines()
        .filter(|line| line.starts_with("nvidia") && line.ends_with(char::is_numeric))
        .count();
    assert_eq!(gpus, 1, "{devices}");
    let slices = kubectl(&[
        "get",
        "resourceslices",
        "-o",
        "jsonpath={.items[*].spec.devices[*].name}",
    ]);
    assert_eq!(
        slices.split(' ').collect::<BTreeSet<_>>(),
        BTreeSet::from(["gpu-0", "gpu-1"])
    );

    the_cached_images_stay_as_they_are();
    faults_hit_a_pod();
    faults_hit_the_dra_plugin();

    let namespace = namespace_of_the_lab();
    assert!(
        namespace_members(&namespace).len() > 12,
        "the check itself must see processes"
    );
    assert!(!cgroup_folders().is_empty(), "the check itself must see cgroups");
    ok(&["down"]);
    assert_eq!(namespace_members(&namespace), Vec::<PathBuf>::new());
    assert_eq!(cgroup_folders(), Vec::<String>::new());
    assert_eq!(
        traces().difference(&lab.before).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

/// Layers are shared with the cache by hard links; a database that containerd writes must not be.
fn the_cached_images_stay_as_they_are() {
    let links = |kind: &str| {
        let store = format!("{STATE}/containerd");
        let found = Command::new("find")
            .args([&store, "-name", kind, "-type", "f", "-printf", "%n "])
            .output();
        String::from_utf8(found.expect("find runs").stdout).expect("numbers")
    };
    let databases = links("*.db");
    assert!(
        databases.split_whitespace().count() >= 2 && databases.split_whitespace().all(|n| n == "1"),
        "{databases}"
    );
    // Another lab of this machine has a link of its own.
    let layer = links("busybox");
    let links = layer.trim().parse::<u32>();
    assert!(
        links.as_ref().is_ok_and(|links| *links >= 2),
        "the layers are not copies: {links:?}"
    );
}

fn faults_hit_a_pod() {
    let states = || ok(&["exec", "--", "sh", "-c", "ps -o stat= -C sh"]);
    assert!(!states().contains('T'), "{}", states());
    ok(&["fault", "freeze", "default/claimer"]);
    within("its shell is stopped", || states().contains('T'));
    ok(&["fault", "thaw", "default/claimer"]);
    within("its shell goes on", || !states().contains('T'));
    ok(&["fault", "kill", "default/claimer"]);
    let restarts = "jsonpath={.status.containerStatuses[0].restartCount}";
    within("the kubelet restarts it", || {
        kubectl(&["get", "pod", "claimer", "-o", restarts]) == "1"
    });
    let unknown = run(&["fault", "freeze", "default/claimer", "--container", "nobody"], "");
    assert!(!unknown.status.success());
}

fn faults_hit_the_dra_plugin() {
    ok(&["fault", "stale-dra"]);
    let second = POD.replace("name: claimer", "name: second");
    assert!(
        run(&["exec", "--", "kubectl", "apply", "-f", "-"], &second)
            .status
            .success()
    );
    let of_second = "--field-selector=involvedObject.name=second";
    let events = || kubectl(&["get", "events", of_second, "-o", "jsonpath={.items[*].message}"]);
    within("the claim fails as on a real stale node", || {
        events().contains("invalid device, empty device edits")
    });
    let seen = events();
    assert!(
        !seen.contains("code = Unavailable") && !seen.contains("is not registered"),
        "the kubelet asked before it was connected: {seen}"
    );
    ok(&["fault", "clear"]);
    // The kubelet tries a failed claim again after a minute or more; a new pod is as good.
    kubectl(&["delete", "pod", "second", "--timeout=120s"]);
    assert!(
        run(&["exec", "--", "kubectl", "apply", "-f", "-"], &second)
            .status
            .success()
    );
    kubectl(&["wait", "--for=condition=Ready", "pod/second", "--timeout=180s"]);

    ok(&["fault", "slow-gpu", "1", "0.1"]);
    ok(&["fault", "dgd", "never-ready"]);
    let faults = || {
        kubectl(&[
            "get",
            "configmap",
            "lab-faults",
            "-n",
            "kube-system",
            "-o",
            "jsonpath={.data}",
        ])
    };
    assert_eq!(faults(), r#"{"dgd":"never-ready","gpuSpeed":"1=0.1"}"#);
    ok(&["fault", "clear"]);
    assert_eq!(faults(), r#"{"dgd":"","gpuSpeed":""}"#);
}

#[test]
#[ignore = "needs root: just lab-test"]
fn down_leaves_nothing_after_everything_was_killed() {
    let lab = Lab::up(&["--without-dynamo-image", "--gpus", "1"]);
    start_pod();
    let namespace = namespace_of_the_lab();
    for process in namespace_members(&namespace) {
        // Some end by themselves when the first is gone.
        let pid = process.file_name().unwrap();
        Command::new("kill").arg("-9").arg(pid).output().unwrap();
    }
    within("nothing survives the supervisor", || {
        namespace_members(&namespace).is_empty()
    });
    let status = run(&["status"], "");
    assert!(
        !status.status.success() && both(&status).contains("the supervisor is gone"),
        "{}",
        both(&status)
    );
    ok(&["down"]);
    assert_eq!(
        traces().difference(&lab.before).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

#[test]
#[ignore = "needs root: just lab-test"]
fn the_control_plane_reports_a_death_and_forgets_nothing() {
    let _lab = Lab::up(&["--control-plane"]);
    assert!(ok(&["status"]).contains("up (control plane only"));
    assert_eq!(ok(&["exec", "--", "kubectl", "get", "--raw=/readyz"]), "ok");
    ok(&["exec", "--", "sh", "-c", "kill -9 $(pidof kube-scheduler)"]);
    let mut said = String::new();
    within("the death is noticed", || {
        let status = run(&["status"], "");
        said = both(&status);
        !status.status.success()
    });
    assert!(
        said.contains("kube-scheduler") && said.contains("DIED: signal: 9"),
        "{said}"
    );
    assert!(
        said.contains("scheduler") && said.contains("\n    I"),
        "no log in {said}"
    );
    ok(&["fault", "start", "kube-scheduler"]);
    ok(&["status"]);

    kubectl(&["create", "namespace", "kept"]);
    ok(&["fault", "restart-apiserver"]);
    kubectl(&["get", "namespace", "kept"]);
    let log = fs::read_to_string(ok(&["audit-log"]).trim()).unwrap();
    let wrote = log
        .lines()
        .any(|line| line.contains(r#""verb":"create""#) && line.contains(r#""name":"kept""#));
    assert!(wrote, "the audit log must show who wrote what");
}
