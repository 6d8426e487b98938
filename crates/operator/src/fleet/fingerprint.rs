//! Numbers that change when objects change.

use std::hash::{DefaultHasher, Hash, Hasher as _};

/// Number that changes with every part. The order of the parts does not matter, as in a store.
pub(super) fn fingerprint(parts: impl IntoIterator<Item = impl Hash>) -> u64 {
    let digest = |part| {
        let mut hasher = DefaultHasher::new();
        Hash::hash(&part, &mut hasher);
        hasher.finish()
    };
    parts.into_iter().map(digest).fold(0, u64::wrapping_add)
}
