//! Names of the files of a release. Pages link to them.

use std::collections::BTreeSet;

use crate::Result;

/// Program of the operator.
pub const OPERATOR: &str = "perfvalidation-operator";
/// Program that kubectl finds.
pub const PLUG_IN: &str = "kubectl-perfval";
/// Programs, each with the folder of its package under `crates/`.
pub const PROGRAMS: [(&str, &str); 3] = [(OPERATOR, "operator"), ("perfval-runner", "runner"), (PLUG_IN, "cli")];
/// Platforms of the plug-in: its operating system and architecture as files and krew name them, and Rust's target.
pub const PLATFORMS: [(&str, &str, &str); 4] = [
    (LINUX, "amd64", "x86_64-unknown-linux-gnu"),
    (LINUX, "arm64", "aarch64-unknown-linux-gnu"),
    ("darwin", "amd64", "x86_64-apple-darwin"),
    ("darwin", "arm64", "aarch64-apple-darwin"),
];
/// Operating system of the programs that run in a cluster.
pub const LINUX: &str = "linux";
/// All manifests in one file, for `kubectl apply --server-side -f`.
pub const INSTALL: &str = "install.yaml";
/// Definitions of the resources alone.
pub const CRDS: [&str; 4] = [
    "nodeperformances.perfvalidation.dev.yaml",
    "perfbaselines.perfvalidation.dev.yaml",
    "perfvalidationpolicies.perfvalidation.dev.yaml",
    "perfvalidations.perfvalidation.dev.yaml",
];
/// Manifest with which krew installs the plug-in.
pub const KREW: &str = "perfval.yaml";
/// Checksums of all other files.
pub const SUMS: &str = "SHA256SUMS";

/// Archive of a program.
pub fn archive(program: &str, version: &str, os: &str, architecture: &str) -> String {
    format!("{program}-{version}-{os}-{architecture}.tar.gz")
}

/// Package of the chart, as `helm push` takes it.
pub fn chart(version: &str) -> String {
    format!("{OPERATOR}-{version}.tgz")
}

/// Licences of everything in a program.
pub fn licences(program: &str) -> String {
    format!("{program}-LICENSES.txt")
}

/// Bill of materials of a program.
pub fn bill_of_materials(program: &str) -> String {
    format!("{program}.cdx.json")
}

/// Operating system and architecture of the plug-in.
pub type Platform<'a> = (&'a str, &'a str);

/// Every file of a release with the plug-in for these platforms.
fn all(version: &str, platforms: &[Platform<'_>]) -> BTreeSet<String> {
    let of_programs = PROGRAMS
        .iter()
        .flat_map(|(name, _)| [licences(name), bill_of_materials(name)]);
    let archives = platforms.iter().flat_map(|(os, architecture)| {
        let operator = (*os == LINUX).then_some(OPERATOR);
        let names = operator.into_iter().chain([PLUG_IN]);
        names.map(|name| archive(name, version, os, architecture))
    });
    let single = CRDS.into_iter().chain([INSTALL, KREW, SUMS]).map(str::to_owned);
    of_programs
        .chain(archives)
        .chain(single)
        .chain([chart(version)])
        .collect()
}

/// Refuses a release that lacks a file to which a page may link, or has one that no page may link to.
pub fn check<'a>(written: impl Iterator<Item = &'a String>, version: &str, platforms: &[Platform<'_>]) -> Result<()> {
    let (written, all): (BTreeSet<_>, _) = (written.cloned().collect(), all(version, platforms));
    if written == all {
        return Ok(());
    }
    let differs: Vec<_> = written.symmetric_difference(&all).collect();
    Err(format!("src/names.rs and the release differ in {differs:?}").into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
    const PAGES: [&str; 6] = [
        "README.md",
        "docs/install.md",
        "docs/first-run.md",
        "docs/kubectl-perfval.md",
        "charts/perfvalidation-operator/README.md",
        "config/components/README.md",
    ];

    /// Version to which pages link.
    fn version() -> &'static str {
        crate::version::release_of(env!("CARGO_PKG_VERSION"))
    }

    fn platforms() -> Vec<Platform<'static>> {
        PLATFORMS.map(|(os, architecture, _)| (os, architecture)).to_vec()
    }

    /// Runs from the folder of the package, as `cargo test` does.
    fn page(path: &str) -> String {
        fs::read_to_string(Path::new("../..").join(path)).expect("a page")
    }

    /// Words that follow each occurrence of `start`, up to a space, a quote, a bracket or the end of the line.
    fn after<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
        let end = |c: char| c.is_whitespace() || "`\"')]<>".contains(c);
        let rest = text.split(start).skip(1);
        rest.map(|rest| rest.split(end).next().unwrap_or_default()).collect()
    }

    #[test]
    fn pages_link_to_files_of_this_release() {
        let (files, start) = (all(version(), &platforms()), format!("{REPOSITORY}/releases/download/"));
        let mut links = 0;
        for path in PAGES {
            for link in after(&page(path), &start) {
                let file = link.strip_prefix(&format!("v{}/", version()));
                assert!(file.is_some_and(|file| files.contains(file)), "{path}: {link}");
                links += 1;
            }
        }
        assert!(links >= 6, "only {links} links were found");
    }

    #[test]
    fn pages_install_the_chart_of_this_release() {
        let mut charts = 0;
        for path in PAGES {
            for rest in page(path).split("oci://ghcr.io/").skip(1) {
                let words = rest.split_whitespace().take(3);
                let words: Vec<_> = words.map(|word| word.trim_end_matches(['`', '.'])).collect();
                // Prose shortens the address.
                if words.get(1) == Some(&"--version") {
                    assert_eq!(
                        words,
                        [&format!("perfvalidation/charts/{OPERATOR}"), "--version", version()],
                        "{path}"
                    );
                    charts += 1;
                }
            }
        }
        assert!(charts >= 4, "only {charts} charts were found");
    }

    #[test]
    fn pages_apply_samples_of_this_release_that_exist() {
        let place = REPOSITORY.replace("github.com", "raw.githubusercontent.com");
        let mut samples = 0;
        for path in PAGES {
            for link in after(&page(path), &format!("{place}/")) {
                let file = link.strip_prefix(&format!("v{}/", version()));
                assert!(
                    file.is_some_and(|file| Path::new("../..").join(file).is_file()),
                    "{path}: {link}"
                );
                samples += 1;
            }
        }
        assert!(samples >= 3, "only {samples} samples were found");
    }

    #[test]
    fn a_file_without_a_name_is_refused() {
        let mut files = all(version(), &platforms());
        assert!(check(files.iter(), version(), &platforms()).is_ok());
        files.insert("other.yaml".to_owned());
        let error = check(files.iter(), version(), &platforms()).unwrap_err();
        assert!(error.to_string().contains("other.yaml"), "{error}");
    }
}
