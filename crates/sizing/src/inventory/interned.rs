use std::sync::Arc;

use foldhash::HashSet;

use super::{Amounts, Texts};

/// What is held once, however often it occurs: names, and requests, of which a hundred thousand pods have a few hundred.
#[derive(Debug, Default)]
pub struct Interned {
    texts: Texts,
    amounts: HashSet<Arc<Amounts>>,
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
        if let Some(known) = self.amounts.get(&amounts) {
            return known.clone();
        }
        let new = Arc::new(amounts);
        self.amounts.insert(new.clone());
        new
    }
}
