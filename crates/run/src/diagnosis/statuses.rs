//! Statuses of a pod's containers.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

/// Init containers first, as they run.
pub(super) fn container_statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let init = status.and_then(|status| status.init_container_statuses.as_ref());
    let main = status.and_then(|status| status.container_statuses.as_ref());
    init.into_iter().flatten().chain(main.into_iter().flatten())
}
