//! The version in the files of the repository. Between releases it ends in `-dev`.
//!
//! Manifests and programs have this version, so that no two commits share one with a release. Pages have the release that it
//! leads to, because they link to its files.

use std::fs;
use std::path::Path;

use crate::Result;

/// End of a version in development.
const DEV: &str = "-dev";

/// Files with the version of the repository, each with the words around it.
const MANIFESTS: [(&str, &[(&str, &str)]); 5] = [
    ("Cargo.toml", &[("version = \"", "\"\n")]),
    ("tests/fuzz/coverage/Cargo.toml", &[("version = \"", "\"\n")]),
    (
        "charts/perfvalidation-operator/Chart.yaml",
        &[
            ("\nversion: ", "\n"),
            ("appVersion: ", "\n"),
            ("perfvalidation-operator:v", "\n"),
        ],
    ),
    ("config/default/kustomization.yaml", &[("newTag: v", "\n")]),
    ("docs/reference.md", &[("perfvalidation-operator:", "`")]),
];
/// Lock files, in which packages of the workspace have the version.
const LOCKS: [&str; 2] = ["Cargo.lock", "tests/fuzz/coverage/Cargo.lock"];
/// Files with the version of the release.
const PAGES: [&str; 16] = [
    "README.md",
    "CONTRIBUTING.md",
    "charts/perfvalidation-operator/README.md",
    "config/argocd/examples/operator.yaml",
    "config/components/README.md",
    "config/flux/examples/operator.yaml",
    "config/pipelines/argo-workflows.yaml",
    "config/pipelines/github-actions.yaml",
    "config/pipelines/gitlab-ci.yaml",
    "config/pipelines/tekton.yaml",
    "deploy/images/operator.Dockerfile",
    "docs/air-gapped.md",
    "docs/first-run.md",
    "docs/gitops.md",
    "docs/install.md",
    "docs/kubectl-perfval.md",
];

/// The release to which a version leads: the version without `-dev`.
pub fn release_of(version: &str) -> &str {
    version.strip_suffix(DEV).unwrap_or(version)
}

/// Checks a version: three numbers, and `-dev` where it is allowed.
///
/// # Errors
/// With the version to write instead.
pub fn check(version: &str, dev_is_allowed: bool) -> Result<()> {
    let number = |part: &str| part.parse::<u32>().is_ok_and(|number| number.to_string() == part);
    let release = release_of(version);
    if release.split('.').count() != 3 || !release.split('.').all(number) {
        return Err(format!("{version} is no version: write MAJOR.MINOR.PATCH, such as 0.1.0").into());
    }
    if release != version && !dev_is_allowed {
        return Err(format!("{version} is in development and is not released: write {release}").into());
    }
    Ok(())
}

/// Writes a version into every file of a repository that has the version `from`.
///
/// # Errors
/// If a file has another version, or none.
pub fn write(root: &Path, from: &str, to: &str) -> Result<()> {
    for (path, places) in MANIFESTS {
        edit(root, path, |text| replaced(text, places, from, to))?;
    }
    for path in LOCKS {
        edit(root, path, |text| locked(text, from, to))?;
    }
    let (from, to) = (release_of(from), release_of(to));
    for path in PAGES.iter().filter(|_| from != to) {
        edit(root, path, |text| {
            Some(text.replace(from, to)).filter(|changed| changed != text)
        })?;
    }
    Ok(())
}

fn edit(root: &Path, path: &str, change: impl Fn(&str) -> Option<String>) -> Result<()> {
    let file = root.join(path);
    let text = fs::read_to_string(&file).map_err(|error| format!("{path}: {error}"))?;
    let changed = change(&text).ok_or_else(|| format!("{path} does not have the version that Cargo.toml has"))?;
    Ok(fs::write(file, changed)?)
}

/// The text with the other version in each place.
fn replaced(text: &str, places: &[(&str, &str)], from: &str, to: &str) -> Option<String> {
    places.iter().try_fold(text.to_owned(), |text, (before, after)| {
        let old = format!("{before}{from}{after}");
        text.contains(&old)
            .then(|| text.replace(&old, &format!("{before}{to}{after}")))
    })
}

/// A lock file in which the packages of the workspace, which have no source, have the other version.
fn locked(lock: &str, from: &str, to: &str) -> Option<String> {
    let (old, new) = (format!("\nversion = \"{from}\"\n"), format!("\nversion = \"{to}\"\n"));
    let packages = lock.split("[[package]]").map(|package| {
        if package.contains("\nsource = ") {
            package.to_owned()
        } else {
            package.replacen(&old, &new, 1)
        }
    });
    let changed = packages.collect::<Vec<_>>().join("[[package]]");
    lock.contains(&old).then_some(changed)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const VERSION: &str = env!("CARGO_PKG_VERSION");

    fn read(root: &Path, path: &str) -> String {
        fs::read_to_string(root.join(path)).expect("a file")
    }

    /// Checks that a write changed the version and left longer numbers alone.
    fn assert_changed(path: &str, root: &Path, from: &str, to: &str) {
        let (before, after) = (read(Path::new("../.."), path), read(root, path));
        assert_eq!(before.lines().count(), after.lines().count(), "{path}");
        for (line, next) in before.lines().zip(after.lines()).filter(|(line, next)| line != next) {
            assert_eq!(line.replace(from, to), next, "{path}");
            let parts: Vec<&str> = line.split(from).collect();
            let is_longer = |around: &[&str]| {
                let digit = |letter: char| letter.is_ascii_digit();
                around[0].ends_with(|letter: char| digit(letter) || letter == '.') || around[1].starts_with(digit)
            };
            assert!(!parts.windows(2).any(is_longer), "{path}: {line}");
        }
    }

    /// A copy of the files that have the version.
    fn copy() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let manifests = MANIFESTS.iter().map(|(path, _)| *path);
        for path in manifests.chain(PAGES).chain(LOCKS) {
            let to = folder.path().join(path);
            fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            fs::copy(PathBuf::from("../..").join(path), to).expect("a copy");
        }
        folder
    }

    #[test]
    fn a_version_in_development_is_not_released() {
        for version in ["0.1.0", "1.20.3"] {
            assert!(check(version, false).is_ok(), "{version}");
        }
        assert!(check("0.1.0-dev", true).is_ok());
        let error = check("0.1.0-dev", false).unwrap_err().to_string();
        assert!(error.ends_with("write 0.1.0"), "{error}");
        for version in ["v0.1.0", "0.1", "0.1.0-rc.1", "0.01.0", "0.1.0.0", ""] {
            assert!(check(version, true).is_err(), "{version}");
        }
    }

    #[test]
    fn each_file_has_the_version_and_gets_another() {
        let folder = copy();
        let root = folder.path();
        write(root, VERSION, "7.8.9").expect("each file has the version");
        for (path, places) in MANIFESTS {
            let text = read(root, path);
            for (before, after) in places {
                assert!(text.contains(&format!("{before}7.8.9{after}")), "{path}: {before}");
            }
        }
        assert!(read(root, "Cargo.lock").contains("name = \"perfval-release\"\nversion = \"7.8.9\""));
        assert!(read(root, "README.md").contains("--version 7.8.9"));
        assert!(read(root, "config/flux/examples/operator.yaml").contains("semver: \"~7.8.9\""));
        for path in MANIFESTS.iter().map(|(path, _)| *path).chain(LOCKS) {
            assert_changed(path, root, VERSION, "7.8.9");
        }
        for path in PAGES {
            assert_changed(path, root, release_of(VERSION), "7.8.9");
        }
        // The next version in development, and back.
        write(root, "7.8.9", "8.0.0-dev").expect("each file has the version");
        assert!(read(root, "README.md").contains("--version 8.0.0 "));
        write(root, "8.0.0-dev", VERSION).expect("each file has the version");
        for path in MANIFESTS.iter().map(|(path, _)| *path).chain(PAGES).chain(LOCKS) {
            assert_eq!(read(root, path), read(Path::new("../.."), path), "{path}");
        }
    }

    #[test]
    fn a_file_with_another_version_is_named() {
        let folder = copy();
        fs::write(folder.path().join("config/default/kustomization.yaml"), "newTag: v9\n").expect("written");
        let error = write(folder.path(), VERSION, "7.8.9").unwrap_err().to_string();
        assert!(error.contains("config/default/kustomization.yaml"), "{error}");
    }

    #[test]
    fn packages_of_others_keep_their_version_in_the_lock_file() {
        let own = "[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let theirs = "[[package]]\nname = \"theirs\"\nversion = \"0.1.0\"\nsource = \"registry\"\n";
        let changed = locked(&format!("{own}{theirs}"), "0.1.0", "0.2.0").expect("one changes");
        assert_eq!(changed, format!("{}{theirs}", own.replace("0.1.0", "0.2.0")));
    }
}
