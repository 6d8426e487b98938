//! What a run creates, object by object. `UPDATE_GOLDEN=1 cargo test -p perfval-core --test build` writes the golden
//! files anew; without it they are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use k8s_openapi::api::core::v1::PodSpec;
use perfval_api::PerfValidation;
use perfval_core::aiperf::Measure;
use perfval_core::{Run, Settings, build, names};
use serde_json::{Value, json};

const UID: &str = "0b8f6f0e-5d3c-4f3a-9d60-2f6a3a0d9f11";

/// What most users write.
fn typical() -> PerfValidation {
    object(
        "nvidia.com/v1beta1",
        "DRA",
        &json!({
            "model": { "name": "Qwen/Qwen3-8B", "tokenSecretRef": { "name": "hf-token", "key": "token" } },
            "workload": { "image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1", "imagePullSecrets": [{ "name": "ngc" }] },
            "gates": [
                { "name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "50k" },
                { "name": "ttft-p99", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "2000" },
                { "name": "ttft-p99-warn", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "1000", "mode": "Warn" },
            ],
        }),
    )
}

/// Every field that ends up in a pod, for the older API and a device plugin.
fn elaborate() -> PerfValidation {
    object(
        "nvidia.com/v1alpha1",
        "DevicePlugin",
        &json!({
            "model": {
                "name": "meta-llama/Llama-3.1-8B",
                "tokenSecretRef": { "name": "hf", "key": "token", "optional": true },
                "cache": { "size": "100Gi", "storageClassName": "gp3" },
            },
            "workload": {
                "image": "registry.example/runtime:1.1.1",
                "frontendImage": "registry.example/frontend:1.1.1",
                "imagePullPolicy": "Always",
                "routerMode": "KV",
                "args": ["--max-model-len", "8192", "; rm -rf / $(HF_TOKEN) `id`"],
                "frontendArgs": ["--router-mode", "random"],
                "env": [
                    { "name": "DYN_ROUTER_MODE", "value": "random" },
                    { "name": "DYN_ROUTER_TEMPERATURE", "value": "0.5" },
                    { "name": "HF_HOME", "value": "/elsewhere" },
                    { "name": "NCCL_DEBUG", "value": "WARN" },
                ],
                "resources": {
                    "requests": { "cpu": "8", "memory": "64Gi", "vendor.example/nic": "1" },
                    "limits": { "memory": "64Gi", "vendor.example/nic": "1", "nvidia.com/gpu": "4" },
                },
            },
            "placement": { "frontend": "Anywhere" },
            "benchmark": {
                "image": "registry.example/aiperf:0.13.0",
                "concurrencyPerGPU": 2, "minRequests": 100, "warmupPerConcurrency": 0,
                "extraInputs": { "stop": "$(HF_TOKEN) | sh", "temperature": "0" },
                "goodput": [{ "metric": "TimeToFirstToken", "max": "1k" }, { "metric": "RequestLatency", "max": "5000" }],
                "tokenizer": "meta-llama/Llama-3.1-8B-Instruct",
                "extraArgs": ["--slice-duration", "10"],
                "resources": { "requests": { "cpu": "16" } },
                "placement": "WorkloadNode",
            },
        }),
    )
}

/// The user's own worker command.
fn own_command() -> PerfValidation {
    object(
        "nvidia.com/v1beta1",
        "DRA",
        &json!({
            "model": { "name": "tiny/model", "cache": { "claimName": "weights" } },
            "workload": { "image": "localhost/engine:1", "command": ["python3", "-m", "dynamo.sglang"], "args": ["--model-path", "tiny/model"] },
        }),
    )
}

fn object(api_version: &str, allocation: &str, spec: &Value) -> PerfValidation {
    let id = names::run_id(UID, 1);
    serde_json::from_value(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1",
        "kind": "PerfValidation",
        "metadata": { "name": "h100-baseline", "namespace": "perf", "uid": UID, "generation": 1 },
        "spec": spec,
        "status": {
            "observedGeneration": 1,
            "verdict": "Passed",
            "reason": "GatesMet",
            "message": "fast enough",
            "run": { "number": 1, "id": id, "trigger": "Created", "generation": 1, "startedAt": "2026-11-20T10:00:00Z" },
            "placement": {
                "node": "gpu-node-1", "allocation": allocation, "gpus": 8, "nodeGPUs": 8,
                "tolerations": [{ "key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule" }],
            },
            "workload": { "name": names::deployment(&id), "apiVersion": api_version, "routerMode": "", "workersReady": 8 },
            "environment": { "model": "m", "image": "i" },
            "metrics": { "outputTokenThroughput": "110847.2" },
            "trials": [{ "number": 1, "outcome": "Pass", "startedAt": "2026-11-20T10:05:00Z" }],
        },
    }))
    .expect("a PerfValidation")
}

fn settings() -> Settings {
    Settings {
        runner_image: "registry.example/perfvalidation-operator:0.1.0".into(),
        aiperf_image: Some("nvcr.io/nvidia/aiperf:0.13.0".into()),
        cluster_domain: "cluster.local".into(),
        version: "0.1.0".into(),
    }
}

/// Everything of a run, by the name of the builder.
fn everything(run: &Run<'_>) -> BTreeMap<&'static str, Value> {
    [
        ("claim_template", json!(build::claim_template(run))),
        ("cache_claim", json!(build::cache_claim(run))),
        ("cache_job", json!(build::cache_job(run))),
        ("workers_service", json!(build::workers_service(run))),
        ("deployment", json!(build::deployment(run))),
        ("trial_job", json!(build::trial_job(run, 3))),
        (
            "results",
            json!(build::results(run, &BTreeMap::from([(1, "{}".to_owned())]))),
        ),
    ]
    .into()
}

#[test]
fn objects_are_as_recorded() {
    let cases = [
        ("typical", typical()),
        ("elaborate", elaborate()),
        ("own-command", own_command()),
    ];
    for (name, object) in cases {
        let objects = everything(&Run::new(&object, &settings()));
        let text = format!("{:#}\n", json!(objects));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.json"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let recorded = std::fs::read_to_string(&path).unwrap();
        assert!(
            text == recorded,
            "{} differs; see the header of this file:\n{text}",
            path.display()
        );
    }
}

#[test]
fn every_object_is_named_labelled_and_owned() {
    let object = elaborate();
    for (kind, value) in everything(&Run::new(&object, &settings())) {
        let metadata = &value["metadata"];
        assert!(metadata["name"].as_str().is_some_and(|name| !name.is_empty()), "{kind}");
        assert_eq!(metadata["namespace"], "perf", "{kind}");
        assert_eq!(metadata["ownerReferences"][0]["uid"], UID, "{kind}");
        assert_eq!(metadata["ownerReferences"][0]["controller"], true, "{kind}");
        let labels: BTreeSet<&str> = metadata["labels"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let expected = BTreeSet::from([
            "app.kubernetes.io/component",
            "app.kubernetes.io/instance",
            "app.kubernetes.io/managed-by",
            "app.kubernetes.io/name",
            "app.kubernetes.io/part-of",
            "app.kubernetes.io/version",
            "perfvalidation.dev/component",
            "perfvalidation.dev/name",
            "perfvalidation.dev/run",
        ]);
        assert_eq!(labels, expected, "{kind}");
        let spoken_for = [metadata["labels"].clone(), value["spec"]["metadata"]["labels"].clone()];
        for label in spoken_for.iter().filter_map(Value::as_object).flatten() {
            assert!(
                label.1.as_str().is_some_and(|value| value.len() <= 63),
                "{kind} {label:?}"
            );
        }
    }
}

#[test]
fn pods_of_both_api_shapes_are_found_by_the_workers_service() {
    for (object, labels_of_worker) in [
        (typical(), "/spec/components/1/podTemplate/metadata/labels"),
        (elaborate(), "/spec/services/worker/extraPodMetadata/labels"),
    ] {
        let settings = settings();
        let run = Run::new(&object, &settings);
        let deployment = json!(build::deployment(&run));
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
fn names_and_label_values_fit_in_the_longest_namespace() {
    let mut object = typical();
    object.metadata.namespace = Some("n".repeat(51));
    object.metadata.name = Some("x".repeat(40));
    let settings = settings();
    let run = Run::new(&object, &settings);
    for (kind, value) in everything(&run) {
        let name = value["metadata"]["name"].as_str().unwrap();
        assert!(name.len() <= 63, "{kind}: {name}");
    }
    // The label `nvidia.com/dynamo-namespace` that Dynamo's operator makes.
    let label = format!("{}-{}", run.namespace(), names::deployment(&run.id()));
    assert!(label.len() <= 63, "{label}");
    assert!(names::trial_job(&run.id(), 20).len() <= 63);
}

#[test]
fn nothing_of_the_spec_is_interpreted() {
    let object = elaborate();
    let settings = settings();
    let run = Run::new(&object, &settings);
    let deployment = json!(build::deployment(&run));
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
fn the_wrapper_passes_every_argument_on_and_keeps_the_image_s_own_path_first() {
    let mut object = typical();
    object.spec.workload.args = vec!["a b".into(), "$(id)".into(), "'\"".into()];
    let settings = settings();
    let deployment = json!(build::deployment(&Run::new(&object, &settings)));
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
    let settings = settings();
    let deployment = json!(build::deployment(&Run::new(&object, &settings)));
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
        assert!(env.contains_key("HF_TOKEN"));
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
    let settings = settings();
    let mut object = elaborate();
    let plugin = json!(build::deployment(&Run::new(&object, &settings)));
    let worker = &plugin["spec"]["services"]["worker"];
    assert_eq!(worker["resources"]["limits"]["gpu"], "1", "not the 4 of the spec");
    assert!(worker["resources"]["claims"].is_null() && worker["extraPodSpec"]["resourceClaims"].is_null());
    assert_eq!(worker["resources"]["limits"]["custom"]["vendor.example/nic"], "1");

    object.status.as_mut().unwrap().placement.as_mut().unwrap().allocation = "DRA".into();
    let claims = json!(build::deployment(&Run::new(&object, &settings)));
    let worker = &claims["spec"]["services"]["worker"];
    assert!(
        worker["resources"]["limits"]["gpu"].is_null(),
        "beside a claim it would be a second GPU"
    );
    assert_eq!(worker["resources"]["claims"][0]["name"], "gpu");
    assert_eq!(
        worker["extraPodSpec"]["resourceClaims"][0]["resourceClaimTemplateName"],
        claims["metadata"]["name"]
    );
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
    assert!(build::trial_is_pinned(&object.spec) && build::frontend_is_pinned(&object.spec));
    object.spec.model.cache = None;
    assert!(!build::trial_is_pinned(&object.spec));
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

#[test]
fn results_are_the_same_for_the_same_content_and_never_too_big() {
    let object = typical();
    let settings = settings();
    let run = Run::new(&object, &settings);
    // Hex of a hash chain: it packs to about half, so three of them do not fit.
    let noise = |seed: u64| -> String {
        let mut state = seed;
        (0..600 * 1024)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                char::from_digit(u32::try_from(state >> 60).unwrap(), 16).unwrap()
            })
            .collect()
    };
    let payloads: BTreeMap<i64, String> = (1..=3_i64).map(|trial| (trial, noise(trial.unsigned_abs()))).collect();
    let results = build::results(&run, &payloads);
    assert_eq!(results, build::results(&run, &payloads));
    let size: usize = results.data.iter().flatten().map(|(_, text)| text.len()).sum::<usize>()
        + results
            .binary_data
            .iter()
            .flatten()
            .map(|(_, bytes)| bytes.0.len())
            .sum::<usize>();
    assert!(size <= 900 * 1024, "{size}");
    let kept: Vec<_> = results.binary_data.as_ref().unwrap().keys().collect();
    assert_eq!(kept, ["trial-1.json.gz", "trial-2.json.gz"]);
    assert!(results.data.as_ref().unwrap()["omitted.txt"].starts_with("trial 3: "));

    let annotated = &results.metadata.annotations.as_ref().unwrap()["perfvalidation.dev/sha256"];
    assert_eq!(*annotated, build::results_sha256(&results));
    let mut tampered = results.clone();
    tampered
        .data
        .as_mut()
        .unwrap()
        .insert("summary.json".into(), "{}".into());
    assert_ne!(*annotated, build::results_sha256(&tampered));
}

#[test]
fn a_payload_can_be_read_back() {
    let object = typical();
    let payload = "{\"record\":1}".repeat(100);
    let results = build::results(&Run::new(&object, &settings()), &BTreeMap::from([(7, payload.clone())]));
    let packed = &results.binary_data.unwrap()["trial-7.json.gz"].0;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed.as_slice()), &mut text).unwrap();
    assert_eq!(text, payload);
}
