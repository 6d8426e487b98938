use std::collections::BTreeSet;

use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::core::DeserializeGuard;
use perfval_api::{PerfValidation, meta};
use perfval_cluster::{own_right, resource_attributes};

use super::asked::Asked;
use super::check::Check;
use super::operator::{self, FoundOperator};
use crate::error::{Error, INSTALL, is_missing_kind};

/// The first version with `resource.k8s.io/v1`.
const MINOR: u32 = 34;
const CRD: &str = "perfvalidations.perfvalidation.dev";
/// The name with which the names of the operator's roles begin, unless its release has another name.
const OPERATOR: &str = "perfvalidation-operator";

/// Rights that people need: verb, group, resource, and purpose.
const RIGHTS: [(&str, &str, &str, &str); 6] = [
    ("create", meta::GROUP, "perfvalidations", "run"),
    ("patch", meta::GROUP, "perfvalidations", "rerun and suspend"),
    ("watch", meta::GROUP, "perfvalidations", "watch"),
    ("get", "", "configmaps", "read results"),
    ("list", "", "pods", "see pods"),
    ("get", "", "pods/log", "read logs"),
];

/// API server, definition, operator, rights; and the operator, if there is one.
pub async fn checks(asked: &Asked<'_>) -> Result<(Vec<Check>, Option<FoundOperator>), Error> {
    let mut checks = vec![server(asked).await?];
    checks.push(definition(asked).await);
    let (of_operator, found) = operator::checks(asked).await;
    checks.extend(of_operator);
    let name = found.as_ref().map_or(OPERATOR, |found| found.name.as_str());
    checks.push(rights(asked, name).await);
    Ok((checks, found))
}

/// Without an answer to this, no other question makes sense.
async fn server(asked: &Asked<'_>) -> Result<Check, Error> {
    let version = asked.session.client.apiserver_version().await;
    let version = version.map_err(|error| Error::from_call("read the version of the cluster", error))?;
    Ok(version_check(&version))
}

fn version_check(version: &Info) -> Check {
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    };
    let name = &version.git_version;
    match (number(&version.major), number(&version.minor)) {
        (Some(major), Some(minor)) if (major, minor) < (1, MINOR) => Check::missing(
            format!("Kubernetes is {name}, and 1.{MINOR} is needed"),
            "upgrade the cluster (docs/compatibility.md lists the tested versions)",
        ),
        (Some(_), Some(_)) => Check::good(format!("Kubernetes {name}")),
        _ => Check::unknown(
            format!(
                "it is not known whether Kubernetes {name:?} is 1.{MINOR} or later: the cluster reports no version"
            ),
            "kubectl version",
        ),
    }
}

async fn definition(asked: &Asked<'_>) -> Check {
    let namespace = asked.object.metadata.namespace.as_deref().unwrap_or_default();
    // An object that this program cannot parse is no gap.
    let api: Api<DeserializeGuard<PerfValidation>> = Api::namespaced(asked.session.client.clone(), namespace);
    match api.list(&ListParams::default().limit(1)).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if is_missing_kind(&status) => {
            return Check::missing("PerfValidations are not known to the cluster", INSTALL);
        }
        Err(error) => {
            return Check::unknown(
                Error::from_call("read PerfValidations", error).to_string(),
                format!("kubectl get perfvalidations -n {namespace}"),
            );
        }
    }
    let api: Api<CustomResourceDefinition> = Api::all(asked.session.client.clone());
    let (mut lacking, mut differing, mut unread) = (Vec::new(), Vec::new(), None);
    for expected in perfval_api::crds() {
        let name = expected.metadata.name.as_deref().unwrap_or_default();
        let kind = expected.spec.names.kind;
        match api.get_opt(name).await {
            // Fields that the API server does not know it drops without a word.
            Ok(Some(installed)) if installed.spec.versions == expected.spec.versions => {}
            Ok(Some(_)) => differing.push(kind),
            Ok(None) => lacking.push(kind),
            // Only some people may read definitions.
            Err(kube::Error::Api(status)) if status.code == 403 && name == CRD => {
                return Check::good("the cluster serves PerfValidations");
            }
            Err(error) => unread = Some((Error::from_call("read CustomResourceDefinitions", error), kind)),
        }
    }
    if !lacking.is_empty() {
        Check::missing(format!("the cluster does not serve {}", lacking.join(" and ")), INSTALL)
    } else if let Some((error, kind)) = unread {
        Check::unknown(format!("{kind}: {error}"), "kubectl get crd")
    } else if !differing.is_empty() {
        Check::worse(
            format!(
                "{}: known, in another version than this program's: fields may be missing",
                differing.join(" and ")
            ),
            format!("{INSTALL}, or take the program of that version"),
        )
    } else {
        Check::good("the cluster serves PerfValidations in this program's version")
    }
}

async fn rights(asked: &Asked<'_>, operator: &str) -> Check {
    let namespace = asked.object.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<SelfSubjectAccessReview> = Api::all(asked.session.client.clone());
    let (mut lacking, mut roles, mut unread) = (Vec::new(), BTreeSet::new(), None);
    for (verb, group, resource, what) in RIGHTS {
        let review = own_right(resource_attributes(verb, group, resource, Some(namespace)));
        match api.create(&PostParams::default(), &review).await {
            Ok(answer) if answer.status.as_ref().is_some_and(|status| status.allowed) => {}
            Ok(_) => {
                lacking.push(what);
                roles.insert(if group == meta::GROUP {
                    format!("{operator}-edit")
                } else {
                    "view".to_owned()
                });
            }
            Err(error) => unread = Some(Error::from_call("ask for your rights", error)),
        }
    }
    // A right that is missing is a gap, even if another could not be asked for.
    if lacking.is_empty() {
        return match unread {
            None => Check::good(format!("you may run, watch and read results in {namespace}")),
            Some(error) => Check::unknown(
                format!("your rights: {error}"),
                format!("kubectl auth can-i --list -n {namespace}"),
            ),
        };
    }
    Check::missing(
        format!("in {namespace} you may not {}", lacking.join(", not ")),
        roles
            .into_iter()
            .map(|role| format!("kubectl create rolebinding {role} --clusterrole={role} --user=YOU -n {namespace}"))
            .collect::<Vec<_>>()
            .join("; ")
            + "   (as an administrator)",
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::CheckResult;
    use super::*;

    #[test]
    fn an_old_cluster_is_named_and_one_without_a_version_is_not_called_good() {
        let found = |major: &str, minor: &str| {
            let version = Info {
                major: major.to_owned(),
                minor: minor.to_owned(),
                git_version: format!("v{major}.{minor}.1"),
                ..Info::default()
            };
            version_check(&version).found
        };
        assert_eq!(found("1", "33"), CheckResult::Missing);
        assert_eq!(found("1", "9"), CheckResult::Missing);
        assert_eq!(found("1", "34"), CheckResult::Good);
        // As managed clusters name theirs.
        assert_eq!(found("1", "35+"), CheckResult::Good);
        assert_eq!(found("1", "33+"), CheckResult::Missing);
        assert_eq!(found("", ""), CheckResult::Unknown);
    }
}
