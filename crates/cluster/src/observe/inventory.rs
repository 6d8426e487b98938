//! What sizing counts. The order is the point: holders are read after devices, so a device that is given out in between is
//! seen as held and never as free.

use k8s_openapi::api::core::v1::{LimitRange, Node, Pod, ResourceQuota};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject};
use perfval_core::Run;
use perfval_core::inventory::{self, ClaimUse, Inventory, PodUse, Slice, Strings};
use serde_json::Value;

use crate::Cluster;
use crate::call::{Read, Unread, read, seen};

/// Versions of device taint rules, the newest first.
const TAINT_RULE_VERSIONS: [&str; 3] = ["v1", "v1beta2", "v1alpha3"];

impl Cluster {
    pub(super) async fn inventory(&self, run: &Run<'_>) -> Inventory {
        let class = run.spec().placement.device_class_name.as_str();
        let classes: Api<DeviceClass> = Api::all(self.client.clone());
        let slices: Api<ResourceSlice> = Api::all(self.client.clone());
        let nodes: Api<Node> = Api::all(self.client.clone());
        let pods: Api<Pod> = Api::all(self.client.clone());
        let claims: Api<ResourceClaim> = Api::all(self.client.clone());
        let quotas: Api<ResourceQuota> = Api::namespaced(self.client.clone(), run.namespace());
        let limit_ranges: Api<LimitRange> = Api::namespaced(self.client.clone(), run.namespace());
        let everything = ListParams::default;
        let running = ListParams::default().fields("status.phase!=Succeeded,status.phase!=Failed");
        let mut strings = Strings::default();
        // A struct's fields are evaluated in the order in which they are written here.
        Inventory {
            device_class: seen(read(
                &format!("get DeviceClass {class}"),
                self.bounded(classes.get(class)).await,
            )),
            slices: seen(read(
                "list ResourceSlices",
                self.list_reduced(&slices, everything(), |slice| Some(Slice::read(&slice, &mut strings)))
                    .await,
            )),
            taint_rules: seen(self.taint_rules().await),
            nodes: seen(read(
                "list Nodes",
                self.list_reduced(&nodes, everything(), |node| {
                    Some(inventory::Node::read(&node, &mut strings))
                })
                .await,
            )),
            pods: seen(read(
                "list Pods",
                self.list_reduced(&pods, running, |pod| PodUse::read(&pod, &mut strings))
                    .await,
            )),
            quotas: seen(read("list ResourceQuotas", self.list(&quotas, everything()).await)),
            limit_ranges: seen(read("list LimitRanges", self.list(&limit_ranges, everything()).await)),
            promises: seen(self.bind_requests(&mut strings).await),
            claims: seen(read(
                "list ResourceClaims",
                self.list_reduced(&claims, everything(), |claim| ClaimUse::read(&claim, &mut strings))
                    .await,
            )),
        }
    }

    /// Raw, because three versions are served in the field; absent if none of them is.
    async fn taint_rules(&self) -> Read<Vec<Value>> {
        for version in TAINT_RULE_VERSIONS {
            let resource = ApiResource {
                group: "resource.k8s.io".into(),
                version: version.into(),
                api_version: format!("resource.k8s.io/{version}"),
                kind: "DeviceTaintRule".into(),
                plural: "devicetaintrules".into(),
            };
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let call = format!("list DeviceTaintRules {version}");
            match read(&call, self.list(&api, ListParams::default()).await) {
                Err(Unread::Absent) => {}
                Err(unknown) => return Err(unknown),
                Ok(rules) => {
                    let raw: Result<Vec<Value>, _> = rules.iter().map(serde_json::to_value).collect();
                    return raw.map_err(|error| Unread::Unknown(format!("{call}: {error}")));
                }
            }
        }
        Err(Unread::Absent)
    }
}
