//! Facts about objects that this process keeps by their uids.

use std::collections::{HashMap, HashSet};

use parking_lot::{Mutex, MutexGuard};

/// Facts about objects, by uid.
pub(crate) struct FactsByUid<T>(Mutex<HashMap<String, T>>);

impl<T> Default for FactsByUid<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> FactsByUid<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<String, T>> {
        self.0.lock()
    }

    /// The facts are over, or the object is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Forgets objects that are not among these, after a new list.
    pub(crate) fn retain(&self, uids: &HashSet<String>) {
        self.lock().retain(|uid, _| uids.contains(uid));
    }
}
