//! Files that import each other, directly or around several corners.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;

use super::imports::{Imports, imports};
use super::tree::{Sources, Tree};

/// Modules each of which reaches all others by its imports.
#[derive(Debug, PartialEq)]
pub struct Circle {
    pub modules: Vec<PathBuf>,
    /// From, to, names.
    pub imports: Vec<(PathBuf, PathBuf, Vec<String>)>,
}

/// The circles of the crate whose `lib.rs` or `main.rs` is `root`.
pub fn circles(root: &Path, sources: &Sources) -> Vec<Circle> {
    let imports = imports(&Tree::read(root, sources));
    let mut graph = DiGraph::<&Path, ()>::new();
    let files: BTreeMap<&Path, _> = sources
        .keys()
        .map(|file| (file.as_path(), graph.add_node(file)))
        .collect();
    for (from, targets) in &imports {
        for to in targets.keys() {
            graph.add_edge(files[from.as_path()], files[to.as_path()], ());
        }
    }
    let groups = tarjan_scc(&graph).into_iter().filter(|group| group.len() > 1);
    let mut circles: Vec<_> = groups
        .map(|group| Circle::of(group.into_iter().map(|node| graph[node].to_owned()).collect(), &imports))
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
