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

    /// Drops the values that are held nowhere else. Nodes come and go while the same values are shared for days.
    pub fn forget_unused(&mut self) {
        self.amounts.retain(|amounts| Arc::strong_count(amounts) > 1);
        self.labels.retain(|label| Arc::strong_count(label) > 1);
        self.attributes.retain(|attribute| Arc::strong_count(attribute) > 1);
        // Labels and attributes hold texts.
        self.texts.forget_unused();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_nobody_holds_are_forgotten() {
        let mut interned = Interned::default();
        let kept = interned.share_label("zone", "a");
        interned.share_label("zone", "b");
        interned.share("node-1");
        interned.forget_unused();
        assert_eq!(interned.labels.len(), 1);
        // Key and value of the label.
        let texts = ["zone", "a"].map(|text| Arc::strong_count(&interned.share(text)));
        assert_eq!(texts, [3, 3], "held here, by the label, and among the texts");
        assert!(Arc::ptr_eq(&kept, &interned.share_label("zone", "a")));
        assert_eq!(Arc::strong_count(&interned.share("node-1")), 2, "a new one");
    }
}
