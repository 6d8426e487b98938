//! Everything specific to Dynamo: the names of its metrics, and of those of its engines. A second back end gets a
//! folder like this one.

pub mod worker_metrics;

/// The frontend's histogram of the time from a request's entry to its dispatch to a worker.
pub const DISPATCH_WAIT: &str = "dynamo_request_plane_queue_seconds";

/// The frontend's histogram of whole requests.
pub const FRONTEND_DURATION: &str = "dynamo_frontend_request_duration_seconds";

/// The frontend's histogram of how late its event loop wakes from a sleep of 10 ms. It is on the loop that serves requests:
/// a frontend without CPU, by its limit or its neighbours, is late.
pub const LOOP_DELAY: &str = "dynamo_frontend_event_loop_delay_seconds";
