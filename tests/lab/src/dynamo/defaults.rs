//! What Dynamo's operator puts into the container `main`: command, ports, probes and environment of a component's kind.
//!
//! Values are those of `deploy/operator/internal/dynamo/component_{frontend,worker}.go`. Two are the lab's own: start-up and readiness
//! are asked for every 2 s instead of every 10 s, and the planes are named because no NATS runs here.

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, ObjectFieldSelector, Probe,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::crd::older_than;
use super::shape::{Component, Graph, MAIN};

/// Port and port name of the frontend's HTTP API.
pub const HTTP: (i32, &str) = (8000, "http");
/// Port and port name of a worker's health and metrics.
pub const SYSTEM: (i32, &str) = (9090, "system");
/// The lab's own variable that says to `lab-worker` which GPU is slow.
pub const GPU_SPEED: &str = "LAB_GPU_SPEED";

const PROBE_PERIOD_SECONDS: i32 = 2;

/// What changed with Dynamo 1.5: missed answers after which the kubelet restarts a worker, and canaries.
pub fn of_release(dynamo_version: &str) -> (i32, bool) {
    if older_than(dynamo_version, (1, 5)) {
        (1, false)
    } else {
        (3, true)
    }
}

/// What the lab changes about workers.
#[derive(Clone, Copy, Debug)]
pub struct Workers<'a> {
    /// Speeds of single GPUs.
    pub gpu_speed: Option<&'a str>,
    /// Missed answers after which one is restarted.
    pub liveness_failures: i32,
    /// Whether an idle one is asked for a small completion of its own.
    pub canaries: bool,
    /// Seconds that a pod has to end.
    pub grace_seconds: i64,
}

/// The container as the operator would make it if the user said nothing.
pub fn container(graph: &Graph, component: &Component, worker_hash: &str, workers: Workers<'_>) -> Container {
    let mut container = Container {
        name: MAIN.to_owned(),
        env: Some(common_env(graph, component)),
        ..Default::default()
    };
    let env = container.env.get_or_insert_default();
    if component.is_frontend() {
        env.extend([
            var("DYNAMO_PORT", HTTP.0.to_string()),
            var("DYN_HTTP_PORT", HTTP.0.to_string()),
            var("DYN_NAMESPACE_PREFIX", graph.dynamo_namespace()),
        ]);
        container.command = Some(vec!["python3".to_owned()]);
        container.args = Some(vec!["-m".to_owned(), "dynamo.frontend".to_owned()]);
        container.ports = Some(vec![port(HTTP)]);
        container.startup_probe = Some(probe("/live", HTTP, PROBE_PERIOD_SECONDS, 5, 150));
        container.readiness_probe = Some(probe("/health", HTTP, PROBE_PERIOD_SECONDS, 3, 3));
        container.liveness_probe = Some(probe("/live", HTTP, 10, 1, 3));
    } else if component.is_worker() {
        env.extend([
            var("DYN_SYSTEM_ENABLED", "true"),
            var("DYN_SYSTEM_PORT", SYSTEM.0.to_string()),
            var("DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS", r#"["generate"]"#),
            var("DYN_HEALTH_CHECK_ENABLED", workers.canaries.to_string()),
            var("DYN_FORWARDPASS_METRIC_PORT", "20380"),
            var("DYN_NAMESPACE_WORKER_SUFFIX", worker_hash),
        ]);
        env.extend(workers.gpu_speed.map(|speed| var(GPU_SPEED, speed)));
        container.ports = Some(vec![port(SYSTEM), port((19090, "nixl"))]);
        container.startup_probe = Some(probe("/live", SYSTEM, PROBE_PERIOD_SECONDS, 5, 3600));
        // Twice: the mocker of 1.4.2 is healthy 0.6 s before its engine runs, and a request in between hangs it for ever
        // (seen once). The real operator's first look comes late enough.
        container.readiness_probe = Some(Probe {
            success_threshold: Some(2),
            ..probe("/health", SYSTEM, PROBE_PERIOD_SECONDS, 4, 3)
        });
        container.liveness_probe = Some(probe("/live", SYSTEM, 5, 4, workers.liveness_failures));
    }
    container
}

/// Lays the user's container over the defaults: what it says replaces a list whole, variables go by name.
pub fn merge(user: Container, defaults: Container, graph_env: &[EnvVar]) -> Container {
    let user_env = [graph_env, user.env.as_deref().unwrap_or_default()].concat();
    Container {
        name: defaults.name,
        command: user.command.or(defaults.command),
        args: user.args.or(defaults.args),
        ports: user.ports.or(defaults.ports),
        startup_probe: user.startup_probe.or(defaults.startup_probe),
        readiness_probe: user.readiness_probe.or(defaults.readiness_probe),
        liveness_probe: user.liveness_probe.or(defaults.liveness_probe),
        env: Some(override_by_name(defaults.env.unwrap_or_default(), user_env)),
        ..user
    }
}

fn override_by_name(mut env: Vec<EnvVar>, user: Vec<EnvVar>) -> Vec<EnvVar> {
    for var in user {
        match env.iter_mut().find(|known| known.name == var.name) {
            Some(known) => *known = var,
            None => env.push(var),
        }
    }
    env
}

fn common_env(graph: &Graph, component: &Component) -> Vec<EnvVar> {
    vec![
        var("DYN_NAMESPACE", graph.dynamo_namespace()),
        var("DYN_COMPONENT", component.name.as_str()),
        var("DYN_DISCOVERY_BACKEND", "kubernetes"),
        var("DYN_REQUEST_PLANE", "tcp"),
        var("DYN_EVENT_PLANE", "zmq"),
        var("DYN_PARENT_DGD_K8S_NAME", graph.name.as_str()),
        var("DYN_PARENT_DGD_K8S_NAMESPACE", graph.namespace.as_str()),
        field("POD_NAME", "metadata.name"),
        field("POD_NAMESPACE", "metadata.namespace"),
        field("POD_UID", "metadata.uid"),
    ]
}

fn var(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value.into()),
        ..EnvVar::default()
    }
}

fn field(name: &str, path: &str) -> EnvVar {
    let field_ref = Some(ObjectFieldSelector {
        field_path: path.to_owned(),
        ..ObjectFieldSelector::default()
    });
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref,
            ..Default::default()
        }),
        value: None,
    }
}

fn port((number, name): (i32, &str)) -> ContainerPort {
    ContainerPort {
        container_port: number,
        name: Some(name.to_owned()),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

fn probe(path: &str, port: (i32, &str), period: i32, timeout: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(port.1.to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        timeout_seconds: Some(timeout),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}
