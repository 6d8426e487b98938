//! Which file of a crate uses names of which other one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemFn, LitStr, Macro, Meta, PatIdent, Path, TraitItemFn, Visibility};

use super::declared::{Binding, Use, attributes, is_test};
use super::tree::{Found, Id, Tree};

/// By file and the file that it imports from: the names.
pub type Imports = BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>;

/// What every file of the crate imports from its other files.
pub fn imports(tree: &Tree) -> Imports {
    let mut imports = Imports::new();
    for (module, content) in tree.modules.iter().enumerate() {
        let mut reader = Reader {
            tree,
            module,
            locals: BTreeSet::new(),
            imports: &mut imports,
        };
        for one in &content.uses {
            reader.import(one);
        }
        for item in &content.items {
            reader.visit_item(item);
        }
    }
    imports
}

struct Reader<'a> {
    tree: &'a Tree,
    module: Id,
    /// Variables of the function that is read: they hide names of the module.
    locals: BTreeSet<String>,
    imports: &'a mut Imports,
}

impl Reader<'_> {
    fn import(&mut self, one: &Use) {
        let target = match self.tree.resolve(self.module, &one.path) {
            Some(Found::Module(id)) if one.binds == Binding::All => (id, "*".to_owned()),
            Some(Found::Item { module, name }) => (module, name),
            // What is used of a module is seen in the paths that begin with it.
            Some(Found::Module(_)) | None => return,
        };
        // A parent that re-exports what its children define does not need it itself.
        if !(one.exported && self.tree.is_inside(target.0, self.module)) {
            self.add(target.0, target.1);
        }
    }

    fn refer(&mut self, path: &[String]) {
        if let [name] = path
            && self.locals.contains(name)
        {
            return;
        }
        if let Some(Found::Item { module, name }) = self.tree.resolve(self.module, path) {
            self.add(module, name);
        }
    }

    fn add(&mut self, target: Id, name: String) {
        let (from, to) = (&self.tree.modules[self.module].file, &self.tree.modules[target].file);
        if from != to {
            let names = self.imports.entry(from.clone()).or_default();
            names.entry(to.clone()).or_default().insert(name);
        }
    }

    fn function(&mut self, locals: Locals, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.locals, locals.0);
        self.locals.extend(outer.iter().cloned());
        read(self);
        self.locals = outer;
    }

    /// Paths in what a macro or an attribute is given, which need not be Rust.
    fn scan(&mut self, tokens: TokenStream, strings: bool) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let is =
            |at: usize, sign: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.scan(group.stream(), strings),
                TokenTree::Literal(text) if strings => {
                    let text = syn::parse2::<LitStr>(TokenTree::from(text.clone()).into());
                    if let Ok(path) = text.and_then(|text| text.parse::<Path>()) {
                        self.visit_path(&path);
                    }
                }
                TokenTree::Ident(first) => {
                    // A field, a method or a lifetime.
                    let member = at > 0 && (is(at - 1, '.') || is(at - 1, '\''));
                    let mut path = vec![first.to_string()];
                    while is(at + 1, ':')
                        && is(at + 2, ':')
                        && let Some(TokenTree::Ident(next)) = tokens.get(at + 3)
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    let called = matches!(tokens.get(at + 1), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
                    if !member && (path.len() > 1 || called || is_upper(&path[0])) {
                        self.refer(&path);
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        // Modules and `use`s are read on their own.
        if !is_test(attributes(item)) && !matches!(item, Item::Mod(_) | Item::Use(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        let locals = Locals::of(|locals| locals.visit_item_fn(function));
        self.function(locals, |reader| visit::visit_item_fn(reader, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test(&function.attrs) {
            let locals = Locals::of(|locals| locals.visit_impl_item_fn(function));
            self.function(locals, |reader| visit::visit_impl_item_fn(reader, function));
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        let locals = Locals::of(|locals| locals.visit_trait_item_fn(function));
        self.function(locals, |reader| visit::visit_trait_item_fn(reader, function));
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.refer(&names);
        }
        visit::visit_path(self, path);
    }

    /// A constant in a pattern.
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        let name = pattern.ident.to_string();
        if is_upper(&name) {
            self.refer(&[name]);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.scan(call.tokens.clone(), false);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        // Names in strings too: `#[serde(default = "…")]`. Documentation is a name and a value, not a list.
        if let Meta::List(list) = &attribute.meta {
            self.scan(list.tokens.clone(), true);
        }
    }

    /// Who may see something is no use of it.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

/// Every variable that a function binds.
struct Locals(BTreeSet<String>);

impl Locals {
    fn of(collect: impl FnOnce(&mut Self)) -> Self {
        let mut locals = Self(BTreeSet::new());
        collect(&mut locals);
        locals
    }
}

impl<'ast> Visit<'ast> for Locals {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        let name = pattern.ident.to_string();
        if !is_upper(&name) {
            self.0.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}

fn is_upper(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}
