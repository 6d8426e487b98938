//! The definitions the stand-in brings, as Dynamo's operator brings its own.
//!
//! Both versions are always there, one or both are served, and one stores:
//!
//! | served | stored as |
//! |---|---|
//! | both | v1beta1 |
//! | v1beta1 | v1beta1 |
//! | v1alpha1 | v1alpha1 |
//!
//! The real operator converts by webhook. Here conversion is `None`: the API server only changes `apiVersion` and drops what the other
//! version does not know. So with both served v1beta1 keeps `services` as it was written, an object stays in the shape it was made
//! in, and a v1beta1 object looks empty when read at v1alpha1.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, CustomResourceExt};
use serde_json::Value;

use super::error::Error;
use super::{FIELD_MANAGER, v1alpha1, v1beta1};

/// Name of the definition.
pub const NAME: &str = "dynamographdeployments.nvidia.com";

const WORKER_METADATA: &str = include_str!("../../manifests/dynamo/dynamoworkermetadatas.yaml");

/// Which versions of DynamoGraphDeployment the API server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Served {
    /// Like operator 1.2 and newer.
    Both,
    /// Like an operator after the end of v1alpha1.
    #[value(name = "v1beta1")]
    V1beta1,
    /// Like operator 1.0 and 1.1.
    #[value(name = "v1alpha1")]
    V1alpha1,
}

/// Creates or changes both definitions.
pub async fn install(client: &Client, served: Served, dynamo_version: &str) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let metadata: Value = serde_saphyr::from_str(WORKER_METADATA).map_err(|error| Error::Manifest {
        file: "dynamoworkermetadatas.yaml",
        what: error.to_string(),
    })?;
    let name = "dynamoworkermetadatas.nvidia.com";
    api.patch(name, &params, &Patch::Apply(&metadata))
        .await
        .map_err(Error::api("apply CustomResourceDefinition", name))?;
    let graph = graph_deployments(served, dynamo_version);
    api.patch(NAME, &params, &Patch::Apply(&graph))
        .await
        .map_err(Error::api("apply CustomResourceDefinition", NAME))?;
    Ok(())
}

/// The definition of DynamoGraphDeployment.
pub fn graph_deployments(served: Served, dynamo_version: &str) -> Value {
    let mut crd = v1beta1::DynamoGraphDeployment::crd();
    crd.spec
        .versions
        .extend(v1alpha1::DynamoGraphDeployment::crd().spec.versions);
    for version in &mut crd.spec.versions {
        version.storage = (version.name == "v1alpha1") == (served == Served::V1alpha1);
        version.served = version.storage || served == Served::Both;
        version.additional_printer_columns = Some(columns());
    }
    crd.metadata.annotations = Some(
        [(
            "dynamo.nvidia.com/operator-version".to_owned(),
            dynamo_version.to_owned(),
        )]
        .into(),
    );
    let mut crd = serde_json::to_value(crd).unwrap_or_default();
    drop_descriptions(&mut crd);
    if older_than(dynamo_version, (1, 4)) {
        let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/components/items/properties";
        let fields = crd.pointer_mut(fields).and_then(Value::as_object_mut);
        fields.map(|fields| fields.remove("runtimeVersionOverride"));
    }
    crd
}

fn columns() -> Vec<CustomResourceColumnDefinition> {
    [
        ("State", "string", ".status.state"),
        ("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#),
        ("Backend", "string", ".spec.backendFramework"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    .map(|(name, type_, json_path)| CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: json_path.to_owned(),
        ..CustomResourceColumnDefinition::default()
    })
    .into()
}

/// Two whole pod schemas with their prose are over 1 MB, the API server's limit for one object.
fn drop_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // A property may be called description too; then it is an object.
            fields.retain(|name, value| name != "description" || !value.is_string());
            fields.values_mut().for_each(drop_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_descriptions),
        _ => {}
    }
}

/// Whether a version is older than this MAJOR.MINOR.
pub fn older_than(version: &str, bound: (u32, u32)) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    matches!((numbers.next(), numbers.next()), (Some(major), Some(minor)) if (major, minor) < bound)
}

/// The version to work with, if the definition is established: the newest that is served.
pub fn served_version(crd: &CustomResourceDefinition) -> Option<String> {
    let conditions = crd.status.as_ref()?.conditions.as_ref()?;
    let established = conditions
        .iter()
        .any(|known| known.type_ == "Established" && known.status == "True");
    let served = crd.spec.versions.iter().filter(|version| version.served);
    established.then(|| served.map(|version| version.name.clone()).max())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(served: Served) -> Vec<(String, bool, bool)> {
        let crd: CustomResourceDefinition = serde_json::from_value(graph_deployments(served, "1.4.2")).unwrap();
        crd.spec
            .versions
            .into_iter()
            .map(|version| (version.name, version.served, version.storage))
            .collect()
    }

    #[test]
    fn one_version_stores_all_served_ones() {
        let of = |beta, alpha| {
            vec![
                ("v1beta1".to_owned(), beta, beta),
                ("v1alpha1".to_owned(), alpha, alpha),
            ]
        };
        assert_eq!(versions(Served::V1beta1), of(true, false));
        assert_eq!(versions(Served::V1alpha1), of(false, true));
        assert_eq!(
            versions(Served::Both),
            [("v1beta1".to_owned(), true, true), ("v1alpha1".to_owned(), true, false)]
        );
    }

    #[test]
    fn a_runtime_version_may_be_given_from_1_4_on() {
        for (version, known) in [
            ("1.2.1", false),
            ("1.3.1", false),
            ("1.4.2", true),
            ("1.10.0", true),
            ("2.0.0", true),
        ] {
            let crd = graph_deployments(Served::Both, version).to_string();
            assert_eq!(crd.contains("runtimeVersionOverride"), known, "{version}");
        }
    }

    #[test]
    fn nothing_of_a_pod_is_left_unknown() {
        let crd = graph_deployments(Served::Both, "1.4.2");
        let keeps_unknown = crd.to_string().matches("x-kubernetes-preserve-unknown-fields").count();
        assert_eq!(
            keeps_unknown, 1,
            "only services of v1beta1 may keep what the schema does not name"
        );
        assert_eq!(
            crd["metadata"]["annotations"]["dynamo.nvidia.com/operator-version"],
            "1.4.2"
        );
    }
}
