//! Files of the repository that are generated from the code.

mod api;
mod metrics;
mod page;
mod rbac;
mod reasons;
mod reference;
mod roles;

use std::path::{Path, PathBuf};
use std::{fs, io};

use kube::ResourceExt as _;

/// Folder that contains generated files only.
pub const ROLES: &str = "config/rbac";

/// Every file that is generated from the code, by its path in the repository.
///
/// # Errors
/// If a CRD has no YAML form.
pub fn files() -> io::Result<Vec<(PathBuf, String)>> {
    let files = [
        ("docs/reference.md", reference::reference()),
        ("docs/reasons.md", reasons::reasons()),
        ("docs/metrics.md", metrics::metrics()),
        ("docs/api.md", api::api()),
    ];
    let files = files.map(|(file, text)| (PathBuf::from(file), text));
    let roles = rbac::files().into_iter();
    let roles = roles.map(|(file, text)| (Path::new(ROLES).join(file), text));
    let crds = perfval_api::crds().into_iter().map(|crd| {
        let body = serde_saphyr::to_string(&crd).map_err(io::Error::other)?;
        let text = format!("# Generated from crates/api: run `just generate`.\n{body}");
        Ok((Path::new("config/crd").join(crd.name_any() + ".yaml"), text))
    });
    let crds = crds.collect::<io::Result<Vec<_>>>()?;
    Ok(crds.into_iter().chain(files).chain(roles).collect())
}

/// Writes every generated file, and then the chart's copies of them.
///
/// # Errors
/// If a file cannot be read or written.
pub fn write(repository: &Path) -> io::Result<()> {
    let write_all = |files: Vec<(PathBuf, String)>| {
        files
            .into_iter()
            .try_for_each(|(file, text)| fs::write(repository.join(file), text))
    };
    write_all(files()?)?;
    write_all(perfval_chart::files::generated(repository)?)
}
