//! Rights of the operator. A missing right appears in `/readyz`, in the log, in an Event on each object that it
//! concerns, and in a metric, until it is granted. No restart is needed then.
//!
//! The check is a `SelfSubjectAccessReview`, which every authenticated user may make by default.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview};
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use perfval_api::{Reason, text};
use perfval_cluster::{own_right, resource_attributes};
use perfval_run::{Event, Run};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use crate::metrics::OperatorMetrics;
use crate::rbac::{OTHER_RESOURCE, Right, known_resource};

/// First pause between checks while a right is missing; never shorter, because a refusal may have another cause, such as
/// a quota. Each further one doubles it.
const AGAIN: Duration = Duration::from_secs(5);
/// Longest pause while a right is missing.
const SELDOM: Duration = Duration::from_secs(30);
/// Questions at the same time.
const AT_ONCE: usize = 8;
/// Time-out of one check.
const LIMIT: Duration = Duration::from_secs(5);
/// Rights that an Event names.
const NAMED: usize = 8;

/// Rights that the operator is known to lack.
#[derive(Clone, Default)]
pub struct Rights(Arc<SharedRights>);

#[derive(Default)]
struct SharedRights {
    known: Mutex<Known>,
    /// Verbs and resources of refused calls, whose rights are not checked since. All 1,800 rights of 50 namespaces would be too many
    /// for each call that a quota refuses.
    doubts: Mutex<BTreeSet<(&'static str, &'static str)>>,
    doubted: Notify,
}

#[derive(Default)]
struct Known {
    missing: BTreeSet<Right>,
    /// Uids of the objects whose users got an Event about these.
    notified: HashSet<String>,
}

impl Rights {
    /// A call with this verb on this resource was refused. A check shows if its right is missing.
    pub fn doubt(&self, verb: &'static str, resource: &'static str) {
        self.0.doubts.lock().insert((verb, resource));
        self.0.doubted.notify_one();
    }

    /// Missing rights, as a text for people; `None` if no right is known to be missing.
    pub fn complaint(&self) -> Option<String> {
        let known = self.0.known.lock();
        let mut text = String::from("the operator lacks rights:\n");
        for right in &known.missing {
            let _ = writeln!(text, "  {right}");
        }
        text.push_str("grant them (config/rbac, or the roles of the chart); it goes on by itself then\n");
        (!known.missing.is_empty()).then_some(text)
    }

    /// Event on an object for the user about missing rights; one for each set of them.
    pub fn event_for(&self, run: &Run<'_>) -> Option<Event> {
        let mut known = self.0.known.lock();
        if known.missing.is_empty() || !known.notified.insert(run.uid().to_owned()) {
            return None;
        }
        let named: Vec<String> = known.missing.iter().take(NAMED).map(ToString::to_string).collect();
        let more = match known.missing.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more (see its /readyz)"),
        };
        let note = format!(
            "the operator lacks rights: {}{more}; grant them (config/rbac, or the roles of the chart), and it goes on by itself",
            named.join(", ")
        );
        Some(Event::warning(Reason::CallFailed, "CheckRights", text::bounded(&note)))
    }

    /// The object is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.0.known.lock().notified.remove(uid);
    }

    /// Forgets objects that are not among these, after a new list.
    pub(crate) fn retain(&self, uids: &HashSet<String>) {
        self.0.known.lock().notified.retain(|uid| uids.contains(uid));
    }

    /// Checks these rights at once, each one again when it is doubted, and the missing ones again and again; `on_change` is called
    /// whenever the answer changes.
    pub async fn watch(self, client: Client, needed: Vec<Right>, metrics: Arc<OperatorMetrics>, on_change: impl Fn()) {
        let (mut pause, mut doubtful) = (AGAIN, needed.clone());
        loop {
            let missing = self.ask(&client, doubtful.iter()).await;
            metrics.lacks(missing.len());
            if self.learn(missing) {
                pause = AGAIN;
                on_change();
            }
            sleep(pause).await;
            let nothing_missing = self.0.known.lock().missing.is_empty();
            if nothing_missing {
                pause = AGAIN;
                self.0.doubted.notified().await;
            } else {
                pause = (2 * pause).min(SELDOM);
            }
            doubtful = self.list_doubtful(&needed);
        }
    }

    /// The missing rights, and those of the calls that were refused since the last time.
    fn list_doubtful(&self, needed: &[Right]) -> Vec<Right> {
        let known = self.0.known.lock().missing.clone();
        let doubts = std::mem::take(&mut *self.0.doubts.lock());
        let is_doubted = |right: &Right| {
            let resource = known_resource(right.resource).unwrap_or(OTHER_RESOURCE);
            // An apply that creates the object needs both.
            let creates = right.verb == "create" && doubts.contains(&("patch", resource));
            creates || doubts.contains(&(right.verb, resource))
        };
        let doubtful = needed
            .iter()
            .filter(|right| known.contains(*right) || is_doubted(right));
        doubtful.cloned().collect()
    }

    /// Returns true if the answer is news.
    fn learn(&self, missing: BTreeSet<Right>) -> bool {
        let mut known = self.0.known.lock();
        if known.missing == missing {
            return false;
        }
        for right in missing.difference(&known.missing) {
            warn!(%right, "a right is missing: grant it (config/rbac)");
        }
        for right in known.missing.difference(&missing) {
            info!(%right, "a right was granted");
        }
        *known = Known {
            missing,
            notified: HashSet::new(),
        };
        true
    }

    /// The rights that are missing. One without an answer stays what it was: unknown is not missing.
    async fn ask(&self, client: &Client, needed: impl Iterator<Item = &Right>) -> BTreeSet<Right> {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
        let before = self.0.known.lock().missing.clone();
        let questions: Vec<_> = needed.map(|right| lacks(&reviews, right, &before)).collect();
        let missing: Vec<Option<Right>> = stream::iter(questions).buffer_unordered(AT_ONCE).collect().await;
        missing.into_iter().flatten().collect()
    }
}

/// The right, if it is missing.
async fn lacks(reviews: &Api<SelfSubjectAccessReview>, right: &Right, before: &BTreeSet<Right>) -> Option<Right> {
    match is_granted(reviews, right).await {
        Ok(granted) => (!granted).then(|| right.clone()),
        Err(why) => {
            debug!(%right, why, "it is not known whether it is granted");
            before.get(right).cloned()
        }
    }
}

async fn is_granted(reviews: &Api<SelfSubjectAccessReview>, right: &Right) -> Result<bool, String> {
    let review = own_right(ResourceAttributes {
        name: right.name.map(str::to_owned),
        ..resource_attributes(right.verb, right.group, right.resource, right.namespace.as_deref())
    });
    match timeout(LIMIT, reviews.create(&PostParams::default(), &review)).await {
        Ok(Ok(answered)) => Ok(answered.status.is_some_and(|status| status.allowed)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
    }
}
