//! Which crates ship, and which of them each one may use.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::tree::Sources;

/// Every shipped crate by its folder, and the folders of those that it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("sizing", &["api"]),
    ("verdict", &["api"]),
    ("fleet", &["api"]),
    ("run", &["api", "sizing", "verdict"]),
    ("cluster", &["api", "sizing", "verdict", "run"]),
    ("report", &["api", "fleet", "run", "verdict"]),
    ("operator", &["api", "fleet", "sizing", "verdict", "run", "cluster"]),
    (
        "cli",
        &["api", "fleet", "sizing", "verdict", "run", "cluster", "report"],
    ),
    ("runner", &["verdict"]),
];

#[derive(Deserialize)]
pub struct Workspace {
    pub packages: Vec<Package>,
    pub workspace_root: PathBuf,
}

#[derive(Deserialize)]
pub struct Package {
    manifest_path: PathBuf,
    targets: Vec<Target>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Absent for an ordinary one, else `build` or `dev`.
    kind: Option<String>,
    rename: Option<String>,
    /// Only of a crate of this repository.
    path: Option<PathBuf>,
}

impl Workspace {
    /// The workspace that this test belongs to.
    pub fn read() -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
    }

    /// The crates that ship: all of `crates/`.
    pub fn shipped(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.ships(package.folder()))
    }

    fn ships(&self, folder: &Path) -> bool {
        folder.parent() == Some(&self.workspace_root.join("crates"))
    }

    /// The dependencies of a crate that point the wrong way, each with its line of `manifest`.
    pub fn wrong_way(&self, package: &Package, manifest: &str) -> Vec<String> {
        let Some((_, allowed)) = MAY_USE.iter().find(|(row, _)| *row == package.name()) else {
            return vec![format!(
                "crates/{} has no row in MAY_USE, the table of what a crate may use",
                package.name()
            )];
        };
        let shipped = package
            .dependencies
            .iter()
            .filter(|one| one.kind.as_deref() != Some("dev"));
        let ours = shipped.filter_map(|one| Some((one, one.path.as_deref()?)));
        let wrong = ours.filter(|(_, path)| !(self.ships(path) && allowed.contains(&name(path))));
        wrong
            .map(|(dependency, path)| {
                let why = if self.ships(path) {
                    format!("{} may use {}", package.name(), list(allowed))
                } else {
                    "nothing that ships may use what is only for tests".to_owned()
                };
                let (line, text) = dependency.line(manifest);
                format!("crates/{}/Cargo.toml, line {line}: `{text}`: {why}", package.name())
            })
            .collect()
    }
}

impl Package {
    /// The name of its folder.
    pub fn name(&self) -> &str {
        name(self.folder())
    }

    /// Text of its `Cargo.toml`.
    pub fn manifest(&self) -> String {
        std::fs::read_to_string(&self.manifest_path).expect("a manifest can be read")
    }

    /// `lib.rs`, `main.rs` and further programs, inside the crate.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        let ship = |target: &&Target| target.kind.iter().any(|kind| kind.ends_with("lib") || kind == "bin");
        let targets = self.targets.iter().filter(ship);
        targets.map(|target| self.inside(&target.src_path))
    }

    /// Every file below its `src`.
    pub fn sources(&self) -> Sources {
        let mut sources = Sources::new();
        let mut folders = vec![self.folder().join("src")];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().expect("a folder can be listed") {
                let path = entry.expect("a folder can be listed").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = std::fs::read_to_string(&path).expect("a source can be read");
                    sources.insert(self.inside(&path).to_owned(), text);
                }
            }
        }
        sources
    }

    fn folder(&self) -> &Path {
        self.manifest_path.parent().expect("a manifest is in a folder")
    }

    fn inside<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(self.folder()).expect("a source is in its crate")
    }
}

impl Dependency {
    /// Where a manifest asks for it: number and text of the line.
    fn line<'a>(&'a self, manifest: &'a str) -> (usize, &'a str) {
        let name = self.rename.as_ref().unwrap_or(&self.name);
        let section = if self.kind.is_some() {
            "build-dependencies"
        } else {
            "dependencies"
        };
        let mut inside = false;
        for (index, line) in manifest.lines().enumerate() {
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[') {
                let header = header.trim_end_matches(']');
                // `[dependencies]`, `[target.….dependencies]`, `[dependencies.name]`
                inside = header.rsplit('.').next() == Some(section);
                if header.ends_with(&format!("{section}.{name}")) {
                    return (index + 1, line);
                }
            } else if inside && line.split(['.', '=', ' ']).next() == Some(name) {
                return (index + 1, line);
            }
        }
        (0, name)
    }
}

fn name(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn list(allowed: &[&str]) -> String {
    match allowed {
        [] => "no crate of ours".to_owned(),
        _ => format!("only {} of ours", allowed.join(", ")),
    }
}
