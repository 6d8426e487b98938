//! The direction between crates, on workspaces that are not there.

use serde_json::json;

use super::crates::Workspace;

/// What is wrong with a crate that has these dependencies: name, kind, folder.
fn wrong(package: &str, dependencies: &[(&str, Option<&str>, &str)], manifest: &str) -> Vec<String> {
    let dependencies: Vec<_> = dependencies
        .iter()
        .map(|(name, kind, folder)| json!({"name": name, "kind": kind, "path": format!("/w/{folder}")}))
        .chain([json!({"name": "serde"})])
        .collect();
    let workspace: Workspace = serde_json::from_value(json!({
        "workspace_root": "/w",
        "packages": [{
            "manifest_path": format!("/w/crates/{package}/Cargo.toml"),
            "targets": [],
            "dependencies": dependencies,
        }],
    }))
    .expect("a workspace");
    workspace.wrong_way(&workspace.packages[0], manifest)
}

#[test]
fn a_dependency_against_the_direction_is_named_with_its_line() {
    let manifest =
        "[package]\nname = \"perfval-run\"\n\n[dependencies]\nserde = \"1\"\nperfval-cluster.workspace = true\n";
    assert_eq!(
        wrong("run", &[("perfval-cluster", None, "crates/cluster")], manifest),
        [
            "crates/run/Cargo.toml, line 6: `perfval-cluster.workspace = true`: run may use only api, sizing, verdict of ours"
        ]
    );
}

#[test]
fn sizing_and_verdict_do_not_know_each_other() {
    let manifest = "[dependencies.perfval-verdict]\npath = \"../verdict\"\n";
    assert_eq!(
        wrong("sizing", &[("perfval-verdict", None, "crates/verdict")], manifest),
        ["crates/sizing/Cargo.toml, line 1: `[dependencies.perfval-verdict]`: sizing may use only api of ours"]
    );
}

#[test]
fn test_equipment_is_for_tests_only() {
    let manifest =
        "[dev-dependencies]\ntestkit = \"1\"\n[build-dependencies]\ntestkit = { path = \"../../tests/testkit\" }\n";
    let note = "crates/api/Cargo.toml, line 4: `testkit = { path = \"../../tests/testkit\" }`: nothing that ships may use \
                what is only for tests";
    assert_eq!(
        wrong("api", &[("testkit", Some("build"), "tests/testkit")], manifest),
        [note]
    );
    assert_eq!(
        wrong("api", &[("testkit", Some("dev"), "tests/testkit")], manifest),
        [""; 0]
    );
}

#[test]
fn a_crate_without_a_place_is_named() {
    assert_eq!(
        wrong("extra", &[], ""),
        ["crates/extra has no row in MAY_USE, the table of what a crate may use"]
    );
}
