use std::sync::Arc;

use foldhash::HashSet;

use super::amounts::Amounts;
use super::attribute::Attribute;
use super::texts::{Texts, keep_held_by, share};

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
        share(&mut self.texts, text)
    }

    /// All texts.
    pub fn texts(&mut self) -> &mut Texts {
        &mut self.texts
    }

    /// The one copy of some amounts.
    pub fn share_amounts(&mut self, amounts: Amounts) -> Arc<Amounts> {
        share(&mut self.amounts, amounts)
    }

    /// Drops the values with fewer users than this: 2 after a list, as 40,000 GPUs share no uuid; 1 later, as nodes come and go.
    pub fn keep_held_by(&mut self, holders: usize) {
        keep_held_by(holders, &mut self.amounts);
        keep_held_by(holders, &mut self.labels);
        keep_held_by(holders, &mut self.attributes);
        // Labels and attributes hold texts.
        keep_held_by(holders, &mut self.texts);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_shared_are_forgotten() {
        let mut interned = Interned::default();
        let zone = |interned: &mut Interned| interned.share_label("zone", "a");
        let (kept, twice) = (zone(&mut interned), zone(&mut interned));
        let once = interned.share_label("zone", "b");
        interned.share("node-1");
        interned.keep_held_by(1);
        assert_eq!(interned.labels.len(), 2);
        assert_eq!(Arc::strong_count(&interned.share("node-1")), 2, "a new one");
        interned.keep_held_by(2);
        assert_eq!(interned.labels.len(), 1);
        assert!(Arc::ptr_eq(&twice, &zone(&mut interned)));
        assert_eq!(
            Arc::strong_count(&kept),
            3,
            "held twice here, and once among the labels"
        );
        assert!(!Arc::ptr_eq(&once, &interned.share_label("zone", "b")), "a new one");
    }
}
