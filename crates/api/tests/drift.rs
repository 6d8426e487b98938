//! The checked-in CustomResourceDefinition is the one the types give.

#[test]
fn the_crd_file_is_the_generated_one() {
    let path = "../../config/crd/perfvalidations.perfvalidation.dev.yaml";
    let file = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        file == perfval_api::crd_yaml().unwrap(),
        "config/crd does not fit crates/api: run `just generate`"
    );
}
