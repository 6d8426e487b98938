//! The operator: whether it runs, and in which version.

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use perfval_run::readiness::is_ready;

use super::asked::Asked;
use super::check::Check;
use crate::error::{Error, INSTALL};

const OPERATOR_LABEL: &str = "app.kubernetes.io/name=perfvalidation-operator";
const VERSION_LABEL: &str = "app.kubernetes.io/version";
const OWN: &str = env!("CARGO_PKG_VERSION");

/// Checks if the operator runs, and its version.
pub async fn checks(asked: &Asked<'_>) -> Vec<Check> {
    let namespace = asked.operator_namespace;
    let api: Api<Pod> = Api::namespaced(asked.session.client.clone(), namespace);
    let pods = match api.list(&ListParams::default().labels(OPERATOR_LABEL)).await {
        Ok(pods) => pods.items,
        Err(error) => {
            let why = Error::from_call(&format!("read Pods in {namespace}"), error);
            return vec![Check::unknown(
                format!("whether the operator runs: {why}"),
                format!("kubectl get pods -n {namespace} -l {OPERATOR_LABEL}"),
            )];
        }
    };
    if pods.is_empty() {
        return vec![Check::missing(
            format!("no operator runs in {namespace} (another place: --operator-namespace)"),
            INSTALL,
        )];
    }
    let Some(ready) = pods.iter().find(|pod| is_ready(pod)) else {
        return vec![Check::missing(
            format!("the operator in {namespace} is not ready"),
            format!("kubectl logs -n {namespace} deployment/perfvalidation-operator"),
        )];
    };
    let Some(version) = version(ready) else {
        return vec![Check::good(format!(
            "the operator is ready in {namespace} (its image names no version)"
        ))];
    };
    let mut checks = vec![Check::good(format!("the operator {version} is ready in {namespace}"))];
    // Releases of one minor read and write the same fields.
    if minor(&version) != minor(OWN) {
        checks.push(Check::worse(
            format!("the operator is {version}, and this program is {OWN}: their fields may differ"),
            format!("install kubectl-perfval {version}, or upgrade the operator to {OWN}"),
        ));
    }
    checks
}

/// The version in the tag of its image; of the chart's label if the image has none.
fn version(pod: &Pod) -> Option<String> {
    let image = pod.spec.as_ref()?.containers.first()?.image.as_deref()?;
    let name = image.split('@').next().unwrap_or(image);
    // A colon before the last slash is a registry's port.
    let tag = name.rsplit('/').next().and_then(|name| name.split_once(':'));
    let label = pod.labels().get(VERSION_LABEL).map(String::as_str);
    let known = |text: &str| {
        let text = text.strip_prefix('v').unwrap_or(text);
        minor(text).map(|_| text.to_owned())
    };
    tag.and_then(|(_, tag)| known(tag)).or_else(|| known(label?))
}

/// Major and minor. A version in development, such as `0.1.0-dev`, has those of its release.
fn minor(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.splitn(3, '.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    parts.next().map(|_| (major, minor))
}
