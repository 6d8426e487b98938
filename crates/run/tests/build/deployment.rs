//! The DynamoGraphDeployment, in both API shapes.

use std::collections::BTreeMap;

use perfval_api::{Allocation, PerfValidation};
use perfval_run::{Run, build, dynamo};
use serde_json::{Value, json};

use super::{elaborate, object, own_command, settings, typical};

#[test]
fn pods_of_both_api_shapes_are_found_by_the_workers_service() {
    for (object, labels_of_worker) in [
        (typical(), "/spec/components/1/podTemplate/metadata/labels"),
        (elaborate(), "/spec/services/worker/extraPodMetadata/labels"),
    ] {
        let run = Run::new(&object, settings());
        let deployment = json!(dynamo::deployment(&run));
        let labels = deployment.pointer(labels_of_worker).unwrap();
        let selector = build::workers_service(&run).spec.unwrap().selector.unwrap();
        for (key, value) in selector {
            assert_eq!(labels[&key], value, "{key}");
        }
        let frontend = labels_of_worker.replace("/1/", "/0/").replace("worker", "frontend");
        assert_eq!(
            deployment.pointer(&frontend).unwrap()["perfvalidation.dev/component"],
            "frontend"
        );
    }
}

#[test]
fn the_wrapper_passes_every_argument_on_and_keeps_the_image_s_own_path_first() {
    let mut object = typical();
    object.spec.dynamo_mut().worker.args = vec!["a b".into(), "$(id)".into(), "'\"".into()];
    let deployment = json!(dynamo::deployment(&Run::new(&object, settings())));
    let main = &deployment["spec"]["components"][1]["podTemplate"]["spec"]["containers"][0];
    let words = |list: &str| -> Vec<String> { serde_json::from_value(main[list].clone()).unwrap() };
    let (command, args) = (words("command"), words("args"));
    // In place of the engine: a program that shows what it was given.
    let engine = r#"printf '%s\n' "$LD_LIBRARY_PATH" "$@""#;
    let output = std::process::Command::new(&command[0])
        .args(&command[1..])
        .args(["/bin/sh", "-c", engine, "engine"])
        .args(&args[3..])
        .env("LD_LIBRARY_PATH", "/opt/own")
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        shown,
        "/opt/own:/usr/local/nvidia/lib64\n--model\nQwen/Qwen3-8B\na b\n$(id)\n'\"\n"
    );
}

#[test]
fn the_router_is_named_once_and_only_to_the_frontend() {
    let object = elaborate();
    let deployment = json!(dynamo::deployment(&Run::new(&object, settings())));
    let env_of = |component: &str| -> BTreeMap<String, Vec<Value>> {
        let pod = &deployment["spec"]["services"][component]["extraPodSpec"]["mainContainer"];
        let mut env = BTreeMap::<String, Vec<Value>>::new();
        for var in pod["env"].as_array().unwrap() {
            env.entry(var["name"].as_str().unwrap().to_owned())
                .or_default()
                .push(var["value"].clone());
        }
        env
    };
    let frontend = env_of("frontend");
    assert_eq!(frontend["DYN_ROUTER_MODE"], [json!("kv")]);
    assert_eq!(frontend["DYN_ROUTER_TEMPERATURE"], [json!("0.5")]);
    let worker = env_of("worker");
    assert!(worker.keys().all(|name| !name.starts_with("DYN_ROUTER_")), "{worker:?}");
    for env in [frontend, worker] {
        assert_eq!(env["HF_HOME"], [json!("/model-cache")]);
        assert_eq!(env["NCCL_DEBUG"], [json!("WARN")]);
        assert!(!env.contains_key("HF_TOKEN"), "only the cache Job downloads");
    }
    let args = &deployment["spec"]["services"]["frontend"]["extraPodSpec"]["mainContainer"]["args"];
    assert_eq!(
        *args,
        json!(["--router-mode", "random", "--router-mode", "kv"]),
        "argparse takes the last one"
    );
}

#[test]
fn a_worker_asks_for_exactly_one_gpu() {
    let mut object = elaborate();
    let plugin = json!(dynamo::deployment(&Run::new(&object, settings())));
    let worker = &plugin["spec"]["services"]["worker"];
    assert_eq!(worker["resources"]["limits"]["gpu"], "1", "not the 4 of the spec");
    assert!(worker["resources"]["claims"].is_null() && worker["extraPodSpec"]["resourceClaims"].is_null());
    assert_eq!(worker["resources"]["limits"]["custom"]["vendor.example/nic"], "1");

    object.status.as_mut().unwrap().placement.as_mut().unwrap().allocation = Allocation::Dra;
    let claims = json!(dynamo::deployment(&Run::new(&object, settings())));
    let worker = &claims["spec"]["services"]["worker"];
    assert!(
        worker["resources"]["limits"]["gpu"].is_null(),
        "next to a claim it would be a second GPU"
    );
    assert_eq!(worker["resources"]["claims"][0]["name"], "gpu");
    assert_eq!(
        worker["extraPodSpec"]["resourceClaims"][0]["resourceClaimTemplateName"],
        claims["metadata"]["name"]
    );
}

#[test]
fn claims_tolerate_every_effect_by_its_name() {
    let object = object(
        "nvidia.com/v1beta1",
        "DRA",
        &json!({
            "model": { "name": "m" }, "workload": { "dynamo": { "image": "i:1" } },
            "placement": { "deviceTolerations": [
                { "key": "xid", "operator": "Exists" }, { "key": "k", "value": "v", "effect": "NoSchedule" },
            ] },
        }),
    );
    let template = json!(build::claim_template(&Run::new(&object, settings())));
    assert_eq!(
        template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["tolerations"],
        json!([
            { "key": "xid", "operator": "Exists", "effect": "NoSchedule" },
            { "key": "xid", "operator": "Exists", "effect": "NoExecute" },
            { "key": "k", "value": "v", "effect": "NoSchedule" },
        ])
    );
}

#[test]
fn a_version_that_images_do_not_name_is_written_in_both_api_shapes() {
    for (mut object, components) in [
        (typical(), ["/spec/components/0", "/spec/components/1"]),
        (elaborate(), ["/spec/services/frontend", "/spec/services/worker"]),
    ] {
        let version = |object: &PerfValidation, component: &str| {
            let deployment = json!(dynamo::deployment(&Run::new(object, settings())));
            deployment.pointer(component).unwrap()["runtimeVersionOverride"].clone()
        };
        // Set, but not recorded: the served API does not have the field.
        object.spec.dynamo_mut().runtime_version = Some("1.6.1".into());
        assert_eq!(version(&object, components[0]), Value::Null);
        object.status.as_mut().unwrap().state.runtime_version = Some("1.6.1".into());
        for component in components {
            assert_eq!(version(&object, component), "1.6.1", "{component}");
        }
    }
}

#[test]
fn plain_deployments_are_requested_beside_all_other_installations() {
    for object in [typical(), elaborate(), own_command()] {
        let deployment = json!(dynamo::deployment(&Run::new(&object, settings())));
        assert_eq!(
            deployment["metadata"]["annotations"]["nvidia.com/enable-grove"],
            "false"
        );
        // LeaderWorkerSets are for components of several nodes.
        assert!(!deployment.to_string().contains("multinode"), "{deployment}");
    }
}

#[test]
fn code_of_a_model_is_copied_to_a_folder_that_can_be_written() {
    let object = own_command();
    let run = Run::new(&object, settings());
    let (deployment, trial) = (json!(dynamo::deployment(&run)), json!(build::trial_job(&run, 1)));
    let pods = [
        deployment.pointer("/spec/components/0/podTemplate/spec"),
        deployment.pointer("/spec/components/1/podTemplate/spec"),
        trial.pointer("/spec/template/spec"),
    ];
    for pod in pods {
        let main = &pod.expect("a pod")["containers"][0];
        let mut env = main["env"].as_array().unwrap().iter();
        let modules = env.find(|var| var["name"] == "HF_MODULES_CACHE");
        let folder = modules.and_then(|var| var["value"].as_str()).unwrap_or_default();
        assert!(folder.starts_with("/tmp/"), "{main}");
    }
    let mounts = trial.pointer("/spec/template/spec/containers/0/volumeMounts");
    let mounts = mounts.and_then(Value::as_array).expect("mounts");
    assert!(mounts.contains(&json!({"name": "tmp", "mountPath": "/tmp"})));
}

#[test]
fn services_of_the_namespace_give_a_pod_no_variables() {
    for (object, pods) in [
        (
            typical(),
            [
                "/spec/components/0/podTemplate/spec",
                "/spec/components/1/podTemplate/spec",
            ],
        ),
        (
            elaborate(),
            [
                "/spec/services/frontend/extraPodSpec",
                "/spec/services/worker/extraPodSpec",
            ],
        ),
    ] {
        let deployment = json!(dynamo::deployment(&Run::new(&object, settings())));
        for pod in pods {
            assert_eq!(deployment.pointer(pod).unwrap()["enableServiceLinks"], false, "{pod}");
        }
    }
}

#[test]
fn the_backend_is_the_module_in_command_and_arguments() {
    let cases: [(&[&str], &[&str], &str); 6] = [
        (&["python3", "-m", "dynamo.sglang"], &["--model-path", "m"], "sglang"),
        (&["python3"], &["-m", "dynamo.sglang", "--model-path", "m"], "sglang"),
        (
            &["/bin/sh", "-c"],
            &["exec python3 -m dynamo.trtllm --model m"],
            "trtllm",
        ),
        (&["/bin/sh", "-c", "exec python3 -m dynamo.sglang"], &[], "sglang"),
        (&["python3", "-m", "dynamo.vllm"], &["--model", "m"], "vllm"),
        (&[], &["--served-model-name", "dynamo.sglang"], "vllm"),
    ];
    for (command, args, backend) in cases {
        let mut object = own_command();
        let worker = &mut object.spec.dynamo_mut().worker;
        worker.command = command.iter().map(|word| (*word).to_owned()).collect();
        worker.args = args.iter().map(|word| (*word).to_owned()).collect();
        let deployment = json!(dynamo::deployment(&Run::new(&object, settings())));
        assert_eq!(deployment["spec"]["backendFramework"], backend, "{command:?} {args:?}");
    }
}

#[test]
fn a_worker_with_several_gpus_claims_them_and_splits_the_model() {
    let mut object = typical();
    object.spec.dynamo_mut().worker.gpus = 4;
    let run = Run::new(&object, settings());
    let claim = json!(build::claim_template(&run));
    assert_eq!(
        claim.pointer("/spec/spec/devices/requests/0/exactly/count"),
        Some(&json!(4))
    );
    let deployment = json!(dynamo::deployment(&run));
    let worker = &deployment["spec"]["components"][1];
    assert_eq!(worker["replicas"], json!(2), "eight GPUs");
    assert_eq!(
        worker["sharedMemorySize"],
        Value::Null,
        "the operator of Dynamo gives 8Gi"
    );
    let args = worker
        .pointer("/podTemplate/spec/containers/0/args")
        .unwrap()
        .as_array()
        .unwrap();
    let at = args
        .iter()
        .position(|arg| arg == "--tensor-parallel-size")
        .expect("a split model");
    assert_eq!(args[at + 1], "4");

    // Through a device plugin, with the user's own command: the operator leaves that as it is.
    let mut object = own_command();
    object.spec.dynamo_mut().worker.gpus = 4;
    object.status.as_mut().unwrap().placement.as_mut().unwrap().allocation = Allocation::DevicePlugin;
    let deployment = json!(dynamo::deployment(&Run::new(&object, settings())));
    let main = deployment
        .pointer("/spec/components/1/podTemplate/spec/containers/0")
        .unwrap();
    assert_eq!(main["resources"]["limits"]["nvidia.com/gpu"], json!("4"));
    assert!(!main["args"].to_string().contains("tensor-parallel"), "{main}");
}
