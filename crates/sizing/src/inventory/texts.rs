use std::sync::Arc;

use foldhash::HashSet;

/// Texts that are held once, however often they occur.
#[derive(Debug, Default)]
pub struct Texts(HashSet<Arc<str>>);

impl Texts {
    /// The one copy of a text.
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new: Arc<str> = Arc::from(text);
        self.0.insert(new.clone());
        new
    }

    /// Drops the texts with fewer holders than this.
    pub(super) fn keep_held_by(&mut self, holders: usize) {
        self.0.retain(|text| Arc::strong_count(text) > holders);
        self.0.shrink_to_fit();
    }
}
