//! Objects in whose pass the process died: what one object does to it must not keep all others from their turn, start after
//! start.
//!
//! A process that runs out of memory or of stack has no chance to write anything. So it keeps a file of the passes that are
//! under way, on a volume that outlives the container. The next leader counts them in an annotation of the Lease. It takes an
//! object with one death alone, so that the next death has one suspect, and sets one with two deaths aside.

mod record;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use futures::future::Either;
use kube::api::ObjectMeta;
use parking_lot::Mutex;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tracing::warn;

use self::record::{Deaths, PassFile, PassRecord};

/// Deaths in a row after which an object is set aside.
const TOO_MANY: u32 = 2;

/// The passes under way, and the deaths of processes in passes. Clones are the same.
#[derive(Clone, Default)]
pub struct Suspects(Arc<SharedSuspects>);

#[derive(Default)]
struct SharedSuspects {
    state: Mutex<SuspectState>,
    /// Taken by one pass alone, or shared by all that are not suspected.
    turns: RwLock<()>,
}

#[derive(Default)]
struct SuspectState {
    file: Option<PassFile>,
    /// Passes under way when the process before died, until they are counted in the Lease.
    found: Vec<PassRecord>,
    is_counted: bool,
    /// By uid of the object.
    deaths: BTreeMap<String, Deaths>,
    under_way: Vec<PassRecord>,
}

impl Suspects {
    /// The suspects that an earlier process left in this file. An unreadable file contains none and is no error.
    pub fn new(path: Option<&Path>) -> Self {
        let opened = path.map(PassFile::open).transpose();
        let (file, found) = opened
            .unwrap_or_else(|error| {
                warn!(?path, %error, "passes under way are not kept: a death of this process will have no suspects");
                None
            })
            .unzip();
        let state = SuspectState {
            file,
            found: found.unwrap_or_default(),
            ..SuspectState::default()
        };
        Self(Arc::new(SharedSuspects {
            state: Mutex::new(state),
            turns: RwLock::default(),
        }))
    }

    /// Puts the deaths into the record of a Lease that is about to be written. The first time, those of the file are added to
    /// those that it has.
    pub(crate) fn annotate(&self, lease: &mut ObjectMeta) {
        let mut state = self.0.state.lock();
        if !state.is_counted {
            let mut deaths = record::read(lease);
            for pass in &state.found {
                pass.count(&mut deaths);
            }
            state.deaths = deaths;
        }
        record::write(&state.deaths, lease);
    }

    /// The Lease has been written: the file is not counted again.
    pub(crate) fn counted(&self) {
        let mut state = self.0.state.lock();
        if std::mem::replace(&mut state.is_counted, true) {
            return;
        }
        for pass in std::mem::take(&mut state.found) {
            let deaths = state.deaths.get(&pass.uid).map_or(0, |deaths| deaths.count);
            warn!(
                object = pass.name,
                deaths, "the process before died in a pass of this object"
            );
        }
        state.keep_file();
    }

    /// Returns true if an object waits for a change of its spec, or for another version of the operator.
    pub(crate) fn is_set_aside(&self, object: &ObjectMeta) -> bool {
        self.deaths(object) >= TOO_MANY
    }

    /// Returns true if even its status is not written any more: the process died of that, too.
    pub(crate) fn is_untouchable(&self, object: &ObjectMeta) -> bool {
        self.deaths(object) > TOO_MANY
    }

    fn deaths(&self, object: &ObjectMeta) -> u32 {
        let uid = object.uid.as_deref().unwrap_or_default();
        let mut state = self.0.state.lock();
        match state.deaths.get(uid) {
            Some(deaths) if deaths.asked == record::asked(object) => deaths.count,
            _ => {
                state.deaths.remove(uid);
                0
            }
        }
    }

    /// A pass of this object begins once it is its turn, and ends when the answer is dropped. A process that lives on then
    /// clears the object, unless it is set aside.
    pub(crate) async fn begin(&self, object: &ObjectMeta) -> UnderWay<'_> {
        let pass = PassRecord::new(object);
        let turn = if self.deaths(object) > 0 {
            Either::Right(self.0.turns.write().await)
        } else {
            Either::Left(self.0.turns.read().await)
        };
        let uid = pass.uid.clone();
        let mut state = self.0.state.lock();
        state.under_way.push(pass);
        state.keep_file();
        UnderWay {
            suspects: self,
            uid,
            _turn: turn,
        }
    }

    /// Permit for work that belongs to no object, and not beside an object that is taken alone.
    pub(crate) async fn share(&self) -> RwLockReadGuard<'_, ()> {
        self.0.turns.read().await
    }

    /// The object is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.0.state.lock().deaths.remove(uid);
    }

    /// Forgets objects that are not among these, after the first list of every namespace.
    pub(crate) fn retain(&self, uids: &HashSet<String>) {
        self.0.state.lock().deaths.retain(|uid, _| uids.contains(uid));
    }
}

impl SuspectState {
    fn keep_file(&mut self) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write(&self.under_way) {
            warn!(%error, "passes under way are not kept any more: a death of this process will have no suspects");
            self.file = None;
        }
    }
}

pub(crate) struct UnderWay<'a> {
    suspects: &'a Suspects,
    uid: String,
    _turn: Either<RwLockReadGuard<'a, ()>, RwLockWriteGuard<'a, ()>>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.suspects.0.state.lock();
        let of_object = state.under_way.iter().position(|pass| pass.uid == self.uid);
        if let Some(at) = of_object {
            state.under_way.swap_remove(at);
        }
        if state
            .deaths
            .get(&self.uid)
            .is_some_and(|deaths| deaths.count < TOO_MANY)
        {
            state.deaths.remove(&self.uid);
        }
        state.keep_file();
    }
}

#[cfg(test)]
mod tests;
