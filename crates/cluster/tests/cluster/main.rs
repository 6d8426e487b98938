//! Every read and every change, against an API server that fails on request.

mod act;
mod baseline;
mod events;
mod failures;
mod inventory;
mod node_performance;
mod observe;
mod policy;
mod probe;
mod record;
mod rights;
mod versions;
mod world;
