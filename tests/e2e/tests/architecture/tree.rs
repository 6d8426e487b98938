//! The modules of a crate as its sources declare them, and where a name is defined.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::Item;

use super::declared::{Binding, Declared, Use};

/// Text of every source file, by its path inside the crate.
pub type Sources = BTreeMap<PathBuf, String>;

/// Place of a module in its tree.
pub type Id = usize;

const ROOT: Id = 0;
/// Re-exports of re-exports that are followed; also ends modules that re-export each other.
const DEPTH: usize = 8;

/// All modules that a crate is compiled from, without those of its tests.
pub struct Tree {
    pub modules: Vec<Module>,
}

/// One module; several may share a file.
pub struct Module {
    pub file: PathBuf,
    pub items: Vec<Item>,
    pub uses: Vec<Use>,
    parent: Option<Id>,
    children: BTreeMap<String, Id>,
    names: BTreeSet<String>,
}

/// What a path refers to.
#[derive(Debug, PartialEq)]
pub enum Found {
    Module(Id),
    Item { module: Id, name: String },
}

impl Tree {
    /// Follows the `mod` declarations from `lib.rs` or `main.rs`.
    pub fn read(root: &Path, sources: &Sources) -> Self {
        let mut tree = Self { modules: Vec::new() };
        let folder = root.parent().unwrap_or(Path::new(""));
        tree.add(None, root, folder, parse(root, sources), sources);
        tree
    }

    /// `folder` is where the files of the module's children are.
    fn add(&mut self, parent: Option<Id>, file: &Path, folder: &Path, items: Vec<Item>, sources: &Sources) -> Id {
        let declared = Declared::by(&items);
        let id = self.modules.len();
        self.modules.push(Module {
            file: file.to_owned(),
            items,
            uses: declared.uses,
            parent,
            children: BTreeMap::new(),
            names: declared.names,
        });
        for child in declared.modules {
            let name = child.ident.to_string();
            let inner = folder.join(&name);
            let child = if let Some((_, items)) = child.content {
                self.add(Some(id), file, &inner, items, sources)
            } else {
                let files = [inner.with_extension("rs"), inner.join("mod.rs")];
                let Some(child) = files.iter().find(|file| sources.contains_key(*file)) else {
                    panic!("{} declares module {name}, which has no file", file.display());
                };
                self.add(Some(id), child, &inner, parse(child, sources), sources)
            };
            self.modules[id].children.insert(name, child);
        }
        id
    }

    /// What a path means in a module; nothing if it leads out of the crate.
    pub fn resolve(&self, from: Id, path: &[String]) -> Option<Found> {
        self.follow(from, path, 0)
    }

    /// Whether a module is inside another one.
    pub fn is_inside(&self, module: Id, outer: Id) -> bool {
        let parents = std::iter::successors(self.modules[module].parent, |id| self.modules[*id].parent);
        parents.into_iter().any(|id| id == outer)
    }

    fn follow(&self, from: Id, path: &[String], depth: usize) -> Option<Found> {
        let (mut module, mut inside) = (from, false);
        for (position, name) in path.iter().enumerate() {
            let last = position + 1 == path.len();
            let next = match name.as_str() {
                "crate" => Found::Module(ROOT),
                "self" => Found::Module(module),
                "super" => Found::Module(self.modules[module].parent?),
                _ => match self.name(module, name, last, depth) {
                    Some(found) => found,
                    // A name that a macro made: it is at home where it was looked for.
                    None if inside => Found::Item {
                        module,
                        name: name.clone(),
                    },
                    None => return None,
                },
            };
            match next {
                Found::Module(id) => (module, inside) = (id, true),
                item @ Found::Item { .. } => return Some(item),
            }
        }
        Some(Found::Module(module))
    }

    /// What one name means in a module. In the middle of a path it is rather a module than an item of the same name.
    fn name(&self, at: Id, name: &str, last: bool, depth: usize) -> Option<Found> {
        if depth == DEPTH {
            return None;
        }
        let module = &self.modules[at];
        let child = || module.children.get(name).map(|id| Found::Module(*id));
        let item = || {
            module.names.contains(name).then(|| Found::Item {
                module: at,
                name: name.to_owned(),
            })
        };
        let bound = || {
            let mut uses = module.uses.iter().filter(|one| one.binds == Binding::Name(name.into()));
            uses.find_map(|one| self.follow(at, &one.path, depth + 1))
        };
        let globbed = || {
            let mut globs = module.uses.iter().filter(|one| one.binds == Binding::All);
            globs.find_map(|one| match self.follow(at, &one.path, depth + 1)? {
                Found::Module(id) if id != at => self.name(id, name, last, depth + 1),
                _ => None,
            })
        };
        if last {
            item().or_else(bound).or_else(child).or_else(globbed)
        } else {
            child().or_else(item).or_else(bound).or_else(globbed)
        }
    }
}

fn parse(file: &Path, sources: &Sources) -> Vec<Item> {
    let parsed = syn::parse_file(&sources[file]);
    parsed
        .unwrap_or_else(|error| panic!("{} cannot be parsed: {error}", file.display()))
        .items
}
