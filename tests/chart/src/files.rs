//! The files of the chart that are made from others.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::values;

/// The chart's folder in the repository.
pub const CHART: &str = "charts/perfvalidation-operator";

/// Files under `config/` and the licence, and where the chart has them.
const COPIES: [(&str, &str); 14] = [
    ("LICENSE", "LICENSE"),
    (
        "config/crd/nodeperformances.perfvalidation.dev.yaml",
        "files/crds/nodeperformances.yaml",
    ),
    (
        "config/crd/perfbaselines.perfvalidation.dev.yaml",
        "files/crds/perfbaselines.yaml",
    ),
    (
        "config/crd/perfvalidationpolicies.perfvalidation.dev.yaml",
        "files/crds/perfvalidationpolicies.yaml",
    ),
    (
        "config/crd/perfvalidations.perfvalidation.dev.yaml",
        "files/crds/perfvalidations.yaml",
    ),
    ("config/rbac/fleet_role.yaml", "files/rbac/fleet_role.yaml"),
    ("config/rbac/read_role.yaml", "files/rbac/read_role.yaml"),
    ("config/rbac/watch_role.yaml", "files/rbac/watch_role.yaml"),
    ("config/rbac/runs_role.yaml", "files/rbac/runs_role.yaml"),
    ("config/rbac/lease_role.yaml", "files/rbac/lease_role.yaml"),
    ("config/users/user_roles.yaml", "files/rbac/user_roles.yaml"),
    ("config/policies/policy.yaml", "files/limits_policy.yaml"),
    ("config/components/alerts/alerts.yaml", "files/alerts.yaml"),
    (
        "config/components/dashboard/perfvalidation.json",
        "files/dashboard.json",
    ),
];

const BEGIN: &str = "<!-- values: made from values.yaml by `just generate` -->\n";
const END: &str = "<!-- end of values -->\n";

/// Every generated file of the chart, by its path in the repository.
///
/// # Errors
/// If a source cannot be read.
pub fn generated(repository: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let chart = Path::new(CHART);
    let copies = COPIES.iter().map(|(from, to)| {
        let text = fs::read_to_string(repository.join(from))?;
        Ok((chart.join(to), text))
    });
    let mut files = copies.collect::<io::Result<Vec<_>>>()?;
    let readme = chart.join("README.md");
    let text = fs::read_to_string(repository.join(&readme))?;
    let values = fs::read_to_string(repository.join(chart).join("values.yaml"))?;
    let text = with_table(&text, &values::table(&values).map_err(io::Error::other)?)
        .ok_or_else(|| io::Error::other("the chart's README has no place for the table of values"))?;
    files.push((readme, text));
    Ok(files)
}

/// A page with the table between its two marks.
fn with_table(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}
