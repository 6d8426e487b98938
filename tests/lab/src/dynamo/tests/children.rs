//! Deployments and Services.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;

use super::super::shape::{Graph, Shape};
use super::super::{children, deployment, service};
use super::{component, graph, made, v1alpha1, v1beta1};

fn pod(deployment: &Deployment) -> &PodSpec {
    deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap()
}

fn env<'a>(container: &'a Container, name: &str) -> Option<&'a str> {
    container
        .env
        .iter()
        .flatten()
        .find(|var| var.name == name)?
        .value
        .as_deref()
}

#[test]
fn both_shapes_become_the_same_pods() {
    for (graph, shape) in [(v1beta1(), Shape::V1beta1), (v1alpha1(), Shape::V1alpha1)] {
        assert_eq!(graph.shape, shape);
        let worker = made(&graph, "worker");
        assert_eq!(worker.metadata.name.as_deref(), Some("pv-3f9a1c07-worker"));
        assert_eq!(worker.spec.as_ref().unwrap().replicas, Some(8));
        let pod = pod(&worker);
        let claim = &pod.resource_claims.as_ref().unwrap()[0];
        assert_eq!(claim.resource_claim_template_name.as_deref(), Some("pv-3f9a1c07"));
        let main = &pod.containers[0];
        assert_eq!((main.name.as_str(), main.image.as_deref()), ("main", Some("d:1")));
        assert_eq!(main.resources.as_ref().unwrap().claims.as_ref().unwrap()[0].name, "gpu");
        let shm = pod
            .volumes
            .as_ref()
            .unwrap()
            .iter()
            .find_map(|volume| volume.empty_dir.as_ref())
            .unwrap();
        assert_eq!(shm.size_limit.as_ref().unwrap().0, "2Gi", "{shape:?}");
        assert_eq!(
            pod.service_account_name.as_deref(),
            Some("pv-3f9a1c07-k8s-service-discovery")
        );
        assert_eq!(pod.termination_grace_period_seconds, Some(60));
    }
}

#[test]
fn a_claim_of_the_old_shape_is_mounted() {
    let worker = made(&v1alpha1(), "worker");
    let mounts = pod(&worker).containers[0].volume_mounts.as_ref().unwrap();
    assert_eq!(
        (mounts[0].name.as_str(), mounts[0].mount_path.as_str()),
        ("weights", "/model-cache")
    );
    let claim = pod(&worker).volumes.as_ref().unwrap()[0]
        .persistent_volume_claim
        .as_ref()
        .unwrap();
    assert_eq!(claim.claim_name, "weights");
}

#[test]
fn pods_carry_the_labels_that_clients_select_by() {
    for graph in [v1beta1(), v1alpha1()] {
        let worker = made(&graph, "worker");
        let metadata = worker.spec.as_ref().unwrap().template.metadata.clone().unwrap();
        let labels = metadata.labels.unwrap();
        for (key, value) in [
            ("nvidia.com/dynamo-graph-deployment-name", "pv-3f9a1c07"),
            ("nvidia.com/dynamo-component-type", "worker"),
            ("nvidia.com/dynamo-component", "worker"),
            ("nvidia.com/dynamo-namespace", "perf-pv-3f9a1c07"),
            ("nvidia.com/selector", "pv-3f9a1c07-worker"),
            ("nvidia.com/dynamo-discovery-backend", "kubernetes"),
            ("nvidia.com/dynamo-discovery-enabled", "true"),
            ("perfvalidation.dev/run", "r"),
            ("mine", "yes"),
        ] {
            assert_eq!(labels.get(key).map(String::as_str), Some(value), "{key}");
        }
        assert_eq!(labels["nvidia.com/dynamo-worker-hash"].len(), 8);
        assert_eq!(metadata.annotations.unwrap()["a"], "b");
    }
}

#[test]
fn main_gets_defaults_and_the_user_wins() {
    for graph in [v1beta1(), v1alpha1()] {
        let frontend = made(&graph, "Frontend");
        assert_eq!(frontend.metadata.name.as_deref(), Some("pv-3f9a1c07-frontend"));
        let [main, sidecar] = pod(&frontend).containers.as_slice() else {
            panic!("two containers")
        };
        assert_eq!(env(main, "DYN_HTTP_PORT"), Some("8001"), "the user's variable wins");
        assert_eq!(env(main, "DYN_NAMESPACE"), Some("perf-pv-3f9a1c07"));
        assert_eq!(env(main, "EVERYWHERE"), Some("1"));
        assert_eq!(env(main, "LAB_GPU_SPEED"), None, "frontends hold no GPU");
        assert_eq!(main.ports.as_ref().unwrap()[0].container_port, 8000);
        assert_eq!(
            (sidecar.name.as_str(), &sidecar.env, &sidecar.readiness_probe),
            ("sidecar", &None, &None)
        );

        let worker = made(&graph, "worker");
        let main = &pod(&worker).containers[0];
        assert_eq!(env(main, "DYN_SYSTEM_PORT"), Some("9090"));
        assert_eq!(
            env(main, "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS"),
            Some(r#"["generate"]"#)
        );
        assert_eq!(env(main, "LAB_GPU_SPEED"), Some("3=0.1"));
        assert_eq!(deployment::gpu_speed(&worker), Some("3=0.1"));
        let live = main.liveness_probe.as_ref().unwrap();
        assert_eq!(live.failure_threshold, Some(3));
        let get = main.readiness_probe.as_ref().unwrap().http_get.as_ref().unwrap();
        assert_eq!(get.path.as_deref(), Some("/health"));
    }
}

#[test]
fn command_and_args_replace_the_defaults_each_as_a_whole() {
    let cases = [
        (json!({}), vec!["python3", "-m", "dynamo.frontend"]),
        (
            json!({"args": ["--router-mode", "kv"]}),
            vec!["python3", "--router-mode", "kv"],
        ),
        (
            json!({"command": ["python3", "-m", "dynamo.frontend"]}),
            vec!["python3", "-m", "dynamo.frontend", "-m", "dynamo.frontend"],
        ),
        (json!({"command": ["x"], "args": ["y"]}), vec!["x", "y"]),
    ];
    for (words, runs) in cases {
        let mut main = json!({"name": "main", "image": "d:1"});
        main.as_object_mut().unwrap().extend(words.as_object().unwrap().clone());
        let component =
            json!({"name": "frontend", "type": "frontend", "podTemplate": {"spec": {"containers": [main]}}});
        let frontend = made(&graph("v1beta1", &json!({"components": [component]})), "frontend");
        let main = &pod(&frontend).containers[0];
        assert_eq!(
            [main.command.clone().unwrap(), main.args.clone().unwrap()].concat(),
            runs
        );
    }
}

#[test]
fn shared_memory_is_8gi_by_default() {
    for (said, size) in [
        (json!(null), Some("8Gi")),
        (json!("1Gi"), Some("1Gi")),
        (json!("0"), None),
        (json!(0), None),
    ] {
        let spec = json!({"components": [{"name": "worker", "type": "worker", "sharedMemorySize": said}]});
        let graph = graph("v1beta1", &spec);
        let worker = made(&graph, "worker");
        let shm = pod(&worker)
            .volumes
            .iter()
            .flatten()
            .find_map(|volume| volume.empty_dir.as_ref());
        assert_eq!(shm.map(|shm| shm.size_limit.as_ref().unwrap().0.as_str()), size);
    }
}

#[test]
fn workers_are_behind_a_headless_service_and_the_frontend_has_an_address() {
    let graph = v1beta1();
    for (name, cluster_ip, port) in [
        ("Frontend", None, (8000, "http")),
        ("worker", Some("None"), (9090, "system")),
    ] {
        let service = service::build(&graph, component(&graph, name), OwnerReference::default());
        assert_eq!(
            service.metadata.labels.unwrap()["nvidia.com/dynamo-discovery-enabled"],
            "true"
        );
        let spec = service.spec.unwrap();
        assert_eq!(spec.cluster_ip.as_deref(), cluster_ip);
        let ports = spec.ports.unwrap();
        assert_eq!((ports[0].port, ports[0].name.as_deref().unwrap()), port);
    }
}

#[test]
fn a_change_of_the_workers_changes_their_hash_and_nothing_else_does() {
    let hash = |graph: &Graph| {
        let labels = made(graph, "worker")
            .spec
            .unwrap()
            .template
            .metadata
            .unwrap()
            .labels
            .unwrap();
        labels["nvidia.com/dynamo-worker-hash"].clone()
    };
    let before = v1beta1();
    let mut scaled = v1beta1();
    scaled.components[1].replicas = 2;
    let mut changed = v1beta1();
    changed.components[1].pod.containers[0].image = Some("d:2".to_owned());
    assert_eq!(hash(&before), hash(&scaled));
    assert_ne!(hash(&before), hash(&changed));
}

#[test]
fn children_are_written_again_once_they_or_their_deployments_differ() {
    let fingerprint = |children: &str, deployments: &[(&str, i64)]| {
        let deployment = |(name, generation): &(&str, i64)| {
            let mut deployment = Deployment::default();
            deployment.metadata.generation = Some(*generation);
            ((*name).to_owned(), deployment)
        };
        children::fingerprint(&children, &deployments.iter().map(deployment).collect())
    };
    let written = fingerprint("a", &[("frontend", 1), ("worker", 1)]);
    assert_eq!(fingerprint("a", &[("frontend", 1), ("worker", 1)]), written);
    assert_ne!(fingerprint("b", &[("frontend", 1), ("worker", 1)]), written);
    assert_ne!(fingerprint("a", &[("frontend", 1), ("worker", 2)]), written);
    assert_ne!(fingerprint("a", &[("frontend", 1)]), written);
}
