//! Devices that KAI's scheduler has promised: it decides, writes a `BindRequest`, and its binder writes the claim later.

use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, ResourceExt as _};
use perfval_sizing::inventory::{ClaimUse, Interned};

use crate::Cluster;
use crate::call::{ALL, Read, Unread, read};

const PLURAL: &str = "bindrequests";

impl Cluster {
    /// Absent where KAI's scheduler is not installed, and up to a minute after its installation.
    pub(crate) async fn bind_requests(&self) -> Read<Vec<ClaimUse>> {
        if matches!(self.served.get(&PLURAL), Some(None)) {
            return Err(Unread::Absent);
        }
        let kind = GroupVersionKind::gvk("scheduling.run.ai", "v1alpha2", "BindRequest");
        let resource = ApiResource::from_gvk_with_plural(&kind, PLURAL);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let interned = &mut Interned::default();
        let reduce = |(): &mut (), request: DynamicObject| {
            let unread = |error| format!("BindRequest {}: {error}", request.name_any());
            ClaimUse::promised(&request, interned).map_err(unread).transpose()
        };
        let list = self.list_as(ALL, api.resource_url(), ListParams::default(), (), reduce);
        let list = read("list BindRequests", list.await);
        if matches!(list, Err(Unread::Absent)) {
            self.served.keep(PLURAL, None);
        }
        let promises: Result<Vec<ClaimUse>, String> = list?.items.into_iter().collect();
        promises.map_err(Unread::Unknown)
    }
}
