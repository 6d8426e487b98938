//! The runs themselves.

use perfval_testkit::world::Trial;
use serde_json::json;

use crate::rig::NAMESPACE;

use super::{
    BASE, GONE, NAME, Scenario, delete, is, is_over, is_unconfirmed, pods_for, refused_for, run, trial_runs, with,
};

/// All scenarios.
pub fn all() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "passing",
            ..BASE
        },
        Scenario {
            name: "passing with one trial",
            spec: || with(&json!({"trials": {"errorBoundPercent": 10}})),
            ..BASE
        },
        Scenario {
            name: "failing",
            trials: &[Trial::Slow],
            ends: "Failed",
            ..BASE
        },
        Scenario {
            name: "an invalid trial",
            trials: &[Trial::Starved, Trial::Good],
            ..BASE
        },
        Scenario {
            name: "deleted while it deploys",
            acts: &[(|rig| is(rig, "Deploying"), delete)],
            ..GONE
        },
        Scenario {
            name: "deleted while a trial runs",
            acts: &[(trial_runs, delete)],
            ..GONE
        },
        Scenario {
            name: "deleted when it is over",
            acts: &[(is_over, delete)],
            ..GONE
        },
        Scenario {
            name: "suspended and resumed",
            acts: &[
                (trial_runs, |rig| {
                    rig.edit(NAME, |object| object["spec"]["suspend"] = true.into());
                }),
                (
                    |rig| is(rig, "Suspended"),
                    |rig| {
                        rig.edit(NAME, |object| object["spec"]["suspend"] = false.into());
                    },
                ),
            ],
            ..BASE
        },
        Scenario {
            name: "rerun",
            acts: &[(is_over, |rig| rig.annotate(NAME, "rerun", Some("again")))],
            over: |rig| is_over(rig) && run(rig) == 2,
            ..BASE
        },
        Scenario {
            name: "kept, then cleaned up",
            acts: &[
                (|_| true, |rig| rig.annotate(NAME, "no-cleanup", Some("true"))),
                (is_over, |rig| rig.annotate(NAME, "no-cleanup", None)),
            ],
            over: |rig| is_over(rig) && rig.server.objects("pods").is_empty(),
            ..BASE
        },
        Scenario {
            name: "with a model cache",
            spec: || with(&json!({"model": {"cache": {"volumeClaimTemplate": {"storage": "10Gi"}}}})),
            ..BASE
        },
        Scenario {
            name: "gates changed",
            acts: &[(is_over, |rig| {
                rig.edit(NAME, |object| {
                    object["spec"]["gates"][0]["threshold"] = "9000000".into();
                });
            })],
            over: |rig| is_over(rig) && run(rig) == 2,
            ends: "Failed",
            ..BASE
        },
        Scenario {
            name: "longer than it may take",
            spec: || with(&json!({"timeouts": {"total": "3m"}})),
            trials: &[Trial::Hang],
            ends: "Error DeadlineExceeded",
            ..BASE
        },
        Scenario {
            name: "never ready",
            spec: || with(&json!({"timeouts": {"workloadReady": "2m"}})),
            acts: &[(|_| true, |rig| rig.world.faults.never_ready = true)],
            ends: "Error WorkloadNotReady",
            ..BASE
        },
        Scenario {
            name: "kept until its time is up",
            spec: || with(&json!({"keptSecondsAfterFinished": 60})),
            acts: &[
                (|_| true, |rig| rig.annotate(NAME, "no-cleanup", Some("true"))),
                (is_over, |_| {}),
            ],
            over: |rig| is_over(rig) && rig.server.objects("pods").is_empty(),
            ..BASE
        },
        Scenario {
            name: "deleted with pods that do not end",
            acts: &[
                (trial_runs, |rig| {
                    rig.world.faults.stuck = true;
                    delete(rig);
                }),
                (is_unconfirmed, |rig| rig.world.faults.stuck = false),
            ],
            ..GONE
        },
        Scenario {
            name: "deleted after Dynamo was removed",
            acts: &[(trial_runs, |rig| {
                rig.remove_dynamo();
                delete(rig);
            })],
            ..GONE
        },
        Scenario {
            name: "its namespace is deleted",
            acts: &[(trial_runs, |rig| rig.delete_namespace())],
            ..GONE
        },
        Scenario {
            name: "deleted when its time is up",
            spec: || with(&json!({"ttlSecondsAfterFinished": 30})),
            ..GONE
        },
        Scenario {
            name: "at v1alpha1",
            spec: || with(&json!({"workload": {"dynamo": {"image": "localhost/dynamo:1.1.0"}}})),
            versions: &["v1alpha1"],
            operator_version: "1.1.0",
            ..BASE
        },
    ]
}

/// One worker on both GPUs of its node.
pub fn tensor_parallel() -> Scenario {
    Scenario {
        name: "a worker with two GPUs",
        spec: || with(&json!({"workload": {"dynamo": {"worker": {"gpus": 2}}}})),
        ..BASE
    }
}

/// Runs in a cluster that takes its time, as any does now and then.
pub fn lagging() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "GPUs that are allocated late",
            acts: &[(|_| true, |rig| rig.world.faults.allocates_after = 3)],
            ..BASE
        },
        Scenario {
            name: "a node that is not ready for a moment",
            acts: &[
                (|_| true, |rig| rig.world.faults.starts_after = 40),
                (|rig| pods_for(rig, 20), |rig| rig.world.faults.nodes_unready = true),
                (|rig| pods_for(rig, 24), |rig| rig.world.faults.nodes_unready = false),
            ],
            ..BASE
        },
        Scenario {
            name: "roles that are loaded late",
            acts: &[
                (|_| true, |rig| rig.world.faults.no_roles = true),
                (|rig| refused_for(rig, 14), |rig| rig.world.faults.no_roles = false),
            ],
            ..BASE
        },
        Scenario {
            name: "roles that are gone for a moment while pods start",
            acts: &[
                (|_| true, |rig| rig.world.faults.starts_after = 60),
                (
                    |rig| pods_for(rig, 30),
                    |rig| {
                        rig.world.faults.no_roles = true;
                        let pods = rig.server.objects("pods");
                        let worker = pods
                            .iter()
                            .find(|pod| pod["metadata"]["labels"]["perfvalidation.dev/component"] == "worker");
                        let name = worker.expect("a worker")["metadata"]["name"]
                            .as_str()
                            .unwrap_or_default();
                        rig.server.delete("pods", NAMESPACE, name);
                    },
                ),
                (|rig| refused_for(rig, 6), |rig| rig.world.faults.no_roles = false),
            ],
            ..BASE
        },
        Scenario {
            name: "no roles at all",
            acts: &[(|_| true, |rig| rig.world.faults.no_roles = true)],
            ends: "Error Refused",
            ..BASE
        },
        Scenario {
            name: "trials whose records have absurd numbers",
            trials: &[Trial::Absurd],
            ends: "Error BenchmarkFailed",
            ..BASE
        },
        Scenario {
            name: "trials that fail with one word of 400 KB",
            trials: &[Trial::Endless],
            ends: "Error BenchmarkFailed",
            ..BASE
        },
        Scenario {
            name: "a trial without a result",
            trials: &[Trial::Silent],
            ends: "Error BenchmarkFailed",
            ..BASE
        },
    ]
}
