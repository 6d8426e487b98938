//! Pods of our own: the load generator and the filler of the model cache.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::PodSpec;
use perfval_run::{Run, build, dynamo};
use perfval_verdict::aiperf::Measure;
use serde_json::{Value, json};

use super::{elaborate, own_command, settings, typical};

#[test]
fn nothing_of_the_spec_is_interpreted() {
    let object = elaborate();
    let settings = settings();
    let run = Run::new(&object, &settings);
    let deployment = json!(dynamo::deployment(&run));
    let worker = &deployment["spec"]["services"]["worker"]["extraPodSpec"]["mainContainer"];
    let script = worker["command"][2].as_str().unwrap();
    assert!(!script.contains("Llama") && !script.contains("rm -rf"), "{script}");
    let args: Vec<&str> = worker["args"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        args.contains(&"; rm -rf / $(HF_TOKEN) `id`"),
        "one argument stays one argument: {args:?}"
    );

    let container = build::trial_job(&run, 1)
        .spec
        .unwrap()
        .template
        .spec
        .unwrap()
        .containers
        .remove(0);
    let args = container.args.unwrap();
    assert!(
        args.contains(&"stop:$$(HF_TOKEN) | sh".to_owned()),
        "the kubelet expands $(…): {args:?}"
    );
    assert!(
        args.contains(&"time_to_first_token:1000 request_latency:5000".to_owned()),
        "{args:?}"
    );
    assert!(!args.contains(&"--warmup-request-count".to_owned()), "AIPerf refuses 0");
    let command = container.command.unwrap();
    assert_eq!(command, ["/perfval/perfval-runner"]);
}

#[test]
fn pods_of_our_own_are_restricted() {
    let object = typical();
    let settings = settings();
    let run = Run::new(&object, &settings);
    for job in [build::trial_job(&run, 1), build::cache_job(&run)] {
        let spec = job.spec.unwrap();
        assert_eq!(spec.backoff_limit, Some(0));
        assert!(spec.active_deadline_seconds.is_some_and(|seconds| seconds > 0));
        let pod: PodSpec = spec.template.spec.unwrap();
        assert_eq!(pod.automount_service_account_token, Some(false));
        assert_eq!(pod.restart_policy.as_deref(), Some("Never"));
        let security = pod.security_context.unwrap();
        assert_eq!(security.run_as_non_root, Some(true));
        assert!(security.run_as_user.is_some_and(|user| user > 0));
        assert_eq!(security.seccomp_profile.unwrap().type_, "RuntimeDefault");
        for container in pod.containers.iter().chain(pod.init_containers.iter().flatten()) {
            let security = container.security_context.as_ref().unwrap();
            assert_eq!(security.allow_privilege_escalation, Some(false), "{}", container.name);
            assert_eq!(security.read_only_root_filesystem, Some(true), "{}", container.name);
            assert_eq!(
                security.capabilities.as_ref().unwrap().drop,
                Some(vec!["ALL".to_owned()])
            );
            let volumes: BTreeSet<_> = pod.volumes.iter().flatten().map(|volume| &volume.name).collect();
            for mount in container.volume_mounts.iter().flatten() {
                assert!(
                    volumes.contains(&mount.name),
                    "{} mounts {}",
                    container.name,
                    mount.name
                );
            }
        }
    }
}

#[test]
fn pods_that_read_the_model_cache_run_where_its_volume_is() {
    let mut object = own_command();
    object.spec.benchmark.placement = perfval_api::PodPlacement::Anywhere;
    assert!(perfval_sizing::trial_is_pinned(&object.spec) && perfval_sizing::frontend_is_pinned(&object.spec));
    object.spec.model.cache = None;
    assert!(!perfval_sizing::trial_is_pinned(&object.spec));
    let settings = settings();
    let job = build::trial_job(&Run::new(&object, &settings), 1);
    assert_eq!(job.spec.unwrap().template.spec.unwrap().affinity, None);
}

#[test]
fn the_runner_understands_what_is_gated() {
    let object = typical();
    let settings = settings();
    let job = build::trial_job(&Run::new(&object, &settings), 1);
    let args = job
        .spec
        .unwrap()
        .template
        .spec
        .unwrap()
        .containers
        .remove(0)
        .args
        .unwrap();
    let gated: Vec<Measure> = args
        .windows(2)
        .filter(|pair| pair[0] == "--gated")
        .map(|pair| pair[1].parse().unwrap())
        .collect();
    assert_eq!(gated.len(), 2, "each measure once: {args:?}");
    for gate in &object.spec.gates {
        assert!(
            gated
                .iter()
                .any(|measure| (measure.metric, measure.statistic) == (gate.metric, gate.statistic))
        );
    }
}
