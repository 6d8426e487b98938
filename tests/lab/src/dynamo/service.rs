//! A component's Service: the frontend's address, or the `EndpointSlice`s in which discovery sees workers.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::defaults::{HTTP, SYSTEM};
use super::deployment::{SELECTOR_LABEL, child_labels, discovery_labels};
use super::shape::{Component, Graph};

/// The Service of one component: with a cluster address for the frontend, headless for the others.
pub fn build(graph: &Graph, component: &Component, owner: OwnerReference) -> Service {
    let name = graph.child_name(component);
    let (number, port) = if component.is_frontend() { HTTP } else { SYSTEM };
    let mut labels = child_labels(graph, component);
    labels.extend(discovery_labels());
    Service {
        metadata: ObjectMeta {
            labels: Some(labels),
            annotations: Some(graph.annotations.clone()),
            owner_references: Some(vec![owner]),
            namespace: Some(graph.namespace.clone()),
            name: Some(name.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            cluster_ip: (!component.is_frontend()).then(|| "None".to_owned()),
            selector: Some(BTreeMap::from([(SELECTOR_LABEL.to_owned(), name)])),
            ports: Some(vec![ServicePort {
                name: Some(port.to_owned()),
                port: number,
                target_port: Some(IntOrString::String(port.to_owned())),
                protocol: Some("TCP".to_owned()),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
