//! Objects as the watches of the fleet hold them. An object that this version cannot parse does not hide the others.

use std::borrow::Cow;
use std::sync::Arc;

use kube::api::ObjectMeta;
use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::{Resource, ResourceExt as _};
use perfval_api::Reason;
use perfval_run::secret::Redactor;
use serde::{Deserialize, Deserializer};
use tracing::error;

use crate::metrics::OperatorMetrics;

/// An object, or the reason why it cannot be parsed. Readers share it: a fleet has thousands.
#[derive(Clone, Debug)]
pub(super) struct FleetObject<K>(Result<Arc<K>, Arc<InvalidObject>>);

pub(super) type FleetStore<K> = Store<FleetObject<K>>;

impl<K> FleetObject<K> {
    /// The object, unless it cannot be parsed.
    pub(super) fn parsed(&self) -> Option<&K> {
        self.0.as_deref().ok()
    }
}

impl<'de, K: Resource + Deserialize<'de>> Deserialize<'de> for FleetObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let DeserializeGuard(object) = DeserializeGuard::<K>::deserialize(deserializer)?;
        Ok(Self(object.map(Arc::new).map_err(Arc::new)))
    }
}

impl<K: Resource + Clone> Resource for FleetObject<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        match &self.0 {
            Ok(object) => K::meta(object),
            Err(invalid) => &invalid.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => K::meta_mut(Arc::make_mut(object)),
            Err(invalid) => &mut Arc::make_mut(invalid).metadata,
        }
    }
}

/// Returns the objects, and those that cannot be parsed.
pub(super) fn read<K>(store: &FleetStore<K>) -> (Vec<Arc<K>>, Vec<Arc<InvalidObject>>)
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let (mut objects, mut unreadable) = (Vec::new(), Vec::new());
    for stored in store.state() {
        match &stored.0 {
            Ok(object) => objects.push(object.clone()),
            Err(invalid) => unreadable.push(invalid.clone()),
        }
    }
    (objects, unreadable)
}

/// Reports a new or changed object that cannot be parsed, unless the store has it with the same reason.
pub(super) fn report_unreadable<K>(
    kind: &'static str,
    event: &watcher::Result<Event<FleetObject<K>>>,
    store: &FleetStore<K>,
    metrics: &OperatorMetrics,
) where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let Ok(Event::Apply(stored) | Event::InitApply(stored)) = event else {
        return;
    };
    let Err(invalid) = &stored.0 else { return };
    let known = store.get(&ObjectRef::from_obj(stored));
    if known.is_some_and(|known| known.0.as_ref().is_err_and(|known| known.error == invalid.error)) {
        return;
    }
    // A parser quotes what it does not expect.
    let why = Redactor::default().redact(&invalid.error);
    error!(
        kind,
        name = stored.name_any(),
        why,
        "this version cannot parse the object"
    );
    metrics.failed(Reason::SpecUnreadable.as_str());
}
