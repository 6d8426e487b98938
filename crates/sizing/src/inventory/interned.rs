use std::sync::Arc;

use foldhash::HashSet;

use super::Amounts;

/// What is held once, however often it occurs: names, and requests, of which a hundred thousand pods have a few hundred.
#[derive(Debug, Default)]
pub struct Interned {
    texts: HashSet<Arc<str>>,
    amounts: HashSet<Arc<Amounts>>,
}

impl Interned {
    /// The one copy of a text.
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let new: Arc<str> = Arc::from(text);
        self.texts.insert(new.clone());
        new
    }

    /// The one copy of some amounts.
    pub fn share_amounts(&mut self, amounts: Amounts) -> Arc<Amounts> {
        if let Some(known) = self.amounts.get(&amounts) {
            return known.clone();
        }
        let new = Arc::new(amounts);
        self.amounts.insert(new.clone());
        new
    }
}
