use k8s_openapi::api::resource::v1::{
    CELDeviceSelector, DeviceClaim, DeviceRequest, DeviceSelector, DeviceToleration, ExactDeviceRequest,
    ResourceClaimSpec, ResourceClaimTemplate, ResourceClaimTemplateSpec,
};
use kube::core::ObjectMeta;

use super::meta::{labels, metadata};
use super::pod::non_empty;
use crate::names::dynamo::WORKER;
use crate::{Run, names};

/// Name of the one request in a worker's claim, and of the claim in its pod.
pub const GPU: &str = "gpu";

/// The claim template of the workers: the whole devices of one worker, and none that the plan excludes. The labels are on the claims too, so that
/// cleanup can wait for them.
pub fn claim_template(run: &Run<'_>) -> ResourceClaimTemplate {
    let selectors = run.status().state.plan.selectors.clone();
    let selector = |expression| DeviceSelector {
        cel: Some(CELDeviceSelector { expression }),
    };
    let request = DeviceRequest {
        name: GPU.to_owned(),
        exactly: Some(ExactDeviceRequest {
            device_class_name: run.spec().placement.device_class_name.clone(),
            allocation_mode: Some("ExactCount".to_owned()),
            count: Some(run.spec().gpus_per_worker()),
            selectors: non_empty(selectors.into_iter().map(selector).collect()),
            tolerations: non_empty(tolerations(&run.spec().placement.device_tolerations)),
            ..ExactDeviceRequest::default()
        }),
        first_available: None,
    };
    ResourceClaimTemplate {
        metadata: metadata(run, names::deployment(&run.id()), WORKER),
        spec: ResourceClaimTemplateSpec {
            metadata: Some(ObjectMeta {
                labels: Some(labels(run, WORKER)),
                ..ObjectMeta::default()
            }),
            spec: ResourceClaimSpec {
                devices: Some(DeviceClaim {
                    requests: Some(vec![request]),
                    ..DeviceClaim::default()
                }),
            },
        },
    }
}

/// With every effect by its name. A toleration without one is for all effects, as the scheduler reads it too, but Kubernetes
/// 1.36 then takes the pod off a `NoExecute` device at once (found by `just oracle --clusters 1 --seed 1295`).
fn tolerations(asked: &[DeviceToleration]) -> Vec<DeviceToleration> {
    let by_name = |toleration: &DeviceToleration| match toleration.effect.as_deref() {
        None | Some("") => ["NoSchedule", "NoExecute"]
            .map(|effect| DeviceToleration {
                effect: Some(effect.to_owned()),
                ..toleration.clone()
            })
            .to_vec(),
        Some(_) => vec![toleration.clone()],
    };
    asked.iter().flat_map(by_name).collect()
}
