//! Everything that knows Dynamo: the names of its metrics, and of those of its engines. A second back end gets a folder
//! like this one.

pub mod worker_metrics;

/// The frontend's histogram of the time from a request's entry to its dispatch to a worker.
pub const DISPATCH_WAIT: &str = "dynamo_request_plane_queue_seconds";

/// The frontend's histogram of whole requests.
pub const FRONTEND_DURATION: &str = "dynamo_frontend_request_duration_seconds";
