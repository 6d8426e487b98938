//! The leader lease: one process works, the others stand by.
//!
//! It saves double work; correctness rests on derived names, creates instead of applies, and the lock on the status.
//! A leader that cannot renew ends its process: a leader that works on could meet its successor.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use perfval_cluster::TimeSource;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};

use crate::error::Error;
use crate::fence::{RELIABLE, Tenure};
use crate::moment::Moment;
use crate::suspects::Suspects;

/// Time for which a record is good without renewal.
const DURATION: Duration = Duration::from_secs(15);
/// A leader that did not renew for so long steps down, before another may take over.
const RENEW_DEADLINE: Duration = RELIABLE;
/// Shortest pause between two requests, even if a lease expires sooner.
const SHORTEST: Duration = Duration::from_millis(100);
/// Time between attempts, and limit of each call.
const RETRY: Duration = Duration::from_secs(2);

/// Time until which another process holds a lease; `None` if `me` may write it. The record was first seen, unchanged since, at
/// `first_seen`. Expiry is counted on the local clock from then on, as client-go does: the clocks of two machines are never
/// compared.
fn held_until(lease: Option<&LeaseSpec>, me: &str, first_seen: Instant, now: Instant) -> Option<Instant> {
    let lease = lease?;
    let holder = lease.holder_identity.as_deref().unwrap_or_default();
    if holder.is_empty() || holder == me {
        return None;
    }
    let seconds = lease.lease_duration_seconds.and_then(|s| u64::try_from(s).ok());
    let expiry = first_seen + seconds.map_or(DURATION, Duration::from_secs);
    (now < expiry).then_some(expiry)
}

/// One candidate for one Lease object.
pub struct Candidate {
    api: Api<Lease>,
    name: String,
    lease: String,
    me: String,
    /// The record as last seen, and since when it has been so.
    seen: Option<(Lease, Instant)>,
    /// The record as this process wrote it last, if its last attempt succeeded.
    written: Option<Lease>,
    /// Tenure for the writers under this lease.
    tenure: Tenure,
    /// For the times in the record, which are for people alone.
    clock: TimeSource,
    /// Suspects whose deaths are counted in the record.
    suspects: Suspects,
}

impl Candidate {
    /// A candidate called `me` for the lease `namespace/name`. The client must not retry.
    pub fn new(impatient: Client, namespace: &str, name: &str, me: String) -> Self {
        Self {
            api: Api::namespaced(impatient, namespace),
            name: name.to_owned(),
            lease: format!("{namespace}/{name}"),
            me,
            seen: None,
            written: None,
            tenure: Tenure::default(),
            clock: Arc::new(Utc::now),
            suspects: Suspects::default(),
        }
    }

    /// The same candidate, which counts these in the record.
    #[must_use]
    pub fn with_suspects(self, suspects: Suspects) -> Self {
        Self { suspects, ..self }
    }

    /// The same candidate with another clock.
    #[must_use]
    pub fn with_clock(self, clock: TimeSource) -> Self {
        Self { clock, ..self }
    }

    /// State of the lease, for the writers under it.
    pub fn tenure(&self) -> Tenure {
        self.tenure.clone()
    }

    /// Waits until this process holds the lease.
    pub async fn acquire(&mut self) {
        info!(lease = self.lease, identity = self.me, "waiting for the lease");
        loop {
            let now = Instant::now();
            let next = match self.attempt().await {
                Ok(None) => break,
                Ok(Some(until)) => until.min(now + RETRY),
                Err(why) => {
                    warn!(lease = self.lease, why, "the lease cannot be had yet");
                    now + RETRY
                }
            };
            sleep_until(next.max(Instant::now() + SHORTEST)).await;
        }
        info!(lease = self.lease, identity = self.me, "leading");
    }

    /// Renews the lease for as long as that works. Returns the error that ended it.
    pub async fn keep(&mut self) -> Error {
        loop {
            sleep(RETRY).await;
            let Some(renewed) = self.tenure.renewed_at() else {
                return self.lost("it was never ours");
            };
            let left = RENEW_DEADLINE.saturating_sub(renewed.elapsed());
            // A lease that is too old may be another's by now: there is no attempt to renew it.
            if left.is_zero() {
                return self.lost(&format!("not renewed for {} s", renewed.elapsed().as_secs()));
            }
            let why = match timeout(left, self.attempt()).await {
                Ok(Ok(None)) => continue,
                Ok(Ok(Some(_))) => return self.lost("another process holds it"),
                Ok(Err(why)) => why,
                Err(_) => "no answer".to_owned(),
            };
            if renewed.elapsed() >= RENEW_DEADLINE {
                return self.lost(&format!("not renewed for {} s: {why}", RENEW_DEADLINE.as_secs()));
            }
            warn!(lease = self.lease, why, "the lease was not renewed; trying again");
        }
    }

    /// Gives the lease back, so that a successor need not wait for its expiry.
    pub async fn release(&mut self) {
        self.tenure.end();
        let known = match self.written.take() {
            Some(written) => Some(written),
            // The last attempt may have been cut off between its write and the answer.
            None => match timeout(RETRY, self.api.get_opt(&self.name)).await {
                Ok(Ok(current)) => current,
                _ => None,
            },
        };
        let Some(mut released) = known.filter(|lease| holder(lease) == Some(&self.me)) else {
            return;
        };
        self.suspects.annotate(&mut released.metadata);
        if let Some(spec) = &mut released.spec {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
        }
        match timeout(RETRY, self.api.replace(&self.name, &PostParams::default(), &released)).await {
            Ok(Ok(_)) => info!(lease = self.lease, "lease released"),
            Ok(Err(error)) => debug!(
                lease = self.lease,
                error = &error as &dyn std::error::Error,
                "lease not released"
            ),
            Err(_) => debug!(lease = self.lease, "lease not released in time"),
        }
    }

    fn lost(&self, why: &str) -> Error {
        self.tenure.end();
        Error::LeaseLost {
            lease: self.lease.clone(),
            why: why.to_owned(),
        }
    }

    /// Acquires or renews the lease: `None`. Otherwise another process has it until the returned time.
    async fn attempt(&mut self) -> Result<Option<Instant>, String> {
        // A record counts from the beginning of its writing: it is at least as fresh.
        let began = Moment::now();
        let answer = timeout(RETRY * 2, self.try_once()).await;
        let answer = answer.map_err(|_| format!("no answer within {} s", (RETRY * 2).as_secs()))?;
        let until = answer.map_err(|error| error.to_string())?;
        if until.is_none() {
            self.tenure.renewed(began);
        }
        Ok(until)
    }

    /// Reads the record, and writes it if the lease may be taken. A holder does not read what it wrote itself, unless another
    /// process wrote since. Any other conflict is a failure, and the next look shows the holder. Returns as `attempt` does.
    async fn try_once(&mut self) -> Result<Option<Instant>, kube::Error> {
        let known = self.written.take();
        let is_known = known.is_some();
        let current = match known {
            Some(written) => Some(written),
            None => self.api.get_opt(&self.name).await?,
        };
        let now = Instant::now();
        let first_seen = match (&current, &self.seen) {
            (Some(current), Some((before, since))) if current.spec == before.spec => *since,
            _ => now,
        };
        self.seen = current.clone().map(|lease| (lease, first_seen));
        let spec = current.as_ref().and_then(|lease| lease.spec.as_ref());
        if let Some(until) = held_until(spec, &self.me, first_seen, now) {
            debug!(lease = self.lease, wait = ?(until - now), "held by another process");
            return Ok(Some(until));
        }
        let mut next = next_record(current.as_ref(), &self.name, &self.me, micro((self.clock)()));
        self.suspects.annotate(&mut next.metadata);
        let written = match current {
            Some(_) => self.api.replace(&self.name, &PostParams::default(), &next).await,
            None => self.api.create(&PostParams::default(), &next).await,
        };
        match written {
            Ok(lease) => {
                self.written = Some(lease);
                self.suspects.counted();
                Ok(None)
            }
            // Another process wrote it. A read shows the holder.
            Err(kube::Error::Api(status)) if is_known && status.is_conflict() => Box::pin(self.try_once()).await,
            Err(error) => Err(error),
        }
    }
}

/// The record that claims the lease for `me`. Replacing keeps the resourceVersion, so that only one writer can win.
fn next_record(current: Option<&Lease>, name: &str, me: &str, now: MicroTime) -> Lease {
    let before = current.and_then(|lease| lease.spec.clone()).unwrap_or_default();
    let ours = before.holder_identity.as_deref() == Some(me);
    let metadata = current.map_or_else(
        || ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        |l| l.metadata.clone(),
    );
    let spec = LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
        acquire_time: before.acquire_time.filter(|_| ours).or(Some(now.clone())),
        lease_transitions: Some(before.lease_transitions.unwrap_or(0) + i32::from(!ours && current.is_some())),
        renew_time: Some(now),
        ..before
    };
    Lease {
        metadata,
        spec: Some(spec),
    }
}

fn holder(lease: &Lease) -> Option<&String> {
    lease.spec.as_ref()?.holder_identity.as_ref()
}

fn micro(time: DateTime<Utc>) -> MicroTime {
    MicroTime(Timestamp::from_microsecond(time.timestamp_micros()).unwrap_or(Timestamp::UNIX_EPOCH))
}

#[cfg(test)]
mod tests;
