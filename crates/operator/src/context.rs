//! Everything that passes share, and the bookkeeping after a write.

use std::sync::Arc;

use perfval_api::{PerfValidation, PerfValidationStatus, Phase};
use perfval_cluster::Cluster;
use perfval_run::{Decision, Event, Run, Settings, machine, status, time};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::announcer::Announcer;
use crate::looks::Looks;
use crate::measured::Measured;
use crate::metrics::OperatorMetrics;
use crate::newcomers::Newcomers;
use crate::objects::Objects;
use crate::own_writes::OwnWrites;
use crate::pace::PassPace;
use crate::queue_bell::{self, QueueBell, RunKey};
use crate::rights::Rights;
use crate::room::Room;
use crate::setbacks::Setbacks;
use crate::store_limits::StoreLimits;
use crate::stored::Stored;
use crate::suspects::Suspects;

/// Everything that passes share.
pub struct Context {
    pub(crate) cluster: Cluster,
    pub(crate) settings: Settings,
    pub(crate) metrics: Arc<OperatorMetrics>,
    pub(crate) objects: Objects,
    pub(crate) rights: Rights,
    pub(crate) queue: QueueBell,
    pub(crate) own_writes: OwnWrites,
    pub(crate) looks: Looks,
    pub(crate) pace: PassPace,
    pub(crate) newcomers: Newcomers,
    pub(crate) setbacks: Setbacks,
    pub(crate) suspects: Suspects,
    pub(crate) store_limits: StoreLimits,
    pub(crate) measured: Measured,
    pub(crate) room: Room,
    /// Rings when a run is over.
    pub(crate) ended: Notify,
    announcer: Announcer,
}

/// A run that waits in the queue. It stays packed until its turn: thousands may wait.
pub(crate) struct Queued {
    pub(crate) key: RunKey,
    pub(crate) stored: Arc<Stored>,
}

impl Context {
    /// The context of a process that leads.
    pub fn new(
        cluster: Cluster,
        settings: Settings,
        metrics: Arc<OperatorMetrics>,
        objects: Objects,
        rights: Rights,
    ) -> Self {
        Self {
            cluster,
            settings,
            metrics,
            objects,
            rights,
            queue: QueueBell::default(),
            own_writes: OwnWrites::default(),
            looks: Looks::default(),
            pace: PassPace::default(),
            newcomers: Newcomers::default(),
            setbacks: Setbacks::default(),
            suspects: Suspects::default(),
            store_limits: StoreLimits::default(),
            measured: Measured::default(),
            room: Room::default(),
            ended: Notify::new(),
            announcer: Announcer::default(),
        }
    }

    /// The same, with the suspects of earlier processes.
    #[must_use]
    pub fn with_suspects(self, suspects: Suspects) -> Self {
        Self { suspects, ..self }
    }

    /// Publishes Events until `last` is cancelled.
    pub async fn publish_until(&self, last: CancellationToken) {
        self.announcer.publish_until(&self.cluster, last).await;
    }

    pub(crate) fn announce(&self, run: &Run<'_>, events: impl IntoIterator<Item = Event>) {
        self.announcer.announce(&self.cluster, run, events);
    }

    /// The objects that the planner moves, none older than the operator's last write of it.
    pub(crate) fn queued(&self) -> Vec<Queued> {
        let newest = |watched: Arc<Stored>| self.own_writes.newer(&*watched).unwrap_or(watched);
        let queued = |stored: Arc<Stored>| {
            let object = stored.unpack().ok()?;
            let run = Run::new(&object, &self.settings);
            let waits = machine::is_queued(&run) && !self.suspects.is_set_aside(&object.metadata);
            waits.then(|| Queued {
                key: queue_bell::key(&run),
                stored,
            })
        };
        let all = self.objects.readable().map(newest);
        let sizing = all.filter(|stored| stored.phase() == Some(Phase::Sizing));
        sizing.filter_map(queued).collect()
    }

    /// Returns true if this operator records nodes. Only an operator of all namespaces does: the objects are cluster-wide.
    pub(crate) fn records_nodes(&self) -> bool {
        self.objects.namespaces().contains(&None)
    }

    /// Updates memory and metrics after a recorded decision, and wakes its followers.
    pub(crate) fn recorded(&self, run: &Run<'_>, decision: &Decision, written: &PerfValidation) {
        self.own_writes.add(run.object, written.clone());
        self.newcomers.forget(written);
        let (before, after) = (run.status(), &decision.status);
        if let Some(left) = before.phase.filter(|_| before.phase != after.phase) {
            let next = after.phase.map_or("", Phase::as_str);
            info!(next, reason = after.reason, message = after.message, "phase over");
            if let Some(since) = status::phase_started_at(before) {
                let lasted = time::until(self.cluster.now(), since);
                self.metrics.left(left, lasted);
                if (left, after.phase) == (Phase::Sizing, Some(Phase::Deploying)) {
                    self.metrics.placed(lasted);
                }
            }
        }
        self.metrics.trials(before, after);
        if let Some(verdict) = after.verdict.filter(|_| before.verdict.is_none()) {
            self.metrics
                .judged(verdict, after.reason.as_deref().unwrap_or_default());
        }
        let frees = perfval_sizing::holds_node(before) && !perfval_sizing::holds_node(after);
        let ends = !is_over(before) && is_over(after);
        if ends {
            self.ended.notify_one();
            if self.records_nodes() {
                self.measured.add(written, after);
            }
        }
        if frees || ends {
            self.queue.wake();
        }
    }
}

/// Returns true if the run of a status is over.
pub(crate) fn is_over(status: &PerfValidationStatus) -> bool {
    status.phase.is_some_and(Phase::is_over)
}
