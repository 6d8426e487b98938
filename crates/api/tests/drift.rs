//! The checked-in definitions of the custom resources are those that the types give.

use kube::ResourceExt as _;

#[test]
fn the_crd_files_are_the_generated_ones() {
    for crd in perfval_api::crds() {
        let path = format!("../../config/crd/{}.yaml", crd.name_any());
        let file = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            file == perfval_api::crd_yaml(&crd).unwrap(),
            "{path} does not fit crates/api: run `just generate`"
        );
    }
}
