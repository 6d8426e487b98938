//! etcd, the API server, controllers, the scheduler and kwok: which process gets which flags, and when each is ready.

use std::fs;
use std::path::Path;

use crate::error::{Error, FileResult as _};
use crate::namespace::BRIDGE_ADDRESS;
use crate::paths::StateDir;
use crate::supervisor::{Invocation, PATIENCE_SECONDS, Process, Step};

/// Objects every lab begins with.
const OBJECTS: &[(&str, &str)] = &[
    (
        "deviceclass.yaml",
        include_str!("../manifests/cluster/deviceclass.yaml"),
    ),
    ("faults.yaml", include_str!("../manifests/cluster/faults.yaml")),
];
const KWOK_STAGES: &str = include_str!("../manifests/cluster/kwok-stages.yaml");
const AUDIT_POLICY: &str = include_str!("../manifests/cluster/audit-policy.yaml");
/// `DeviceTaintRule`s are off by default until Kubernetes 1.37; every other feature of DRA that sizing reads is on.
const FEATURE_GATES: &str = "--feature-gates=DRADeviceTaintRules=true";
/// The defaults (20 and 50 requests a second) are for clusters that others use too; here tests would wait for them.
const CLIENT_RATE: [&str; 2] = ["--kube-api-qps=2000", "--kube-api-burst=4000"];
/// The API server under the supervisor.
pub const API_SERVER_PROCESS: &str = "kube-apiserver";
/// etcd under the supervisor.
pub const ETCD_PROCESS: &str = "etcd";

/// Writes the files the processes read.
pub fn write_files(state: &StateDir) -> Result<(), Error> {
    let objects = state.join("objects");
    fs::create_dir_all(&objects).file("create", &objects)?;
    for (name, content) in OBJECTS {
        let file = objects.join(name);
        fs::write(&file, content).file("write", &file)?;
    }
    for (name, content) in [("audit-policy.yaml", AUDIT_POLICY), ("kwok-stages.yaml", KWOK_STAGES)] {
        let file = state.join(name);
        fs::write(&file, content).file("write", &file)?;
    }
    Ok(())
}

/// From nothing to an API server that schedules, and the stand-in for Dynamo's operator. `simulated`: kwok has the nodes.
pub fn steps(state: &StateDir, dynamo_version: &str, simulated: bool) -> Vec<Step> {
    vec![
        Step::Start(etcd(state)),
        Step::Start(api_server(state, simulated)),
        Step::Await {
            what: "waiting for the API server".to_owned(),
            command: kubectl(state, ["get", "--raw=/readyz"]),
            deadline_seconds: PATIENCE_SECONDS,
        },
        Step::Start(controller_manager(state, simulated)),
        Step::Start(scheduler(state)),
        Step::Start(dynamo_operator(state, dynamo_version)),
        Step::Run {
            what: "applying the lab's objects".to_owned(),
            command: kubectl(state, ["apply", "--server-side", "-f", &text(&state.join("objects"))]),
        },
    ]
}

/// kwok, which makes nodes ready that only exist in the API server, and their pods run, except those of validations.
pub fn simulated_nodes(state: &StateDir) -> Step {
    Step::Start(kwok(state))
}

/// What takes seconds by itself: waited for when everything has been started.
pub fn last_steps(state: &StateDir) -> Vec<Step> {
    let kind = "crd/dynamographdeployments.nvidia.com";
    vec![
        Step::Await {
            what: "waiting for the controllers".to_owned(),
            command: kubectl(state, ["get", "serviceaccount", "default", "--namespace=default"]),
            deadline_seconds: PATIENCE_SECONDS,
        },
        Step::Await {
            what: "waiting for DynamoGraphDeployment to be served".to_owned(),
            command: kubectl(state, ["wait", "--for=condition=Established", "--timeout=5s", kind]),
            deadline_seconds: PATIENCE_SECONDS,
        },
    ]
}

/// kubectl as the cluster's admin.
pub fn kubectl<A: Into<String>>(state: &StateDir, arguments: impl IntoIterator<Item = A>) -> Invocation {
    Invocation::new(state.bin().join("kubectl"), arguments).env("KUBECONFIG", text(&state.kubeconfig("admin")))
}

/// A process that is one of the built programs.
pub fn built_program(state: &StateDir, name: &str, arguments: Vec<String>) -> Process {
    Process {
        name: name.to_owned(),
        command: Invocation::new(state.bin().join(name), arguments),
    }
}

/// A path as an argument. The lab's own paths are text.
pub fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn etcd(state: &StateDir) -> Process {
    let arguments = [
        format!("--data-dir={}", text(&state.join("etcd"))),
        "--listen-client-urls=http://127.0.0.1:2379".to_owned(),
        "--advertise-client-urls=http://127.0.0.1:2379".to_owned(),
        "--listen-peer-urls=http://127.0.0.1:2380".to_owned(),
        // The data lives until `down`: nothing to protect from a power cut.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    built_program(state, ETCD_PROCESS, arguments.into())
}

fn api_server(state: &StateDir, simulated: bool) -> Process {
    let pki = |name: &str| text(&state.join("pki").join(name));
    let mut arguments = vec![
        "--etcd-servers=http://127.0.0.1:2379".to_owned(),
        "--secure-port=6443".to_owned(),
        format!("--advertise-address={BRIDGE_ADDRESS}"),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", pki("service-account.pub")),
        format!("--service-account-signing-key-file={}", pki("service-account.key")),
        format!("--token-auth-file={}", pki("tokens.csv")),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        FEATURE_GATES.to_owned(),
        "--runtime-config=resource.k8s.io/v1beta2/devicetaintrules=true".to_owned(),
        "--allow-privileged=true".to_owned(),
        // Else logs and exec look the node's name up in DNS and time out.
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--audit-policy-file={}", text(&state.join("audit-policy.yaml"))),
        format!("--audit-log-path={}", text(&state.audit_log())),
    ];
    if simulated {
        // An hour, as fast as tests play it.
        arguments.push("--event-ttl=10m".to_owned());
    }
    built_program(state, API_SERVER_PROCESS, arguments)
}

fn controller_manager(state: &StateDir, simulated: bool) -> Process {
    let mut arguments = vec![
        format!("--kubeconfig={}", text(&state.kubeconfig("controller-manager"))),
        format!(
            "--service-account-private-key-file={}",
            text(&state.join("pki/service-account.key"))
        ),
        format!("--root-ca-file={}", text(&state.join("pki/ca.crt"))),
        "--use-service-account-credentials".to_owned(),
        "--leader-elect=false".to_owned(),
        "--controllers=*,-nodeipam".to_owned(),
        FEATURE_GATES.to_owned(),
    ];
    arguments.extend(CLIENT_RATE.map(str::to_owned));
    if simulated {
        // Thousands of nodes that renew a lease every ten seconds take more than a core.
        arguments.push("--node-monitor-grace-period=24h".to_owned());
    }
    built_program(state, "kube-controller-manager", arguments)
}

fn scheduler(state: &StateDir) -> Process {
    let arguments = [
        format!("--kubeconfig={}", text(&state.kubeconfig("scheduler"))),
        "--leader-elect=false".to_owned(),
        FEATURE_GATES.to_owned(),
    ];
    let arguments = arguments.into_iter().chain(CLIENT_RATE.map(str::to_owned));
    built_program(state, "kube-scheduler", arguments.collect())
}

fn kwok(state: &StateDir) -> Process {
    let arguments = [
        format!("--kubeconfig={}", text(&state.kubeconfig("kwok"))),
        format!("--config={}", text(&state.join("kwok-stages.yaml"))),
        "--manage-all-nodes=false".to_owned(),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
        // It renews a lease in a quarter of this.
        "--node-lease-duration-seconds=3600".to_owned(),
        // Outside the pod and service networks.
        "--cidr=10.200.0.0/16".to_owned(),
    ];
    built_program(state, "kwok", arguments.into())
}

fn dynamo_operator(state: &StateDir, version: &str) -> Process {
    let command = Invocation::new(
        state.bin().join("lab"),
        ["dynamo-operator", "--dynamo-version", version],
    )
    .env("KUBECONFIG", text(&state.kubeconfig("lab")));
    Process {
        name: "dynamo-operator".to_owned(),
        command,
    }
}
