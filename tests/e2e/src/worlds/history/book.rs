//! What one watch brings, and what it must have missed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::DynamicObject;
use kube::runtime::watcher;

use super::Change;

/// What one watch has brought, to tell what went while it was blind.
pub(super) struct Book {
    plural: &'static str,
    known: BTreeMap<String, Change>,
    listed: BTreeSet<String>,
    lists: usize,
}

impl Book {
    pub(super) fn new(plural: &'static str) -> Self {
        Self {
            plural,
            known: BTreeMap::new(),
            listed: BTreeSet::new(),
            lists: 0,
        }
    }

    pub(super) fn take(&mut self, event: watcher::Event<DynamicObject>) -> Vec<Change> {
        match event {
            watcher::Event::Init => {
                self.listed.clear();
                self.lists += 1;
                Vec::new()
            }
            watcher::Event::InitApply(object) => {
                let change = self.change(&object, false, true);
                self.listed.insert(uid(&change));
                self.note(change)
            }
            watcher::Event::Apply(object) => {
                let change = self.change(&object, false, false);
                self.note(change)
            }
            watcher::Event::Delete(object) => {
                let change = self.change(&object, true, false);
                self.known.remove(&uid(&change));
                vec![change]
            }
            watcher::Event::InitDone => self.missing(),
        }
    }

    fn note(&mut self, change: Change) -> Vec<Change> {
        let before = self.known.insert(uid(&change), change.clone());
        let is_old = before.is_some_and(|before| before.revision == change.revision);
        if is_old { Vec::new() } else { vec![change] }
    }

    /// What is not in a list has gone at some time since it was last seen: the earliest one convicts nobody of anything.
    fn missing(&mut self) -> Vec<Change> {
        let (stay, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.known)
            .into_iter()
            .partition(|(uid, _)| self.listed.contains(uid));
        self.known = stay;
        let end = |change: Change| Change {
            gone: true,
            after_gap: true,
            ..change
        };
        gone.into_values().map(end).collect()
    }

    fn change(&self, object: &DynamicObject, gone: bool, listed: bool) -> Change {
        let mut object = serde_json::to_value(object).unwrap_or_default();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let revision = object["metadata"]["resourceVersion"].as_str();
        Change {
            revision: revision.and_then(|number| number.parse().ok()).unwrap_or_default(),
            plural: self.plural,
            object: Arc::new(object),
            gone,
            after_gap: listed,
        }
    }
}

fn uid(change: &Change) -> String {
    change.metadata("uid").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str, revision: u64) -> DynamicObject {
        let metadata = json!({"uid": uid, "name": uid, "namespace": "w", "resourceVersion": revision.to_string()});
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})).expect("an object")
    }

    #[test]
    fn what_a_list_no_longer_has_went_right_after_it_was_seen_last() {
        use watcher::Event as E;
        let mut book = Book::new("pods");
        let events = [
            E::Init,
            E::InitApply(object("a", 3)),
            E::InitDone,
            E::Apply(object("b", 5)),
            E::Apply(object("a", 6)),
            E::Init,
            E::InitApply(object("b", 5)),
            E::InitApply(object("c", 9)),
            E::InitDone,
            E::Delete(object("b", 12)),
        ];
        let told: Vec<(String, u64, bool, bool)> = events
            .into_iter()
            .flat_map(|event| book.take(event))
            .map(|change| (uid(&change), change.revision, change.gone, change.after_gap))
            .collect();
        let expected = [
            ("a", 3, false, true),
            ("b", 5, false, false),
            ("a", 6, false, false),
            ("c", 9, false, true),
            ("a", 6, true, true),
            ("b", 12, true, false),
        ];
        let expected = expected.map(|(uid, revision, gone, gap)| (uid.to_owned(), revision, gone, gap));
        assert_eq!(told, expected);
    }
}
