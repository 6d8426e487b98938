//! The files of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// Where its text is: not what a build leaves behind.
const FOLDERS: [&str; 7] = ["crates", "tests", "config", "deploy", "docs", "charts", "README.md"];

/// From the folder of the package, where `cargo test` runs a test. Not `env!`: one target folder serves many checkouts.
pub fn repository() -> PathBuf {
    fs::canonicalize("../..").expect("the repository")
}

/// Files with one of these endings.
pub fn files(root: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = FOLDERS
        .iter()
        .flat_map(|folder| WalkDir::new(root.join(folder)).into_iter().filter_map(Result::ok));
    let ends = |path: &Path| {
        endings
            .iter()
            .any(|ending| path.to_string_lossy().ends_with(&format!(".{ending}")))
    };
    entries
        .map(walkdir::DirEntry::into_path)
        .filter(|path| path.is_file() && ends(path))
        .collect()
}

/// The names of all functions, tests among them.
pub fn functions(root: &Path) -> BTreeSet<String> {
    let sources = files(root, &["rs"])
        .into_iter()
        .map(|file| fs::read_to_string(file).expect("a source"));
    let names = |text: String| {
        let named = text
            .split("fn ")
            .skip(1)
            .filter_map(|rest| rest.split(['(', '<']).next());
        named.map(str::to_owned).collect::<Vec<_>>()
    };
    sources.flat_map(names).collect()
}
