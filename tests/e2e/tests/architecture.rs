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

use architecture::circles::circles;
use architecture::crates::Workspace;

#[test]
fn modules_of_a_shipped_crate_do_not_import_each_other_in_a_circle() {
    let workspace = Workspace::read();
    let mut found = String::new();
    for package in workspace.shipped() {
        let sources = package.sources();
        let circles: Vec<_> = package.roots().flat_map(|root| circles(root, &sources)).collect();
        let circles = circles.iter();
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
