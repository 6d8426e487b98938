//! Events to publish: passes queue them and continue, and one call at a time publishes them.
//!
//! A thousand new objects bring two thousand Events. Published by the passes themselves they kept every pass of the
//! others waiting 30 ms each, and a new object had no status for up to 12 s (`just bench-line 1000`).

use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::Resource;
use perfval_cluster::Cluster;
use perfval_run::{Event, Run};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

/// Events that may wait; an event that finds no room is lost, and counted.
const ROOM: usize = 4096;

/// The queue of Events.
pub struct Announcer {
    queue: mpsc::Sender<(ObjectReference, Event)>,
    waiting: Mutex<mpsc::Receiver<(ObjectReference, Event)>>,
}

impl Default for Announcer {
    fn default() -> Self {
        let (queue, waiting) = mpsc::channel(ROOM);
        Self {
            queue,
            waiting: Mutex::new(waiting),
        }
    }
}

impl Announcer {
    /// Hands over Events on a run's object; they are published in this order.
    pub fn announce(&self, cluster: &Cluster, run: &Run<'_>, events: impl IntoIterator<Item = Event>) {
        for event in events {
            if self.queue.try_send((run.object.object_ref(&()), event)).is_err() {
                cluster.count_lost_event();
            }
        }
    }

    /// Publishes until `last` is cancelled, and then the rest.
    pub async fn publish_until(&self, cluster: &Cluster, last: CancellationToken) {
        let mut waiting = self.waiting.lock().await;
        while let Some(Some((object, event))) = last.run_until_cancelled(waiting.recv()).await {
            cluster.publish(&object, &event).await;
        }
        while let Ok((object, event)) = waiting.try_recv() {
            cluster.publish(&object, &event).await;
        }
    }
}
