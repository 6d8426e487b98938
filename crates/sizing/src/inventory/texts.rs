use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::HashSet;

/// Texts that are held once, however often they occur.
pub type Texts = HashSet<Arc<str>>;

/// The one copy of a value.
pub(super) fn share<T: Eq + Hash + ?Sized>(all: &mut HashSet<Arc<T>>, value: impl Borrow<T> + Into<Arc<T>>) -> Arc<T> {
    if let Some(known) = all.get::<T>(value.borrow()) {
        return known.clone();
    }
    let new: Arc<T> = value.into();
    all.insert(new.clone());
    new
}

/// Drops the values with fewer holders than this.
pub(super) fn keep_held_by<T: Eq + Hash + ?Sized>(holders: usize, all: &mut HashSet<Arc<T>>) {
    all.retain(|value| Arc::strong_count(value) > holders);
    all.shrink_to_fit();
}
