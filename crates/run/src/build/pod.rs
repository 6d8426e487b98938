//! Parts that pods of different kinds share: where they run, what they may do, what they write to.

use k8s_openapi::DeepMerge;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, Container, EmptyDirVolumeSource, EnvVar, NodeAffinity, NodeSelector,
    NodeSelectorRequirement, NodeSelectorTerm, PodSecurityContext, PodSpec, PodTemplateSpec, PreferredSchedulingTerm,
    SeccompProfile, SecurityContext, Volume, VolumeMount,
};
use perfval_sizing::GPU_PRESENT;

use super::meta::{job_metadata, labels, pod_metadata};
use crate::Run;

/// Label in which each kubelet reports its architecture.
pub const ARCHITECTURE_LABEL: &str = "kubernetes.io/arch";
/// Architectures of the operator's images, as the workflow `release` builds them.
pub const OWN_ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// Binds a pod to a node by the node's name: the label `kubernetes.io/hostname` may differ from it.
pub fn pin(node: &str) -> Affinity {
    let term = NodeSelectorTerm {
        match_fields: Some(vec![requirement("metadata.name", "In", Some(vec![node.to_owned()]))]),
        match_expressions: None,
    };
    affinity(term, None)
}

/// Prefers nodes without GPUs, because on another one the pod could take CPUs from a run that measures there. In a
/// cluster without NVIDIA's GPU feature discovery no node has the label, and all are equal. Only nodes of an architecture
/// that the operator's images have are possible.
pub fn away_from_gpus() -> Affinity {
    let without_gpus = requirement(GPU_PRESENT, "DoesNotExist", None);
    let architectures = OWN_ARCHITECTURES.map(str::to_owned).to_vec();
    let can_run = requirement(ARCHITECTURE_LABEL, "In", Some(architectures));
    let expressions = |requirement| NodeSelectorTerm {
        match_expressions: Some(vec![requirement]),
        match_fields: None,
    };
    let preferred = PreferredSchedulingTerm {
        weight: 100,
        preference: expressions(without_gpus),
    };
    affinity(expressions(can_run), Some(vec![preferred]))
}

fn requirement(key: &str, operator: &str, values: Option<Vec<String>>) -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values,
    }
}

fn affinity(required: NodeSelectorTerm, preferred: Option<Vec<PreferredSchedulingTerm>>) -> Affinity {
    Affinity {
        node_affinity: Some(NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(NodeSelector {
                node_selector_terms: vec![required],
            }),
            preferred_during_scheduling_ignored_during_execution: preferred,
        }),
        ..Affinity::default()
    }
}

/// Settings that the "restricted" pod security standard requires of a pod.
pub fn restricted_pod(user: i64) -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(user),
        run_as_group: Some(user),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..PodSecurityContext::default()
    }
}

/// Settings that the "restricted" pod security standard requires of a container, and a root file system that cannot
/// be written.
pub fn restricted_container() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        ..SecurityContext::default()
    }
}

/// Fields of the spec's `podTemplate` that any pod of a run has, over defaults for what may be done in it.
pub fn templated(run: &Run<'_>, default: Option<PodSecurityContext>) -> PodSpec {
    let template = &run.spec().pod_template.spec;
    PodSpec {
        security_context: over(default, template.security_context.clone()),
        runtime_class_name: template.runtime_class_name.clone(),
        priority_class_name: template.priority_class_name.clone(),
        image_pull_secrets: non_empty(template.image_pull_secrets.clone()),
        ..PodSpec::default()
    }
}

/// The same for a container.
pub fn templated_container(run: &Run<'_>, default: Option<SecurityContext>) -> Container {
    let template = &run.spec().pod_template.spec;
    Container {
        image_pull_policy: Some(template.image_pull_policy.as_str().to_owned()),
        security_context: over(default, template.container_security_context.clone()),
        ..Container::default()
    }
}

/// A Job of one pod that runs once and ends after this many seconds.
pub fn job(run: &Run<'_>, name: String, component: &str, seconds: i64, pod: PodSpec) -> Job {
    Job {
        metadata: job_metadata(run, name, component),
        spec: Some(JobSpec {
            // A retry would restart a download, or measure again.
            backoff_limit: Some(0),
            active_deadline_seconds: Some(seconds),
            template: PodTemplateSpec {
                metadata: Some(pod_metadata(run, labels(run, component))),
                spec: Some(PodSpec {
                    restart_policy: Some("Never".to_owned()),
                    automount_service_account_token: Some(false),
                    enable_service_links: Some(false),
                    tolerations: non_empty(run.status().state.plan.tolerations.clone()),
                    ..pod
                }),
            },
            ..JobSpec::default()
        }),
        status: None,
    }
}

/// A default with the fields that are given instead of its own.
fn over<T: DeepMerge>(mut default: Option<T>, given: Option<T>) -> Option<T> {
    default.merge_from(given);
    default
}

/// An empty directory that lives as long as its pod.
pub fn scratch(name: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Volume::default()
    }
}

/// Mounts a volume to be written.
pub fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}

/// A variable with a value.
pub fn var(name: &str, value: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        value_from: None,
    }
}

/// The user's variables, then the operator's; one name never appears twice, so no variable of the operator can be
/// overridden.
pub fn ours_win(user: &[EnvVar], ours: Vec<EnvVar>) -> Vec<EnvVar> {
    let mut env: Vec<EnvVar> = user
        .iter()
        .filter(|var| ours.iter().all(|own| own.name != var.name))
        .cloned()
        .collect();
    env.extend(ours);
    env
}

/// A list as the API wants it: absent rather than empty.
pub fn non_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
