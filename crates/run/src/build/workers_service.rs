use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use perfval_api::meta::RUN_LABEL;

use super::meta::metadata;
use crate::names::COMPONENT_LABEL;
use crate::names::dynamo::{WORKER, WORKER_METRICS_PORT};
use crate::{Run, names};

/// The headless Service through which the runner finds every worker's metrics. It lists workers that are not ready
/// too: a worker that fell over during a trial is the one worth looking at.
pub fn workers_service(run: &Run<'_>) -> Service {
    let selector = [
        (RUN_LABEL.to_owned(), run.id()),
        (COMPONENT_LABEL.to_owned(), WORKER.to_owned()),
    ];
    Service {
        metadata: metadata(run, names::workers_service(&run.id()), WORKER),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            publish_not_ready_addresses: Some(true),
            selector: Some(selector.into()),
            ports: Some(vec![ServicePort {
                name: Some("system".to_owned()),
                port: WORKER_METRICS_PORT.into(),
                target_port: Some(IntOrString::Int(WORKER_METRICS_PORT.into())),
                protocol: Some("TCP".to_owned()),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
