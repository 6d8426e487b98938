//! What a module declares itself: names, child modules and `use`s. Code of tests is left out.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, ImplItemFn, Item, ItemMod, ItemUse, LitStr, Meta, UseTree, Visibility};

/// One leaf of a `use`.
pub struct Use {
    pub path: Vec<String>,
    pub binds: Binding,
    /// Also a name of this module for others.
    pub exported: bool,
}

/// What a `use` adds to the module's names.
#[derive(Debug, PartialEq)]
pub enum Binding {
    Name(String),
    /// `*`
    All,
}

#[derive(Default)]
pub struct Declared {
    pub names: BTreeSet<String>,
    pub modules: Vec<ItemMod>,
    pub uses: Vec<Use>,
}

impl Declared {
    pub fn by(items: &[Item]) -> Self {
        let mut declared = Self::default();
        for item in items {
            declared.visit_item(item);
        }
        declared
    }
}

/// Functions are entered too: an item or a `use` in a body counts as one of the module.
impl<'ast> Visit<'ast> for Declared {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        self.names.extend(name(item).map(ToString::to_string));
        match item {
            Item::Mod(module) => self.modules.push(module.clone()),
            Item::Use(import) => self.uses.extend(leaves(import)),
            Item::Struct(resource) => {
                self.names.extend(resource.attrs.iter().filter_map(derived_kind));
                visit::visit_item(self, item);
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }
}

/// Whether something is only compiled for tests.
pub fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            let words: Vec<_> = condition.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            words.contains(&"test") && !words.contains(&"not") && !words.contains(&"any")
        }
        Meta::Path(path) => path.segments.last().is_some_and(|last| last.ident == "test"),
        _ => false,
    })
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

/// The type that kube's derive makes: `#[kube(kind = "…")]`.
fn derived_kind(attribute: &Attribute) -> Option<String> {
    let Meta::List(list) = &attribute.meta else { return None };
    if !list.path.is_ident("kube") {
        return None;
    }
    let tokens: Vec<_> = list.tokens.clone().into_iter().collect();
    tokens.windows(3).find_map(|window| match window {
        [TokenTree::Ident(key), TokenTree::Punct(_), TokenTree::Literal(kind)] if key == "kind" => {
            syn::parse2::<LitStr>(TokenStream::from(TokenTree::from(kind.clone())))
                .ok()
                .map(|kind| kind.value())
        }
        _ => None,
    })
}

fn leaves(import: &ItemUse) -> Vec<Use> {
    let mut leaves = Vec::new();
    if import.leading_colon.is_none() {
        collect(&import.tree, &mut Vec::new(), &mut leaves);
    }
    let exported = !matches!(import.vis, Visibility::Inherited);
    let uses = leaves.into_iter();
    uses.map(|(path, binds)| Use { path, binds, exported }).collect()
}

fn collect(tree: &UseTree, prefix: &mut Vec<String>, leaves: &mut Vec<(Vec<String>, Binding)>) {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            collect(&path.tree, prefix, leaves);
            prefix.pop();
        }
        UseTree::Name(leaf) => leaves.extend(bind(prefix, &leaf.ident, None)),
        UseTree::Rename(leaf) => leaves.extend(bind(prefix, &leaf.ident, Some(&leaf.rename))),
        UseTree::Glob(_) => leaves.push((prefix.clone(), Binding::All)),
        UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, prefix, leaves)),
    }
}

/// A leaf with its name; `{self}` names the path before it.
fn bind(prefix: &[String], ident: &Ident, rename: Option<&Ident>) -> Option<(Vec<String>, Binding)> {
    let mut path = prefix.to_vec();
    if ident != "self" || prefix.is_empty() {
        path.push(ident.to_string());
    }
    let name = rename.map(ToString::to_string).or_else(|| path.last().cloned())?;
    Some((path, Binding::Name(name)))
}
