//! The time, as decisions are given it.

use std::sync::Arc;

use chrono::{DateTime, Utc};

/// Source of the time: the machine's clock, unless a test plays hours in seconds.
#[derive(Clone)]
pub struct TimeSource(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl TimeSource {
    /// A clock that shows the time of `now`.
    pub fn new(now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time.
    pub fn now(&self) -> DateTime<Utc> {
        (self.0)()
    }
}

impl Default for TimeSource {
    fn default() -> Self {
        Self::new(Utc::now)
    }
}
