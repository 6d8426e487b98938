use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, PostParams};
use perfval_api::{PerfValidation, meta};
use perfval_run::readiness::is_ready;

use super::Asked;
use super::check::Check;
use crate::error::{Error, is_missing_kind};

/// The first version with `resource.k8s.io/v1`.
const MINOR: u32 = 34;
const CRD: &str = "perfvalidations.perfvalidation.dev";
const INSTALL: &str = "kubectl apply --server-side -k config/default";
const OPERATOR_LABEL: &str = "app.kubernetes.io/name=perfvalidation-operator";

/// What people need to do: verb, group, resource, and what for.
const RIGHTS: [(&str, &str, &str, &str); 6] = [
    ("create", meta::GROUP, "perfvalidations", "run"),
    ("patch", meta::GROUP, "perfvalidations", "rerun and suspend"),
    ("watch", meta::GROUP, "perfvalidations", "watch"),
    ("get", "", "configmaps", "read results"),
    ("list", "", "pods", "see pods"),
    ("get", "", "pods/log", "read logs"),
];

/// API server, definition, operator, rights.
pub async fn checks(asked: &Asked<'_>) -> Result<Vec<Check>, Error> {
    let mut checks = vec![server(asked).await?];
    checks.extend(definition(asked).await?);
    checks.push(operator(asked).await);
    checks.push(rights(asked).await);
    Ok(checks)
}

/// Without an answer to this, no other question makes sense.
async fn server(asked: &Asked<'_>) -> Result<Check, Error> {
    let version = asked.session.client.apiserver_version().await;
    let version = version.map_err(|error| Error::of_call("read the version of the cluster", error))?;
    let minor: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
    Ok(match minor.parse::<u32>() {
        Ok(minor) if minor < MINOR => Check::missing(
            format!("Kubernetes is {}, and 1.{MINOR} is needed", version.git_version),
            "upgrade the cluster (docs/compatibility.md says what was tested)",
        ),
        _ => Check::good(format!("Kubernetes {}", version.git_version)),
    })
}

async fn definition(asked: &Asked<'_>) -> Result<Option<Check>, Error> {
    let api: Api<PerfValidation> = asked.session.validations();
    match api.list(&ListParams::default().limit(1)).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if is_missing_kind(&status) => {
            return Ok(Some(Check::missing(
                "PerfValidations are not known to the cluster",
                INSTALL,
            )));
        }
        Err(error) => {
            return Ok(Some(Check::unknown(
                Error::of_call("read PerfValidations", error).to_string(),
            )));
        }
    }
    let api: Api<CustomResourceDefinition> = Api::all(asked.session.client.clone());
    let Ok(Some(installed)) = api.get_opt(CRD).await else {
        return Ok(Some(Check::good("PerfValidations are known")));
    };
    // Fields that the API server does not know it drops without a word.
    let same = installed.spec.versions == perfval_api::crd().spec.versions;
    Ok(Some(if same {
        Check::good("PerfValidations are known, as this program knows them")
    } else {
        Check::worse(
            "PerfValidations are known, in another version than this program's: fields may be missing",
            "kubectl apply --server-side -k config/crd, or take the program of that version",
        )
    }))
}

async fn operator(asked: &Asked<'_>) -> Check {
    let namespace = asked.operator_namespace;
    let api: Api<Pod> = Api::namespaced(asked.session.client.clone(), namespace);
    match api.list(&ListParams::default().labels(OPERATOR_LABEL)).await {
        Ok(pods) if pods.items.iter().any(is_ready) => Check::good(format!("the operator is ready in {namespace}")),
        Ok(pods) if pods.items.is_empty() => Check::missing(
            format!("no operator runs in {namespace} (another place: --operator-namespace)"),
            INSTALL,
        ),
        Ok(_) => Check::missing(
            format!("the operator in {namespace} is not ready"),
            format!("kubectl logs -n {namespace} deployment/perfvalidation-operator"),
        ),
        Err(error) => Check::unknown(format!(
            "whether the operator runs: {}",
            Error::of_call(&format!("read Pods in {namespace}"), error)
        )),
    }
}

async fn rights(asked: &Asked<'_>) -> Check {
    let namespace = asked.object.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<SelfSubjectAccessReview> = Api::all(asked.session.client.clone());
    let mut lacking = Vec::new();
    for (verb, group, resource, what) in RIGHTS {
        let (resource, subresource) = resource
            .split_once('/')
            .map_or((resource, None), |(one, two)| (one, Some(two)));
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(namespace.to_owned()),
                    verb: Some(verb.to_owned()),
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    subresource: subresource.map(str::to_owned),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        match api.create(&PostParams::default(), &review).await {
            Ok(answer) if answer.status.as_ref().is_some_and(|status| status.allowed) => {}
            Ok(_) => lacking.push(what),
            Err(error) => {
                return Check::unknown(format!("your rights: {}", Error::of_call("ask for your rights", error)));
            }
        }
    }
    if lacking.is_empty() {
        return Check::good(format!("you may run, watch and read results in {namespace}"));
    }
    Check::missing(
        format!("in {namespace} you may not {}", lacking.join(", not ")),
        format!(
            "kubectl create rolebinding perfval --clusterrole=edit --user=YOU -n {namespace}   (as an administrator)"
        ),
    )
}
