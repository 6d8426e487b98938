//! The generated files in the repository are those that the generator writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSONSchemaProps, JSONSchemaPropsOrArray};
use perfval_chart::render::repository;
use perfval_generate::{ROLES, files};

#[test]
fn generated_files_are_up_to_date() {
    for (file, generated) in files().expect("the CRD as YAML") {
        let found = fs::read_to_string(repository().join(&file));
        let found = found.unwrap_or_else(|error| panic!("{}: {error}; run `just generate`", file.display()));
        assert!(
            found == generated,
            "{} differs from its generator: run `just generate`",
            file.display()
        );
    }
}

#[test]
fn the_folder_of_roles_contains_generated_files_only() {
    let found: BTreeSet<_> = fs::read_dir(repository().join(ROLES))
        .expect("the folder")
        .map(|entry| Path::new(ROLES).join(entry.expect("a file").file_name()))
        .collect();
    let generated = files().expect("the CRD as YAML").into_iter().map(|(file, _)| file);
    let generated: BTreeSet<_> = generated.filter(|file| file.starts_with(ROLES)).collect();
    assert_eq!(found, generated);
}

/// Counts the fields of a schema, and those of all objects in it.
fn count_fields(schema: &JSONSchemaProps) -> usize {
    // `operatorState`: no part of the API, also where lists select by it.
    if schema.x_kubernetes_preserve_unknown_fields == Some(true) {
        return 0;
    }
    let item = match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => count_fields(item),
        _ => 0,
    };
    let fields = schema.properties.iter().flat_map(|fields| fields.values());
    item + fields.map(|field| 1 + count_fields(field)).sum::<usize>()
}

/// A field of the status stays for ever. What only the operator needs is in `operatorState`, which counts as one field.
#[test]
fn the_status_has_at_most_95_fields() {
    let [version] = perfval_api::crd().spec.versions.try_into().expect("one version");
    let schema = version.schema.and_then(|schema| schema.open_api_v3_schema);
    let root = schema.and_then(|schema| schema.properties).expect("a schema");
    let fields = count_fields(&root["status"]);
    assert!(fields <= 95, "{fields} fields");
    assert!(fields >= 60, "the test looks at the status: {fields} fields");
}
