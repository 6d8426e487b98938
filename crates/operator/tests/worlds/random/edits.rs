//! What users write into the spec of an object that exists: any field, at any moment.

use serde_json::Value;

/// Merge patches. Admission would take each of them, whatever was edited before.
pub const EDITS: &[&str] = &[
    r#"{"gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1000"}]}"#,
    r#"{"gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "1500"}]}"#,
    r#"{"gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "9000000"}]}"#,
    r#"{"gates": [{"name": "ttft", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "1"}]}"#,
    r#"{"gates": [{"name": "good", "metric": "Goodput", "operator": ">=", "threshold": "1"}],
        "benchmark": {"goodput": [{"metric": "TimeToFirstToken", "max": "5000"}]}}"#,
    r#"{"gates": []}"#,
    r#"{"trials": {"maxFailedRequestsPercent": "0"}}"#,
    r#"{"trials": {"maxFailedRequestsPercent": "50"}}"#,
    r#"{"trials": {"rule": "Single"}}"#,
    r#"{"trials": {"rule": "All", "max": 2}}"#,
    r#"{"trials": {"rule": "Sequential", "max": 20, "errorBoundPercent": 1}}"#,
    r#"{"trials": {"rule": "Sequential", "min": 2, "max": 6, "errorBoundPercent": 5}}"#,
    r#"{"model": {"name": "lab/other"}}"#,
    r#"{"model": {"name": "lab/tiny"}}"#,
    r#"{"model": {"cache": {"volumeClaimTemplate": {"storage": "10Gi"}, "persistentVolumeClaim": null}},
        "workload": {"dynamo": {"frontend": {"placement": null}}}}"#,
    r#"{"model": {"cache": {"volumeClaimTemplate": {"storage": "20Gi", "storageClassName": "fast"}, "persistentVolumeClaim": null}},
        "workload": {"dynamo": {"frontend": {"placement": null}}}}"#,
    r#"{"model": {"cache": {"volumeClaimTemplate": {"storage": "20Gi", "accessModes": ["ReadWriteMany"]}, "persistentVolumeClaim": null}},
        "workload": {"dynamo": {"frontend": {"placement": null}}}}"#,
    r#"{"model": {"revision": "b968826d9c46dd6066d109eabc6255188de91218",
        "cache": {"volumeClaimTemplate": {"storage": "20Gi"}, "persistentVolumeClaim": null}},
        "workload": {"dynamo": {"frontend": {"placement": null}}}}"#,
    r#"{"model": {"revision": null, "cache": {"persistentVolumeClaim": {"claimName": "weights"}, "volumeClaimTemplate": null}},
        "workload": {"dynamo": {"frontend": {"placement": null}}}}"#,
    r#"{"model": {"cache": null, "revision": null}}"#,
    r#"{"model": {"tokenSecretRef": {"name": "hub", "key": "token"}}}"#,
    r#"{"workload": {"dynamo": {"image": "localhost/dynamo:1.4.2"}}}"#,
    r#"{"workload": {"dynamo": {"image": "localhost/dynamo:1.1.0"}}}"#,
    r#"{"workload": {"dynamo": {"image": "localhost/dynamo:latest", "runtimeVersion": "1.4.2"}}}"#,
    r#"{"workload": {"dynamo": {"runtimeVersion": null}}}"#,
    r#"{"workload": {"dynamo": {"frontend": {"image": "localhost/frontend:1.4.2"}}}}"#,
    r#"{"workload": {"dynamo": {"worker": {"command": ["python3", "-m", "dynamo.vllm"]}}}}"#,
    r#"{"workload": {"dynamo": {"worker": {"args": ["--enforce-eager"]}}}}"#,
    r#"{"workload": {"dynamo": {"env": [{"name": "A", "value": "b"}]}}}"#,
    r#"{"workload": {"dynamo": {"frontend": {"args": ["--verbose"]}}}}"#,
    r#"{"podTemplate": {"spec": {"imagePullPolicy": "Always"}}}"#,
    r#"{"podTemplate": {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "a"}}}}"#,
    r#"{"podTemplate": {"spec": {"imagePullSecrets": [{"name": "pull"}]}}}"#,
    r#"{"podTemplate": {"spec": {"securityContext": {"fsGroup": 2000}, "containerSecurityContext": {"runAsNonRoot": true}}}}"#,
    r#"{"podTemplate": {"spec": {"runtimeClassName": "nvidia", "priorityClassName": "batch"}}}"#,
    r#"{"workload": {"dynamo": {"worker": {"gpus": 2}}}, "placement": {"maxGPUs": null}}"#,
    r#"{"workload": {"dynamo": {"frontend": {"resources": {"requests": {"cpu": "1"}}}}}}"#,
    r#"{"workload": {"dynamo": {"worker": {"resources": {"requests": {"cpu": "900"}}}}}}"#,
    r#"{"workload": {"dynamo": {"worker": {"resources": {"requests": {"cpu": "1"}}}}}}"#,
    r#"{"workload": {"dynamo": {"routerMode": "Random"}}}"#,
    r#"{"placement": {"minGPUs": 1, "maxGPUs": 1}, "workload": {"dynamo": {"worker": {"gpus": 1}}}}"#,
    r#"{"placement": {"maxGPUs": 2, "expectGPUs": 2}}"#,
    r#"{"placement": {"minGPUs": 2, "maxGPUs": null, "expectGPUs": null}}"#,
    r#"{"placement": {"nodeSelector": {"pool": "a"}}}"#,
    r#"{"placement": {"nodeSelector": {"pool": "b"}}}"#,
    r#"{"placement": {"nodeSelector": null}}"#,
    r#"{"placement": {"tolerations": [{"operator": "Exists"}]}}"#,
    r#"{"placement": {"deviceTolerations": [{"operator": "Exists"}]}}"#,
    r#"{"placement": {"allocation": "DRA"}}"#,
    r#"{"placement": {"allocation": "DevicePlugin"}}"#,
    r#"{"placement": {"deviceClassName": "gpus.of-nobody"}}"#,
    r#"{"placement": {"resourceName": "nobody.com/gpu"}}"#,
    r#"{"model": {"cache": null, "revision": null}, "workload": {"dynamo": {"frontend": {"placement": "Anywhere"}}}}"#,
    r#"{"workload": {"dynamo": {"frontend": {"placement": null}}}}"#,
    r#"{"benchmark": {"concurrencyPerGPU": 4}}"#,
    r#"{"benchmark": {"duration": "2m", "requestsPerConcurrency": null, "minRequests": null}}"#,
    r#"{"benchmark": {"duration": null, "requestsPerConcurrency": 8, "minRequests": 64}}"#,
    r#"{"benchmark": {"soak": "5m"}}"#,
    r#"{"benchmark": {"image": "localhost/aiperf:other"}}"#,
    r#"{"benchmark": {"inputTokens": 64, "outputTokens": 64, "datasetEntries": 100}}"#,
    r#"{"benchmark": {"extraArgs": ["--verbose"], "extraInputs": {"ignore_eos": "false"}}}"#,
    r#"{"benchmark": {"placement": "WorkloadNode"}}"#,
    r#"{"benchmark": {"randomSeed": 7, "warmupPerConcurrency": 2}}"#,
    r#"{"benchmark": {"requestTimeout": "1m"}}"#,
    r#"{"benchmark": {"tokenizer": "lab/tokens"}}"#,
    r#"{"benchmark": {"resources": {"requests": {"cpu": "2"}}}}"#,
    r#"{"timeouts": {"prerequisites": "10s"}}"#,
    r#"{"timeouts": {"sizing": "1m"}}"#,
    r#"{"timeouts": {"modelCache": "1m"}}"#,
    r#"{"timeouts": {"workloadReady": "1m"}}"#,
    r#"{"timeouts": {"endpointProbe": "5s", "endpointReady": "20s"}}"#,
    r#"{"timeouts": {"benchmark": "8m"}}"#,
    r#"{"timeouts": {"cleanup": "20s"}}"#,
    r#"{"timeouts": {"total": "3m"}}"#,
    r#"{"timeouts": {"total": "2h"}}"#,
    r#"{"workload": {"dynamo": {"onMissing": "Skip"}}}"#,
    r#"{"telemetry": {"gpus": "None", "endpoint": null}}"#,
    r#"{"telemetry": {"gpus": "Auto", "endpoint": "http://exporter.perf:9400/metrics"}}"#,
    r#"{"resultsHistoryLimit": 0}"#,
    r#"{"ttlSecondsAfterFinished": 60}"#,
    r#"{"keptSecondsAfterFinished": 60}"#,
    r#"{"suspend": true}"#,
    r#"{"suspend": false}"#,
];

/// An edit by its number.
pub fn edit(number: usize) -> Value {
    serde_json::from_str(EDITS[number]).expect("a merge patch")
}

mod tests {
    use std::collections::BTreeSet;

    use perfval_api::admission::Admission;
    use serde_json::json;

    use super::super::spec;
    use super::*;

    /// Fields whose types are Kubernetes' own: one edit is enough.
    const FOREIGN: [&str; 4] = [
        "containerSecurityContext",
        "resources",
        "securityContext",
        "tokenSecretRef",
    ];

    /// Paths of the fields that have no fields in them. `inner` returns the fields in a field.
    fn paths(fields: &Value, inner: fn(&str, &Value) -> Value) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        for (name, field) in fields.as_object().into_iter().flatten() {
            let within = self::paths(&inner(name, field), inner);
            if within.is_empty() {
                paths.insert(name.clone());
            }
            paths.extend(within.iter().map(|path| format!("{name}.{path}")));
        }
        paths
    }

    #[test]
    fn every_field_of_the_spec_is_edited() {
        let admission = Admission::new().expect("the CRD's schema");
        let spec = &admission.schema()["properties"]["spec"];
        let known = paths(&spec["properties"], |name, field| {
            if FOREIGN.contains(&name) {
                Value::Null
            } else {
                field["properties"].clone()
            }
        });
        let edited: BTreeSet<String> = (0..EDITS.len())
            .flat_map(|number| paths(&edit(number), |_, field| field.clone()))
            .collect();
        let is_edited = |known: &String| {
            let within = format!("{known}.");
            edited.iter().any(|path| path == known || path.starts_with(&within))
        };
        let missing: Vec<_> = known.iter().filter(|path| !is_edited(path)).collect();
        assert!(missing.is_empty(), "nobody edits {missing:?}");
    }

    /// One after the other, in both orders: a field may forbid another one.
    #[test]
    fn admission_takes_every_edit() {
        let admission = Admission::new().expect("the CRD's schema");
        for backwards in [false, true] {
            let mut spec = spec();
            for number in 0..EDITS.len() {
                let number = if backwards { EDITS.len() - 1 - number } else { number };
                json_patch::merge(&mut spec, &edit(number));
                let manifest = json!({
                    "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
                    "metadata": {"name": "first", "namespace": "perf"}, "spec": spec,
                });
                let refused = admission.admit(&manifest).err();
                assert_eq!(refused, None, "{}", EDITS[number]);
            }
        }
    }
}
