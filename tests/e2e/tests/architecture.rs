//! The shape of what ships: which crate may use which, and no modules that import each other in a circle.

mod architecture {
    pub mod circles;
    pub mod crates;
    pub mod declared;
    pub mod imports;
    mod on_small_crates;
    mod on_small_workspaces;
    pub mod tree;
}

use std::path::Path;

use architecture::circles::{circles, folder_circles};
use architecture::crates::Workspace;
use perfval_verdict::diagnosis::cause::Cause;
use walkdir::WalkDir;

#[test]
fn modules_of_a_shipped_crate_do_not_import_each_other_in_a_circle() {
    let workspace = Workspace::read();
    let mut found = String::new();
    for package in workspace.shipped() {
        let sources = package.sources();
        let of_root = |root| {
            circles(root, &sources)
                .into_iter()
                .chain(folder_circles(root, &sources))
        };
        let circles = package.roots().flat_map(of_root);
        found.extend(circles.map(|circle| format!("\ncrates/{}: {circle}", package.name())));
    }
    assert!(
        found.is_empty(),
        "modules import each other; move what both need into a module of its own:\n{found}"
    );
}

#[test]
fn crates_that_ship_depend_on_each_other_in_one_direction() {
    let workspace = Workspace::read();
    let wrong: Vec<_> = workspace
        .shipped()
        .flat_map(|package| workspace.wrong_way(package, &package.manifest()))
        .collect();
    assert!(
        wrong.is_empty(),
        "dependencies that point the wrong way:\n{}",
        wrong.join("\n")
    );
}

/// Text of every Rust file below these folders, without the table of causes.
fn text(folders: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = folders.iter().flat_map(|folder| WalkDir::new(root.join(folder)));
    let paths = entries.map(|entry| entry.expect("a folder can be listed").into_path());
    let is_rust = |path: &Path| path.extension().is_some_and(|extension| extension == "rs");
    let files = paths.filter(|path| is_rust(path) && !path.ends_with("diagnosis/cause.rs"));
    let texts = files.map(|path| std::fs::read_to_string(path).expect("a source is text"));
    texts.collect()
}

/// Their table uses all causes, so rustc reports none that no rule creates.
#[test]
fn each_cause_has_a_rule_and_a_test() {
    let rules = text(&["crates/verdict/src", "crates/run/src"]);
    let tests = text(&["crates/verdict/tests", "crates/run/tests", "tests/fidelity/src"]);
    for cause in Cause::ALL {
        let rule = format!("Cause::{}", cause.name());
        assert!(rules.contains(&rule), "no rule of {cause:?}");
        assert!(tests.contains(cause.name()), "no test of {cause:?}");
    }
}
