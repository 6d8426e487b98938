//! Names that Dynamo gives or expects.

use crate::names::deployment;

/// API group of the deployments; other operators serve it too.
pub const GROUP: &str = "nvidia.com";
/// Kind of the deployments.
pub const KIND: &str = "DynamoGraphDeployment";
/// Component of the deployment that takes requests.
pub const FRONTEND: &str = "frontend";
/// Component of the deployment that holds the GPUs.
pub const WORKER: &str = "worker";
/// The container that Dynamo's operator completes; all others it leaves alone.
pub const MAIN: &str = "main";
/// Port of the frontend's Service.
pub const FRONTEND_PORT: u16 = 8000;
/// Port of a worker's metrics.
pub const WORKER_METRICS_PORT: u16 = 9090;
/// User of Dynamo's runtime images; also the group that its pods give their volumes.
pub const USER: i64 = 1000;

/// Service that Dynamo's operator makes for the frontend.
pub fn frontend_service(run_id: &str) -> String {
    format!("{}-{FRONTEND}", deployment(run_id))
}
