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

    /// Drops the texts that are held nowhere else.
    pub(super) fn forget_unused(&mut self) {
        self.0.retain(|text| Arc::strong_count(text) > 1);
    }
}
