use std::sync::atomic::Ordering;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{self, EventType};
use perfval_api::text;
use perfval_run::Event;

use crate::Cluster;

/// The API server refuses a longer note.
const NOTE_BYTES: usize = 1024;

impl Cluster {
    /// Publishes an Event on an object. A lost one is logged and counted, and never fails a pass.
    pub async fn publish(&self, object: &ObjectReference, event: &Event) {
        let published = events::Event {
            type_: if event.warning {
                EventType::Warning
            } else {
                EventType::Normal
            },
            reason: event.reason.as_str().to_owned(),
            note: Some(text::cut(&event.note, NOTE_BYTES)),
            action: event.action.clone().into_owned(),
            secondary: None,
        };
        // An Event of a namespace that is being deleted does not count as lost.
        if let Err(failure) = self.bounded(self.recorder.next().publish(&published, object)).await
            && !failure.is_namespace_leaving()
        {
            tracing::warn!(reason = published.reason, %failure, "an event is lost");
            self.count_lost_event();
        }
    }

    /// Counts an Event that was not published.
    pub fn count_lost_event(&self) {
        self.counters.lost_events.fetch_add(1, Ordering::Relaxed);
    }
}
