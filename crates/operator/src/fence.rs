//! No write without the lease.
//!
//! A process that is frozen (SIGSTOP, a machine that sleeps or swaps) continues in the middle of a pass, and its
//! successor may be at work by then. So the age of the lease is checked before each single write, below all retries
//! and buffers. A virtual machine that its host pauses has no clock that shows it; there, as everywhere, the
//! resourceVersions and uids in the writes refuse decisions on old copies.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use kube::client::Body;
use parking_lot::Mutex;
use tower::filter::{Filter, Predicate};
use tower::{BoxError, Layer};

use crate::moment::Moment;

/// Age at which a lease no longer allows writes. Others wait 1.5 times as long, until most running calls have ended.
pub(crate) const RELIABLE: Duration = Duration::from_secs(10);

/// Returns true if a lease that was renewed at `renewed`, at the latest, allows a write now.
fn is_recent(renewed: Option<Moment>, now: Moment) -> bool {
    renewed.is_some_and(|renewed| now.since(renewed) < RELIABLE)
}

/// Last renewal of a process' own lease. Clones are the same lease.
#[derive(Clone, Debug, Default)]
pub struct Tenure(Arc<Mutex<Option<Moment>>>);

impl Tenure {
    /// Records a renewal of the lease, by a record whose writing began then.
    pub(crate) fn renewed(&self, began: Moment) {
        *self.0.lock() = Some(began);
    }

    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }

    /// Time of the last sure renewal; `None` without the lease.
    pub(crate) fn renewed_at(&self) -> Option<Moment> {
        *self.0.lock()
    }
}

/// Lets the writes of a client through while a lease allows them; without a lease, all of them.
#[derive(Clone, Debug)]
pub struct Fence(Option<Tenure>);

impl Fence {
    /// A fence of this lease; `None` without an election.
    pub fn new(tenure: Option<Tenure>) -> Self {
        Self(tenure)
    }

    fn lets_through(&self, method: &Method) -> bool {
        let Some(tenure) = &self.0 else { return true };
        *method == Method::GET || is_recent(tenure.renewed_at(), Moment::now())
    }
}

impl<S> Layer<S> for Fence {
    type Service = Filter<S, Self>;

    fn layer(&self, inner: S) -> Filter<S, Self> {
        Filter::new(inner, self.clone())
    }
}

/// Reason why a call was not made.
#[derive(Debug, thiserror::Error)]
#[error(
    "not sent: this process has lost its lease, or has not renewed it for {} s; the leader repeats the call",
    RELIABLE.as_secs()
)]
struct TooOld;

impl Predicate<Request<Body>> for Fence {
    type Request = Request<Body>;

    fn check(&mut self, request: Request<Body>) -> Result<Request<Body>, BoxError> {
        if self.lets_through(request.method()) {
            Ok(request)
        } else {
            Err(TooOld.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_allows_writes_for_ten_seconds() {
        let began = Moment::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        for (case, renewed, now, expected) in [
            ("never held", None, 0, false),
            ("just renewed", Some(began), 0, true),
            ("nearly too old", Some(began), 9, true),
            ("too old", Some(began), 10, false),
            ("frozen for a minute", Some(began), 60, false),
            ("renewed by a call that has only just begun", Some(at(3)), 1, true),
        ] {
            assert_eq!(is_recent(renewed, at(now)), expected, "{case}");
        }
        let slept = Moment {
            since_boot: began.since_boot + Duration::from_mins(1),
            ..began
        };
        assert!(!is_recent(Some(began), slept), "its machine slept for a minute");
    }

    #[tokio::test(start_paused = true)]
    async fn reads_always_pass_and_writes_need_the_lease_if_there_is_an_election() {
        let tenure = Tenure::default();
        let fence = Fence::new(Some(tenure.clone()));
        let writes = |fence: &Fence| fence.lets_through(&Method::POST) && fence.lets_through(&Method::DELETE);
        assert!(fence.lets_through(&Method::GET) && !writes(&fence));
        tenure.renewed(Moment::now());
        assert!(writes(&fence));
        tokio::time::advance(RELIABLE).await;
        assert!(!writes(&fence) && writes(&Fence::new(None)));
        tenure.renewed(Moment::now());
        tenure.end();
        assert!(!writes(&fence), "given back");
    }
}
