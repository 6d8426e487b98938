//! The lab itself, on the real thing. Needs root; `cargo build -p mock-nvml` first. The tests take turns.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Beside the lab somebody may be using.
const STATE: &str = "/var/lib/perfval-lab-test";
const DEADLINE: Duration = Duration::from_mins(2);
static TURN: Mutex<()> = Mutex::new(());

const POD: &str = r#"
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
struct Lab {
    _turn: MutexGuard<'static, ()>,
}

impl Lab {
    fn up(arguments: &[&str]) -> Self {
        let lab = Self {
            _turn: TURN.lock().unwrap_or_else(PoisonError::into_inner),
        };
        lab.ok(&["down"]);
        lab.ok(&[&["up"], arguments].concat());
        lab
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = run(arguments, "");
        assert!(output.status.success(), "lab {arguments:?}: {}", both(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.ok(&[&["exec", "--", "kubectl"], arguments].concat())
    }

    fn start_pod(&self) {
        self.kubectl(&["wait", "--for=create", "serviceaccount/default", "--timeout=60s"]);
        let applied = run(&["exec", "--", "kubectl", "apply", "-f", "-"], POD);
        assert!(applied.status.success(), "{}", both(&applied));
        self.kubectl(&["wait", "--for=condition=Ready", "pod/claimer", "--timeout=120s"]);
    }
}

fn run(arguments: &[&str], input: &str) -> Output {
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

fn both(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn within(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Processes whose command line or open folder is the lab's, numbered as outside.
fn lab_processes() -> Vec<i32> {
    let numbers = fs::read_dir("/proc")
        .expect("/proc is readable")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let command_line = |pid: i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_labs = |pid: &i32| String::from_utf8_lossy(&command_line(*pid)).contains(STATE);
    numbers.filter(is_labs).collect()
}

/// Every process in the lab's pid namespace: the lab's own, shims, containers.
fn namespace_members(namespace: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc")
        .expect("/proc is readable")
        .filter_map(|entry| Some(entry.ok()?.path()));
    processes
        .filter(|process| fs::read_link(process.join("ns/pid")).is_ok_and(|own| own == namespace))
        .collect()
}

fn namespace_of_the_lab() -> PathBuf {
    let pids = lab_processes();
    let own = fs::read_link("/proc/self/ns/pid").expect("this process has a namespace");
    pids.iter()
        .filter_map(|pid| fs::read_link(format!("/proc/{pid}/ns/pid")).ok())
        .find(|ns| *ns != own)
        .expect("the lab has a namespace of its own")
}

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string()).collect()
}

/// What a lab could leave on the machine, apart from processes.
fn traces() -> BTreeSet<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts are readable");
    let hierarchies = names("/sys/fs/cgroup");
    let cgroups = hierarchies
        .iter()
        .flat_map(|hierarchy| names(hierarchy))
        .chain(hierarchies.iter().cloned());
    let ours = cgroups.filter(|path| path.contains("perfval-lab-test") || path.contains("kubepods"));
    let sysctls = [
        "vm/overcommit_memory",
        "kernel/panic",
        "kernel/panic_on_oops",
        "net/ipv4/ip_forward",
    ]
    .map(|name| {
        format!(
            "{name} {}",
            fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default()
        )
    });
    let folders = [
        "/sys/class/net",
        "/run",
        "/run/netns",
        "/var/lib",
        "/var/log",
        "/etc/cdi",
        "/etc/cni",
        "/opt",
    ];
    mounts
        .lines()
        .map(str::to_owned)
        .chain(ours)
        .chain(sysctls)
        .chain(folders.into_iter().flat_map(names))
        .collect()
}

#[test]
fn a_pod_gets_its_gpu_and_down_leaves_nothing() {
    let before = traces();
    let lab = Lab::up(&["--gpus", "2"]);
    lab.start_pod();
    let devices = lab.kubectl(&["logs", "claimer"]);
    let gpus = devices
        .lines()
        .filter(|line| line.starts_with("nvidia") && line.ends_with(char::is_numeric))
        .count();
    assert_eq!(gpus, 1, "{devices}");
    let slices = lab.kubectl(&[
        "get",
        "resourceslices",
        "-o",
        "jsonpath={.items[*].spec.devices[*].name}",
    ]);
    assert_eq!(
        slices.split(' ').collect::<BTreeSet<_>>(),
        BTreeSet::from(["gpu-0", "gpu-1"])
    );

    let namespace = namespace_of_the_lab();
    assert!(
        namespace_members(&namespace).len() > 12,
        "the check itself must see processes"
    );
    assert!(!cgroup_folders().is_empty(), "the check itself must see cgroups");
    lab.ok(&["down"]);
    assert_eq!(namespace_members(&namespace), Vec::<PathBuf>::new());
    assert_eq!(cgroup_folders(), Vec::<String>::new());
    assert_eq!(traces().difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
}

fn cgroup_folders() -> Vec<String> {
    traces()
        .into_iter()
        .filter(|trace| trace.starts_with("/sys/fs/cgroup") && trace.ends_with("perfval-lab-test"))
        .collect()
}

#[test]
fn down_leaves_nothing_after_everything_was_killed() {
    let before = traces();
    let lab = Lab::up(&["--gpus", "1"]);
    lab.start_pod();
    let namespace = namespace_of_the_lab();
    for pid in lab_processes() {
        // Some end by themselves when the first is gone.
        Command::new("kill").args(["-9", &pid.to_string()]).output().unwrap();
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
    lab.ok(&["down"]);
    assert_eq!(traces().difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn a_killed_process_is_reported_with_the_end_of_its_log() {
    let lab = Lab::up(&["--control-plane"]);
    assert!(lab.ok(&["status"]).contains("up (control plane only"));
    assert_eq!(lab.ok(&["exec", "--", "kubectl", "get", "--raw=/readyz"]), "ok");
    lab.ok(&["exec", "--", "sh", "-c", "kill -9 $(pidof kube-scheduler)"]);
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
    lab.ok(&["fault", "start", "kube-scheduler"]);
    lab.ok(&["status"]);
}

#[test]
fn faults_on_pods_and_on_the_dra_plugin() {
    let lab = Lab::up(&["--gpus", "2"]);
    lab.start_pod();
    let states = || lab.ok(&["exec", "--", "sh", "-c", "ps -o stat= -C sh"]);
    assert!(!states().contains('T'), "{}", states());
    lab.ok(&["fault", "freeze", "default/claimer"]);
    within("its shell is stopped", || states().contains('T'));
    lab.ok(&["fault", "thaw", "default/claimer"]);
    within("its shell goes on", || !states().contains('T'));
    lab.ok(&["fault", "kill", "default/claimer"]);
    let restarts = "jsonpath={.status.containerStatuses[0].restartCount}";
    within("the kubelet restarts it", || {
        lab.kubectl(&["get", "pod", "claimer", "-o", restarts]) == "1"
    });
    let unknown = run(&["fault", "freeze", "default/claimer", "--container", "nobody"], "");
    assert!(!unknown.status.success());

    lab.ok(&["fault", "stale-dra"]);
    let second = POD.replace("name: claimer", "name: second");
    assert!(
        run(&["exec", "--", "kubectl", "apply", "-f", "-"], &second)
            .status
            .success()
    );
    let events = || lab.kubectl(&["get", "events", "-o", "jsonpath={.items[*].message}"]);
    within("the claim fails as on a real stale node", || {
        events().contains("invalid device, empty device edits")
    });
    lab.ok(&["fault", "clear"]);
    lab.kubectl(&["wait", "--for=condition=Ready", "pod/second", "--timeout=180s"]);

    lab.ok(&["fault", "slow-gpu", "1", "0.1"]);
    lab.ok(&["fault", "dgd", "never-ready"]);
    let faults = || {
        lab.kubectl(&[
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
    lab.ok(&["fault", "clear"]);
    assert_eq!(faults(), r#"{"dgd":"","gpuSpeed":""}"#);
}

#[test]
fn the_api_server_comes_back_with_everything_it_knew() {
    let lab = Lab::up(&["--control-plane"]);
    lab.kubectl(&["create", "namespace", "kept"]);
    lab.ok(&["fault", "restart-apiserver"]);
    lab.kubectl(&["get", "namespace", "kept"]);
    let log = fs::read_to_string(lab.ok(&["audit-log"]).trim()).unwrap();
    let wrote = log
        .lines()
        .any(|line| line.contains(r#""verb":"create""#) && line.contains(r#""name":"kept""#));
    assert!(wrote, "the audit log must tell who wrote what");
}
