//! Every Kubernetes and HTTP call of the operator, and no decision.
//!
//! [`Cluster::observe`] makes the reads that a pass needs, [`Cluster::record`] writes the status, [`Cluster::act`]
//! carries out effects, [`Cluster::publish`] writes Events. Every call has its own deadline: the client retries a 503
//! for minutes.

mod act;
mod call;
pub mod cause;
mod change;
mod copies;
mod error;
mod event_recorder;
mod events;
mod fleet;
mod follow;
mod followed;
mod json_list;
mod look;
mod observe;
mod page;
mod pod_reports;
mod probe;
mod rbac;
mod read;
mod record;
mod shared_reads;
mod status;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::channel::mpsc::UnboundedReceiver;
use kube::Client;
use kube::runtime::events::Reporter;
use kube::runtime::reflector::ObjectRef;
use perfval_api::PerfValidation;
use perfval_api::meta::FIELD_MANAGER;
use perfval_run::Run;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

pub use change::{CHANGES, EventWord};
pub use copies::{Copied, Copies};
pub use error::{CallFailure, Class, Error};
pub use fleet::Creation;
pub use look::{Look, cache_of};
pub use observe::{dynamo, own_right, resource_attributes};
pub use probe::EndpointAccess;
pub use rbac::{PERMISSIONS, Permission, Scope};
pub use record::StatusWrite;

use event_recorder::EventRecorder;
use followed::Shared;
use probe::Probes;
use shared_reads::{LastHolders, LastInstalled, RecentAnswers, SharedRefusals};

/// Source of the time: the machine's clock, unless a test plays hours in seconds.
pub type TimeSource = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// Objects whose probe was answered: each deserves a pass.
pub type Wakeups = UnboundedReceiver<ObjectRef<PerfValidation>>;

/// Number of logs of up to 10 MiB in memory at once, with their parsed and packed forms, in a container of 256 MiB.
const LONG_LOGS: usize = 2;
/// Age at which the version of the API server is read again.
const VERSION_LASTS: Duration = Duration::from_mins(10);
/// Time for which the versions of a kind are taken to be the same: they change with an upgrade of the cluster.
const SERVED_LASTS: Duration = Duration::from_mins(1);
/// Time for which a permission is taken to be the same. A policy with 100 runs at once asked 2.7 times a second.
const ALLOWED_LASTS: Duration = Duration::from_secs(5);
/// Time for which refusals to create pods serve all runs of a namespace.
const REFUSALS_LAST: Duration = Duration::from_secs(10);
/// Time for which the next pass may rely on results that this process has written: it comes 200 ms after the write, and need not read
/// every trial's log again, of up to 10 MiB each.
const WRITTEN_LASTS: Duration = Duration::from_secs(10);

/// The cluster, as the operator reads and changes it. Cheap to clone; made once, because it remembers probes and events.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    recorder: EventRecorder,
    probes: Probes,
    version: Arc<Mutex<Option<(Instant, String)>>>,
    installed: LastInstalled,
    holders: LastHolders,
    counters: Arc<Counters>,
    /// Turns to read a log that may have megabytes, for all passes.
    long_logs: Arc<Semaphore>,
    shared: Shared,
    /// By plural of a kind, the version at which the cluster serves it; `None`: at none.
    served: RecentAnswers<&'static str, Option<&'static str>>,
    /// Namespaces that allow runs. A refusal is not kept, so that a new right counts at once.
    allowed: RecentAnswers<String, ()>,
    refusals: SharedRefusals,
    copies: Copies,
    /// Version of the object and digest of its results, by its uid.
    written: RecentAnswers<String, (Option<String>, String)>,
    clock: TimeSource,
}

#[derive(Debug, Default)]
struct Counters {
    timeouts: AtomicU64,
    lost_events: AtomicU64,
}

/// Counts of errors that did not end a pass, since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// API calls that did not answer in time.
    pub timeouts: u64,
    /// Events that could not be published.
    pub lost_events: u64,
}

impl Cluster {
    /// `client` may retry; `impatient` must not (`Config::default_retry = false`): a frontend that is not ready yet
    /// answers 503 through the API server, and a patient client would turn that into a hang. `instance` is the name
    /// of this process in events.
    pub fn new(client: Client, impatient: Client, access: EndpointAccess, instance: String) -> (Self, Wakeups) {
        let (wake, wakeups) = futures::channel::mpsc::unbounded();
        let reporter = Reporter {
            controller: FIELD_MANAGER.to_owned(),
            instance: Some(instance),
        };
        let cluster = Self {
            recorder: EventRecorder::new(client.clone(), reporter),
            client,
            probes: Probes::new(access, impatient, wake),
            version: Arc::default(),
            installed: LastInstalled::default(),
            holders: LastHolders::default(),
            counters: Arc::default(),
            long_logs: Arc::new(Semaphore::new(LONG_LOGS)),
            shared: Shared::default(),
            served: RecentAnswers::new(SERVED_LASTS),
            allowed: RecentAnswers::new(ALLOWED_LASTS),
            refusals: RecentAnswers::new(REFUSALS_LAST),
            copies: Copies::default(),
            written: RecentAnswers::new(WRITTEN_LASTS),
            clock: Arc::new(Utc::now),
        };
        (cluster, wakeups)
    }

    /// The same cluster with another clock.
    #[must_use]
    pub fn with_clock(self, clock: TimeSource) -> Self {
        Self { clock, ..self }
    }

    /// Clock passed to all decisions.
    pub fn now(&self) -> DateTime<Utc> {
        (self.clock)()
    }

    /// Version of the API server, such as `v1.36.4`, read again after [`VERSION_LASTS`]: a control plane is upgraded under
    /// the operator.
    pub async fn version(&self) -> Result<String, CallFailure> {
        let mut known = self.version.lock().await;
        if let Some((asked, version)) = &*known
            && asked.elapsed() < VERSION_LASTS
        {
            return Ok(version.clone());
        }
        let began = Instant::now();
        match self.bounded(self.client.apiserver_version()).await {
            Ok(info) => Ok(known.insert((began, info.git_version)).1.clone()),
            Err(failure) => {
                let (asked, version) = known.as_mut().ok_or(failure)?;
                *asked = began;
                Ok(version.clone())
            }
        }
    }

    /// Returns true if a completion of this run's endpoint waits for a pass.
    pub fn has_completion(&self, run: &Run<'_>) -> bool {
        self.probes.has_completion(run)
    }

    /// Copies of the objects of runs, which need the changes that watches bring.
    pub fn copies(&self) -> Copies {
        self.copies.clone()
    }

    /// Counts of errors that did not end a pass.
    pub fn counts(&self) -> Counts {
        Counts {
            timeouts: self.counters.timeouts.load(Ordering::Relaxed),
            lost_events: self.counters.lost_events.load(Ordering::Relaxed),
        }
    }
}
