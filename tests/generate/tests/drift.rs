//! The generated files in the repository are those that the generator writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use perfval_generate::{ROLES, files};

/// From the folder of the package, where `cargo test` runs a test. Not `env!`: one target folder serves many checkouts.
fn repository() -> PathBuf {
    PathBuf::from("../..")
}

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
