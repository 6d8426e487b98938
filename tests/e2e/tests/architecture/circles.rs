//! Files or folders that import each other, directly or around several corners.

use std::fmt;
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use super::imports::{Imports, imports};
use super::tree::{Sources, Tree};

/// Modules each of which reaches all others by its imports.
#[derive(Debug, PartialEq)]
pub struct Circle {
    pub modules: Vec<PathBuf>,
    /// From, to, names.
    pub imports: Vec<(PathBuf, PathBuf, Vec<String>)>,
}

/// The circles of files of the crate whose `lib.rs` or `main.rs` is `root`.
pub fn circles(root: &Path, sources: &Sources) -> Vec<Circle> {
    circles_in(&imports(&Tree::read(root, sources)))
}

/// The circles of modules of the crate, each with all files below it.
pub fn folder_circles(root: &Path, sources: &Sources) -> Vec<Circle> {
    let parent = root.parent().unwrap_or(root);
    let folder = |file: &Path| {
        let below = file.strip_prefix(parent).unwrap_or(file);
        let first = below
            .components()
            .next()
            .map_or(below, |first| Path::new(first.as_os_str()));
        parent.join(first.with_extension(""))
    };
    let mut merged = Imports::new();
    for (from, targets) in &imports(&Tree::read(root, sources)) {
        for (to, names) in targets.iter().filter(|(to, _)| folder(to) != folder(from)) {
            let into = merged.entry(folder(from)).or_default().entry(folder(to)).or_default();
            into.extend(names.iter().cloned());
        }
    }
    circles_in(&merged)
}

fn circles_in(imports: &Imports) -> Vec<Circle> {
    let edges = imports
        .iter()
        .flat_map(|(from, targets)| targets.keys().map(move |to| (from.as_path(), to.as_path())));
    let graph = DiGraphMap::<&Path, ()>::from_edges(edges);
    let groups = tarjan_scc(&graph).into_iter().filter(|group| group.len() > 1);
    let mut circles: Vec<_> = groups
        .map(|group| Circle::of(group.into_iter().map(Path::to_owned).collect(), imports))
        .collect();
    circles.sort_by(|one, other| one.modules.cmp(&other.modules));
    circles
}

impl Circle {
    fn of(mut modules: Vec<PathBuf>, imports: &Imports) -> Self {
        modules.sort();
        let of_module = |from: &PathBuf| {
            let targets = imports.get(from).into_iter().flatten();
            let inside = targets.filter(|(to, _)| modules.contains(to));
            let edges = inside.map(|(to, names)| (from.clone(), to.clone(), names.iter().cloned().collect()));
            edges.collect::<Vec<_>>()
        };
        let imports = modules.iter().flat_map(of_module).collect();
        Self { modules, imports }
    }
}

impl fmt::Display for Circle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modules: Vec<_> = self.modules.iter().map(|file| file.display().to_string()).collect();
        writeln!(out, "circle of {} modules: {}", modules.len(), modules.join(", "))?;
        for (from, to, names) in &self.imports {
            writeln!(
                out,
                "  {} imports {} from {}",
                from.display(),
                names.join(", "),
                to.display()
            )?;
        }
        Ok(())
    }
}
