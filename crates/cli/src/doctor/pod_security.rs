//! Pod Security level and `OpenShift`'s users of the namespace, beside what the manifest asks of the pods of a run.

use std::ops::Range;

use k8s_openapi::api::core::v1::{Namespace, PodSecurityContext, SecurityContext};
use kube::{Api, ResourceExt as _};
use perfval_api::ModelCache;

use super::asked::Asked;
use super::check::Check;
use crate::error::Error;

/// Label with the level whose violations the API server refuses.
const LABEL: &str = "pod-security.kubernetes.io/enforce";
/// Annotation of every namespace on `OpenShift`: the first user that `restricted-v2` admits, and their number.
const USERS: &str = "openshift.io/sa.scc.uid-range";

/// Compares them, where the namespace enforces `restricted` or is one of `OpenShift`.
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
    let is_restricted = namespace.labels().get(LABEL).is_some_and(|level| level == "restricted");
    let users = namespace.annotations().get(USERS).and_then(|text| parse_users(text));
    if !is_restricted && users.is_none() {
        return None;
    }
    let template = &asked.object.spec.pod_template.spec;
    let pod = template.security_context.as_ref();
    let container = template.container_security_context.as_ref();
    let mut lacks = if is_restricted {
        lacking(pod, container)
    } else {
        Vec::new()
    };
    // Another SCC may admit the pods, so only the level makes a gap.
    let is_gap = asked.given() && !lacks.is_empty();
    let refuses = if lacks.is_empty() {
        "is one of OpenShift, and refuses the pods of a run unless another SCC than restricted-v2 admits them"
    } else {
        "has the Pod Security level restricted and refuses Dynamo's pods"
    };
    let fills_cache = matches!(asked.object.spec.model.cache, Some(ModelCache::VolumeClaimTemplate(_)));
    lacks.extend(
        users
            .iter()
            .flat_map(|users| lacking_users(pod, container, users, fills_cache)),
    );
    if lacks.is_empty() {
        let rule = if is_restricted {
            "Pod Security restricted"
        } else {
            "SCC restricted-v2"
        };
        return Some(Check::good(format!(
            "namespace {name} admits the pods of this manifest ({rule})"
        )));
    }
    let text = format!(
        "namespace {name} {refuses}: their security context lacks {}",
        lacks.join(", ")
    );
    let next = format!("write into the spec: {}", required(users.as_ref()));
    Some(if is_gap {
        Check::missing(text, next)
    } else {
        Check::worse(text, next)
    })
}

/// Users in the annotation, such as `1000680000/10000`.
fn parse_users(text: &str) -> Option<Range<i64>> {
    let (first, count) = text.split_once('/')?;
    let (first, count): (i64, i64) = (first.parse().ok()?, count.parse().ok()?);
    Some(first..first.checked_add(count)?)
}

/// Lines that the level `restricted` requires of Dynamo's pods, with one of these users. The operator's own Jobs have the
/// others already.
fn required(users: Option<&Range<i64>>) -> String {
    let user = users.map_or_else(
        || "runAsUser: 1000".to_owned(),
        |users| format!("runAsUser: {0}, fsGroup: {0}", users.start),
    );
    format!(
        "podTemplate: {{spec: {{securityContext: {{runAsNonRoot: true, {user}, seccompProfile: {{type: RuntimeDefault}}}}, \
         containerSecurityContext: {{allowPrivilegeEscalation: false, capabilities: {{drop: [ALL]}}}}}}}}"
    )
}

/// Fields that `restricted` requires and neither context has. A field of the container replaces that of the pod.
fn lacking(pod: Option<&PodSecurityContext>, container: Option<&SecurityContext>) -> Vec<&'static str> {
    let non_root = container.and_then(|context| context.run_as_non_root);
    let non_root = non_root.or(pod.and_then(|context| context.run_as_non_root));
    let profile = container.and_then(|context| context.seccomp_profile.as_ref());
    let profile = profile.or(pod.and_then(|context| context.seccomp_profile.as_ref()));
    let dropped = container
        .and_then(|context| context.capabilities.as_ref())
        .and_then(|capabilities| capabilities.drop.as_ref());
    let required = [
        ("runAsNonRoot", non_root == Some(true)),
        ("a runAsUser that is not root", run_as_user(pod, container) != Some(0)),
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
    missing_fields(&required)
}

/// Fields that `restricted-v2` requires beside the operator's own users. Of the groups it admits the first of the range, and sets it
/// where there is none. The Job that fills a cache has its own.
fn lacking_users(
    pod: Option<&PodSecurityContext>,
    container: Option<&SecurityContext>,
    users: &Range<i64>,
    fills_cache: bool,
) -> Vec<&'static str> {
    let user = run_as_user(pod, container);
    let group = pod.and_then(|context| context.fs_group);
    missing_fields(&[
        (
            "a runAsUser of the namespace's range",
            user.is_some_and(|user| users.contains(&user)),
        ),
        (
            "the first fsGroup of this range",
            group.map_or(!fills_cache, |group| group == users.start),
        ),
    ])
}

fn run_as_user(pod: Option<&PodSecurityContext>, container: Option<&SecurityContext>) -> Option<i64> {
    let user = container.and_then(|context| context.run_as_user);
    user.or(pod.and_then(|context| context.run_as_user))
}

fn missing_fields(required: &[(&'static str, bool)]) -> Vec<&'static str> {
    let missing = required.iter().filter(|(_, has)| !has);
    missing.map(|(field, _)| *field).collect()
}
