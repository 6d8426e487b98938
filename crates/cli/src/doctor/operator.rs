//! The operator: its namespace, state, version, refusals, and rights in the namespace of the manifest.

use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use perfval_cluster::{dynamo, resource_attributes};
use perfval_run::dynamo::version::Version;
use perfval_run::readiness::is_ready;
use perfval_run::{Settings, settings};

use super::asked::Asked;
use super::check::Check;
use crate::args::OPERATOR_LABEL;
use crate::error::{Error, INSTALL};

const VERSION_LABEL: &str = "app.kubernetes.io/version";
const OWN: &str = env!("CARGO_PKG_VERSION");
/// The operator's container. A service mesh may put its own before it.
const CONTAINER: &str = "operator";
/// Variable with the namespaces of DCGM exporters, comma-separated; the default ones when it is not set.
pub const EXPORTER_NAMESPACES: &str = "PERFVAL_DCGM_EXPORTER_NAMESPACES";

/// An operator that is there.
pub struct FoundOperator {
    /// Text with which the names of its roles begin.
    pub name: String,
    /// Namespaces in which it looks for DCGM exporters; `None` if they are unknown.
    pub exporter_namespaces: Option<Vec<String>>,
}

/// Checks if the operator runs, and its version.
pub async fn checks(asked: &Asked<'_>) -> (Vec<Check>, Option<FoundOperator>) {
    let namespace = asked.operator_namespace;
    let api: Api<Pod> = Api::namespaced(asked.session.client.clone(), namespace);
    let pods = match api.list(&ListParams::default().labels(OPERATOR_LABEL)).await {
        Ok(pods) => pods.items,
        Err(error) => {
            let why = Error::from_call(&format!("read Pods in {namespace}"), error);
            let check = Check::unknown(
                format!("it is not known whether the operator runs: {why}"),
                format!("kubectl get pods -n {namespace} -l {OPERATOR_LABEL}"),
            );
            return (vec![check], None);
        }
    };
    let Some(first) = pods.first() else {
        return (vec![look_elsewhere(asked).await], None);
    };
    let found = FoundOperator {
        name: deployment(first),
        exporter_namespaces: exporter_namespaces(first),
    };
    let Some(ready) = pods.iter().find(|pod| is_ready(pod)) else {
        let check = Check::missing(
            format!("the operator in {namespace} is not ready"),
            format!("kubectl logs -n {namespace} deployment/{}", found.name),
        );
        return (vec![check], Some(found));
    };
    let version = version(ready);
    let text = match &version {
        Some(version) => format!("the operator {version} is ready in {namespace}"),
        None => format!("the operator is ready in {namespace} (its image names no version)"),
    };
    let settings = refusals(ready, namespace);
    let mut checks = vec![Check::good(text), permission(asked, ready, &settings).await];
    checks.extend(refused_image(asked, ready, &settings));
    // Releases of one minor read and write the same fields.
    if let Some(version) = version.filter(|version| Version::parse(version) != Version::parse(OWN)) {
        checks.push(Check::worse(
            format!("the operator is {version}, and this program is {OWN}: their fields may differ"),
            format!("install kubectl-perfval {version}, or upgrade the operator to {OWN}"),
        ));
    }
    (checks, Some(found))
}

/// Gap of a namespace without an operator. If another namespace has one, a second one could look after the same objects.
async fn look_elsewhere(asked: &Asked<'_>) -> Check {
    let namespace = asked.operator_namespace;
    let api: Api<Pod> = Api::all(asked.session.client.clone());
    // Many people may not list all pods. For them it stays open if an operator runs elsewhere.
    let pods = api.list(&ListParams::default().labels(OPERATOR_LABEL)).await;
    let pods = pods.map(|pods| pods.items).unwrap_or_default();
    let found = pods.iter().find(|pod| is_ready(pod)).or(pods.first());
    match found.and_then(|pod| pod.metadata.namespace.as_deref()) {
        Some(other) => Check::missing(
            format!("no operator runs in {namespace}, but one runs in {other}"),
            asked.doctor(other),
        ),
        None => Check::missing(
            format!("no operator runs in {namespace} (another place: --operator-namespace)"),
            INSTALL,
        ),
    }
}

/// Settings of the operator in a pod, as far as they refuse runs. It may run anywhere as long as they are unknown.
fn refusals(pod: &Pod, namespace: &str) -> Settings {
    let list = |name: &str| variable(pod, name).map(|value| settings::names(value.split(',')));
    let refused = if is_set_elsewhere(pod, settings::REFUSED_NAMESPACES) {
        Vec::new()
    } else {
        list(settings::REFUSED_NAMESPACES).unwrap_or_else(|| settings::refused_by_default(Some(namespace)))
    };
    Settings {
        refused_namespaces: refused,
        aiperf_image: variable(pod, settings::AIPERF_IMAGE).map(str::to_owned),
        benchmark_images: list(settings::BENCHMARK_IMAGES).unwrap_or_default(),
        ..Settings::default()
    }
}

/// Namespaces in which the operator in a pod looks for DCGM exporters; `None` if another object or a flag sets them.
fn exporter_namespaces(pod: &Pod) -> Option<Vec<String>> {
    if is_set_elsewhere(pod, EXPORTER_NAMESPACES) {
        return None;
    }
    let set = variable(pod, EXPORTER_NAMESPACES).map(|value| settings::names(value.split(',')));
    Some(set.unwrap_or_else(|| settings::names(settings::DCGM_EXPORTER_NAMESPACES)))
}

/// Gap of a manifest whose AIPerf image the operator does not permit.
fn refused_image(asked: &Asked<'_>, operator: &Pod, settings: &Settings) -> Option<Check> {
    let image = &asked.object.spec.benchmark.image;
    let variables = [settings::AIPERF_IMAGE, settings::BENCHMARK_IMAGES];
    let is_unknown = variables.iter().any(|name| is_set_elsewhere(operator, name));
    if image.is_empty() || is_unknown || settings.permits_benchmark(image) {
        return None;
    }
    Some(Check::missing(
        format!("the operator does not permit the AIPerf image {image}"),
        format!(
            "remove spec.benchmark.image, or add it to the operator's {}, or to the chart's benchmarkImages",
            settings::BENCHMARK_IMAGES
        ),
    ))
}

/// Checks if an administrator allows runs in the namespace of the manifest. The operator asks for the same right.
async fn permission(asked: &Asked<'_>, operator: &Pod, settings: &Settings) -> Check {
    let namespace = asked.object.metadata.namespace.as_deref().unwrap_or_default();
    if !watches(operator, namespace) {
        return Check::missing(
            format!("the operator does not look at {namespace}"),
            format!(
                "add {namespace} to its {}, or to the chart's watchNamespaces",
                settings::WATCH_NAMESPACES
            ),
        );
    }
    if settings.refuses(namespace) {
        return Check::missing(
            format!("the operator runs nothing in {namespace}"),
            format!(
                "choose another namespace, or change its {} (in the chart: refusedNamespaces, or extraEnv)",
                settings::REFUSED_NAMESPACES
            ),
        );
    }
    let spec = operator.spec.as_ref();
    let account = spec
        .and_then(|spec| spec.service_account_name.as_deref())
        .unwrap_or("default");
    let user = format!("system:serviceaccount:{}:{account}", asked.operator_namespace);
    let (verb, group, resource) = ("create", dynamo::GROUP, dynamo::PLURAL);
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user.clone()),
            groups: Some(vec![
                "system:authenticated".to_owned(),
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{}", asked.operator_namespace),
            ]),
            resource_attributes: Some(resource_attributes(verb, group, resource, Some(namespace))),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let api: Api<SubjectAccessReview> = Api::all(asked.session.client.clone());
    match api.create(&PostParams::default(), &review).await {
        Ok(answer) if answer.status.as_ref().is_some_and(|status| status.allowed) => {
            Check::good(format!("the operator may run validations in {namespace}"))
        }
        Ok(_) => Check::missing(
            format!("the operator may create nothing in {namespace}: an administrator has to allow it"),
            format!(
                "kubectl create rolebinding perfvalidation -n {namespace} --clusterrole {}-runs --serviceaccount {}:{account}",
                deployment(operator),
                asked.operator_namespace
            ),
        ),
        Err(error) => Check::unknown(
            format!(
                "it is not known whether the operator may run validations in {namespace}: {}",
                Error::from_call("ask for the operator's rights", error)
            ),
            format!("kubectl auth can-i {verb} {resource}.{group} -n {namespace} --as {user}"),
        ),
    }
}

/// Returns true if the operator in a pod looks at a namespace; without a list, at each.
fn watches(pod: &Pod, namespace: &str) -> bool {
    let watched = variable(pod, settings::WATCH_NAMESPACES).unwrap_or_default();
    let watched = settings::names(watched.split(','));
    watched.is_empty() || watched.iter().any(|name| name == namespace)
}

/// Value of a variable in a pod; `None` if it is not set, or set from another object.
fn variable<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut variables = containers.flat_map(|container| container.env.iter().flatten());
    let found = variables.find(|variable| variable.name == name && variable.value_from.is_none())?;
    // The API server leaves an empty value out.
    Some(found.value.as_deref().unwrap_or_default())
}

/// Returns true if a flag or another object sets what a variable may set too, so that its value is unknown here.
fn is_set_elsewhere(pod: &Pod, name: &str) -> bool {
    let flag = name.trim_start_matches("PERFVAL_").to_lowercase().replace('_', "-");
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers.into_iter().any(|container| {
        let words = container.command.iter().chain(&container.args).flatten();
        let mut flags = words.filter_map(|word| word.strip_prefix("--"));
        let mut variables = container.env.iter().flatten();
        flags.any(|word| word.split('=').next() == Some(&flag))
            || variables.any(|variable| variable.name == name && variable.value_from.is_some())
            || container.env_from.iter().flatten().next().is_some()
    })
}

/// Name of a pod's Deployment, with which the names of the operator's roles begin.
fn deployment(pod: &Pod) -> String {
    let name = pod.name_any();
    name.rsplitn(3, '-').nth(2).unwrap_or(&name).to_owned()
}

/// The version in the tag of its image; of the chart's label if the image has none.
fn version(pod: &Pod) -> Option<String> {
    let containers = &pod.spec.as_ref()?.containers;
    let own = containers.iter().find(|container| container.name == CONTAINER);
    let image = own.or(containers.first())?.image.as_deref()?;
    let name = image.split('@').next().unwrap_or(image);
    // A colon before the last slash is a registry's port.
    let tag = name.rsplit('/').next().and_then(|name| name.split_once(':'));
    let label = pod.labels().get(VERSION_LABEL).map(String::as_str);
    let known = |text: &str| Version::parse(text).map(|_| text.trim_start_matches('v').to_owned());
    tag.and_then(|(_, tag)| known(tag)).or_else(|| known(label?))
}
