//! Pod Security level of the namespace, beside what the manifest asks of Dynamo's pods.

use k8s_openapi::api::core::v1::{Namespace, PodSecurityContext, SecurityContext};
use kube::{Api, ResourceExt as _};

use super::asked::Asked;
use super::check::Check;
use crate::error::Error;

/// Label with the level whose violations the API server refuses.
const LABEL: &str = "pod-security.kubernetes.io/enforce";
/// Lines that the level `restricted` requires of Dynamo's pods. The operator's own Jobs always have them.
const REQUIRED: &str = "podTemplate: {spec: {securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}, \
                        containerSecurityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}}";

/// Compares them, where the namespace enforces `restricted`.
pub async fn check(asked: &Asked<'_>) -> Option<Check> {
    let name = asked.object.metadata.namespace.as_deref()?;
    let api: Api<Namespace> = Api::all(asked.session.client.clone());
    let namespace = match api.get_opt(name).await {
        Ok(Some(namespace)) => namespace,
        Ok(None) => {
            return Some(Check::missing(
                format!("namespace {name} does not exist"),
                format!("kubectl create namespace {name}"),
            ));
        }
        Err(error) => {
            return Some(Check::unknown(
                format!(
                    "Pod Security level of {name}: {}",
                    Error::from_call("read Namespaces", error)
                ),
                format!("kubectl get namespace {name} --show-labels"),
            ));
        }
    };
    let level = namespace.labels().get(LABEL)?;
    if level != "restricted" {
        return None;
    }
    let template = &asked.object.spec.pod_template.spec;
    let lacking = lacking(
        template.security_context.as_ref(),
        template.container_security_context.as_ref(),
    );
    if lacking.is_empty() {
        return Some(Check::good(format!(
            "namespace {name} admits the pods of this manifest (Pod Security restricted)"
        )));
    }
    let text = format!(
        "namespace {name} has the Pod Security level restricted and refuses Dynamo's pods: their security context lacks {}",
        lacking.join(", ")
    );
    let next = format!("write into the spec: {REQUIRED}");
    Some(if asked.given() {
        Check::missing(text, next)
    } else {
        Check::worse(text, next)
    })
}

/// Fields that `restricted` requires and neither context has. A field of the container replaces that of the pod.
fn lacking(pod: Option<&PodSecurityContext>, container: Option<&SecurityContext>) -> Vec<&'static str> {
    let non_root = container.and_then(|context| context.run_as_non_root);
    let non_root = non_root.or(pod.and_then(|context| context.run_as_non_root));
    let user = container.and_then(|context| context.run_as_user);
    let user = user.or(pod.and_then(|context| context.run_as_user));
    let profile = container.and_then(|context| context.seccomp_profile.as_ref());
    let profile = profile.or(pod.and_then(|context| context.seccomp_profile.as_ref()));
    let dropped = container
        .and_then(|context| context.capabilities.as_ref())
        .and_then(|capabilities| capabilities.drop.as_ref());
    let required = [
        ("runAsNonRoot", non_root == Some(true)),
        ("a runAsUser that is not root", user != Some(0)),
        (
            "seccompProfile",
            profile.is_some_and(|profile| profile.type_ != "Unconfined"),
        ),
        (
            "allowPrivilegeEscalation",
            container.and_then(|context| context.allow_privilege_escalation) == Some(false),
        ),
        (
            "capabilities.drop",
            dropped.is_some_and(|names| names.iter().any(|name| name == "ALL")),
        ),
    ];
    required
        .iter()
        .filter(|(_, has)| !has)
        .map(|(field, _)| *field)
        .collect()
}
