use std::hash::Hash;
use std::sync::Arc;

use foldhash::HashSet;

use super::amounts::Amounts;
use super::attribute::Attribute;
use super::texts::Texts;

/// Key and value of a label.
pub(super) type Label = (Arc<str>, Arc<str>);
/// An attribute of a device with its name.
pub type NamedAttribute = (Arc<str>, Attribute);

/// Values held once although they occur often: names; requests, since a hundred thousand pods have a few hundred;
/// labels and attributes, which are nearly the same on every node.
#[derive(Debug, Default)]
pub struct Interned {
    texts: Texts,
    amounts: HashSet<Arc<Amounts>>,
    labels: HashSet<Arc<Label>>,
    attributes: HashSet<Arc<NamedAttribute>>,
}

impl Interned {
    /// The one copy of a text.
    pub fn share(&mut self, text: &str) -> Arc<str> {
        self.texts.share(text)
    }

    /// All texts.
    pub fn texts(&mut self) -> &mut Texts {
        &mut self.texts
    }

    /// The one copy of some amounts.
    pub fn share_amounts(&mut self, amounts: Amounts) -> Arc<Amounts> {
        share(&mut self.amounts, amounts)
    }

    /// The one copy of a label.
    pub(super) fn share_label(&mut self, key: &str, value: &str) -> Arc<Label> {
        let label = (self.share(key), self.share(value));
        share(&mut self.labels, label)
    }

    /// The one copy of an attribute.
    pub(super) fn share_attribute(&mut self, name: &str, value: Attribute) -> Arc<NamedAttribute> {
        let attribute = (self.share(name), value);
        share(&mut self.attributes, attribute)
    }
}

fn share<T: Eq + Hash>(all: &mut HashSet<Arc<T>>, value: T) -> Arc<T> {
    if let Some(known) = all.get(&value) {
        return known.clone();
    }
    let new = Arc::new(value);
    all.insert(new.clone());
    new
}
