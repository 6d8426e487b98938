//! Pods of our own: the load generator and the filler of the model cache.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::api::storage::v1::StorageClass;
use perfval_api::PerfValidation;
use perfval_run::{Run, build, dynamo};
use perfval_verdict::aiperf::Measure;
use serde_json::{Value, json};

use super::{elaborate, own_command, settings, typical};

/// The container of a trial's Job.
fn aiperf(job: JobSpec) -> Container {
    job.template.spec.expect("a pod").containers.remove(0)
}

#[test]
fn nothing_of_the_spec_is_interpreted() {
    let object = elaborate();
    let run = Run::new(&object, settings());
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

    let container = aiperf(build::trial_job(&run, 1).spec.unwrap());
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
fn jobs_have_the_queue_of_their_pods_and_none_of_the_other_labels() {
    let mut object = typical();
    let labels = json!({"kueue.x-k8s.io/queue-name": "gpus", "team": "ml"});
    object.spec.pod_template.metadata.labels = serde_json::from_value(labels).expect("well-formed");
    let run = Run::new(&object, settings());
    for job in [build::trial_job(&run, 1), build::cache_job(&run)] {
        let labels = job.metadata.labels.unwrap_or_default();
        assert_eq!(
            labels.get("kueue.x-k8s.io/queue-name").map(String::as_str),
            Some("gpus")
        );
        assert_eq!(labels.get("team"), None);
    }
}

#[test]
fn pods_of_our_own_are_restricted() {
    let objects = [typical(), elaborate(), own_command()];
    let jobs = objects.iter().flat_map(|object| {
        let run = Run::new(object, settings());
        [build::trial_job(&run, 1), build::cache_job(&run)]
    });
    for job in jobs {
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

/// The security context constraint `restricted-v2` wants a user and a group from the range of the namespace.
#[test]
fn a_template_replaces_the_users_of_our_own_pods() {
    let mut object = typical();
    let context = json!({"runAsUser": 1_000_650_000, "fsGroup": 1_000_650_000});
    object.spec.pod_template.spec.security_context = serde_json::from_value(context).expect("well-formed");
    let run = Run::new(&object, settings());
    for job in [build::trial_job(&run, 1), build::cache_job(&run)] {
        let pod: PodSpec = job.spec.unwrap().template.spec.unwrap();
        let security = pod.security_context.unwrap();
        assert_eq!(
            (security.run_as_user, security.fs_group, security.run_as_non_root),
            (Some(1_000_650_000), Some(1_000_650_000), Some(true))
        );
        for container in pod.containers.iter().chain(pod.init_containers.iter().flatten()) {
            let own = container.security_context.as_ref().and_then(|own| own.run_as_user);
            assert_eq!(own, None, "{}", container.name);
        }
    }
}

#[test]
fn pods_that_read_the_model_cache_run_where_its_volume_is() {
    let mut object = own_command();
    object.spec.benchmark.placement = None;
    assert!(perfval_sizing::trial_is_pinned(&object.spec) && perfval_sizing::frontend_is_pinned(&object.spec));
    object.spec.model.cache = None;
    assert!(!perfval_sizing::trial_is_pinned(&object.spec));
    let job = build::trial_job(&Run::new(&object, settings()), 1);
    let affinity = job.spec.unwrap().template.spec.unwrap().affinity.unwrap();
    let node = affinity.node_affinity.unwrap();
    let architectures = json!({"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]});
    assert_eq!(
        json!(node.required_during_scheduling_ignored_during_execution),
        json!({"nodeSelectorTerms": [{"matchExpressions": [architectures]}]}),
        "of the operator's images"
    );
    let preferred = json!(node.preferred_during_scheduling_ignored_during_execution);
    let requirement = json!({"key": "nvidia.com/gpu.present", "operator": "DoesNotExist"});
    assert_eq!(
        preferred,
        json!([{"weight": 100, "preference": {"matchExpressions": [requirement]}}]),
        "the CPUs of a node with GPUs may be under test"
    );
}

#[test]
fn the_runner_understands_all_gated_metrics() {
    let object = typical();
    let job = build::trial_job(&Run::new(&object, settings()), 1);
    let args = aiperf(job.spec.unwrap()).args.unwrap();
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
fn the_load_generator_reaches_the_hub_on_the_way_of_the_workers() {
    let mut object = typical();
    let env = json!([
        {"name": "HTTPS_PROXY", "valueFrom": {"secretKeyRef": {"name": "proxy", "key": "url"}}},
        {"name": "no_proxy", "value": ".svc,10.0.0.0/8"},
        {"name": "HF_ENDPOINT", "value": "https://hub.example"},
        {"name": "HTTP_PROXY", "value": "http://proxy.example:3128"},
        {"name": "https_proxy", "value": "http://$(PROXY_USER)@proxy.example:3128"},
        {"name": "VLLM_USE_V1", "value": "1"},
    ]);
    object.spec.dynamo_mut().env = serde_json::from_value(env.clone()).expect("variables");
    let env = env.as_array().expect("a list");
    let given = |object: &PerfValidation| -> Vec<Value> {
        let container = aiperf(build::trial_job(&Run::new(object, settings()), 1).spec.unwrap());
        let is_users = |var: &Value| env.iter().any(|own| own["name"] == var["name"]);
        let given = container.env.unwrap().into_iter().map(|var| json!(var));
        given.filter(is_users).collect()
    };
    assert_eq!(given(&object), env[..3], "the frontend has an http URL");
    object.spec.model.cache = own_command().spec.model.cache;
    assert_eq!(given(&object), Vec::<Value>::new(), "it reads the weights offline");
    let job = build::cache_job(&Run::new(&object, settings()));
    let fills = json!(aiperf(job.spec.unwrap()).env);
    assert_eq!(fills.as_array().unwrap()[..6], env[..]);
}

#[test]
fn a_tokenizer_of_its_own_is_in_the_cache_too() {
    let fetched = |tokenizer: &str| {
        let mut object = elaborate();
        object.spec.benchmark.tokenizer = tokenizer.to_owned();
        let job = build::cache_job(&Run::new(&object, settings()));
        aiperf(job.spec.unwrap()).args.unwrap()
    };
    let model = ["meta-llama/Llama-3.1-8B", "b968826d9c46dd6066d109eabc6255188de91218"];
    assert_eq!(fetched("Qwen/Qwen3-8B"), [&model[..], &["Qwen/Qwen3-8B"]].concat());
    for of_image in ["", model[0], "/models/tokenizer", "builtin"] {
        assert_eq!(fetched(of_image), model, "{of_image}");
    }
}

/// AIPerf's words for a trial of a spec with this benchmark.
fn aiperf_words(benchmark: &Value, trial: i64, soak: bool) -> Vec<String> {
    let mut object = typical();
    object.spec.benchmark = serde_json::from_value(benchmark.clone()).expect("a benchmark");
    let status = object.status.as_mut().expect("a status");
    status.state.trials.push(perfval_api::TrialState {
        number: trial,
        soak,
        ..Default::default()
    });
    let job = build::trial_job(&Run::new(&object, settings()), trial);
    let job = job.spec.expect("a spec");
    let deadline = job.active_deadline_seconds.expect("a deadline");
    let mut words = aiperf(job).args.expect("arguments");
    words.push(format!("deadline {deadline}"));
    words
}

fn word_after<'a>(words: &'a [String], flag: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| word == flag)?;
    words.get(at + 1).map(String::as_str)
}

#[test]
fn a_trial_ends_after_a_time_or_after_a_number_of_requests() {
    // Eight GPUs, 128 in flight each: duration, grace, requests and prompts.
    let rows = [
        (json!({}), Some("60"), None, "20000"),
        (json!({"duration": "1500ms"}), Some("2"), None, "3072"),
        (json!({"duration": "2m", "datasetEntries": 7}), Some("120"), None, "7"),
        (json!({"duration": "2m", "inputTokens": 4000}), Some("120"), None, "640"),
        (
            json!({"duration": "2m", "inputTokens": 1_000_000}),
            Some("120"),
            None,
            "100",
        ),
        (json!({"minRequests": 9000}), None, Some("9000"), "10024"),
        (json!({"requestsPerConcurrency": 4}), None, Some("4096"), "5120"),
        (
            json!({"requestsPerConcurrency": 8, "minRequests": 1000, "datasetEntries": 100}),
            None,
            Some("8192"),
            "100",
        ),
        (
            json!({"concurrencyPerGPU": 1, "requestsPerConcurrency": 1, "minRequests": 1}),
            None,
            Some("8"),
            "100",
        ),
    ];
    for (benchmark, seconds, requests, prompts) in rows {
        let words = aiperf_words(&benchmark, 2, false);
        assert_eq!(word_after(&words, "--benchmark-duration"), seconds, "{benchmark}");
        let grace = seconds.map(|_| "310");
        assert_eq!(word_after(&words, "--benchmark-grace-period"), grace, "{benchmark}");
        assert_eq!(word_after(&words, "--request-count"), requests, "{benchmark}");
        assert_eq!(
            word_after(&words, "--num-dataset-entries"),
            Some(prompts),
            "{benchmark}"
        );
    }
}

#[test]
fn each_trial_has_prompts_of_its_own_and_the_soak_its_own_length() {
    let seed = |benchmark: Value, trial| {
        let words = aiperf_words(&benchmark, trial, false);
        word_after(&words, "--random-seed").map(str::to_owned)
    };
    assert_eq!(seed(json!({}), 1).as_deref(), Some("100"));
    assert_eq!(seed(json!({}), 3).as_deref(), Some("102"));
    assert_eq!(seed(json!({"randomSeed": 4_294_967_295_i64}), 2).as_deref(), Some("0"));

    let benchmark = json!({"requestsPerConcurrency": 8, "soak": "10m"});
    let soak = aiperf_words(&benchmark, 3, true);
    assert_eq!(word_after(&soak, "--benchmark-duration"), Some("600"));
    assert_eq!(word_after(&soak, "--request-count"), None);
    assert!(soak.contains(&"deadline 1590".to_owned()), "{soak:?}");
    let before = aiperf_words(&benchmark, 2, false);
    assert_eq!(word_after(&before, "--request-count"), Some("8192"));
    assert!(before.contains(&"deadline 990".to_owned()), "{before:?}");
}

#[test]
fn a_template_has_the_class_that_it_names_or_a_default_one() {
    let class = |annotation: &str, value: &str| -> StorageClass {
        let class = json!({"metadata": {"name": "fast", "annotations": {annotation: value}}, "provisioner": "p"});
        serde_json::from_value(class).expect("well-formed")
    };
    let (stable, beta) = (
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    );
    for (annotation, value, named, fits) in [
        (stable, "true", None, true),
        (beta, "true", None, true),
        (stable, "false", None, false),
        ("other", "true", None, false),
        ("other", "true", Some("fast"), true),
        (stable, "true", Some("slow"), false),
    ] {
        let template = json!({"storage": "1Gi", "storageClassName": named});
        let template = serde_json::from_value(template).expect("a template");
        let found = build::has_storage_class(&template, &[class(annotation, value)]);
        assert_eq!(found, fits, "{annotation}={value}, {named:?}");
    }
}
