//! The generated files in the repository are what the generator writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use perfval_operator::{docs, rbac};

/// From the folder of the package, where `cargo test` runs a test. Not `env!`: one target folder serves many checkouts.
fn repository() -> PathBuf {
    PathBuf::from("../..")
}

fn assert_generated(file: &Path, generated: &str) {
    let found =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}; run `just generate`", file.display()));
    assert!(
        found == generated,
        "{} differs from its generator: run `just generate`",
        file.display()
    );
}

#[test]
fn the_roles_are_what_the_tables_say() {
    let folder = repository().join("config/rbac");
    let generated = rbac::files();
    for (name, text) in &generated {
        assert_generated(&folder.join(name), text);
    }
    let found: BTreeSet<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected: BTreeSet<_> = generated.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, expected, "config/rbac holds generated files only");
}

#[test]
fn the_pages_are_what_the_code_says() {
    assert_generated(&repository().join("docs/reference.md"), &docs::reference());
    assert_generated(&repository().join("docs/reasons.md"), &docs::reasons());
    assert_generated(&repository().join("docs/metrics.md"), &docs::metrics());
    assert_generated(&repository().join("docs/api.md"), &docs::api());
}
