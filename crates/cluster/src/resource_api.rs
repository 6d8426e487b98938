//! Calls to `resource.k8s.io`, at the newest version that the cluster serves. Only "there is no such version" leads
//! to the next one. The version is discovered each time, as clusters are upgraded under a running operator.

use std::fmt::Debug;

use k8s_openapi::api::resource::v1::DeviceClass;
use kube::api::{Api, DynamicObject, GetParams, ListParams};
use kube::core::Request;
use perfval_sizing::resource_api::{AsV1, NEWEST, VERSIONS, resource};
use serde::de::DeserializeOwned;

use crate::Cluster;
use crate::call::{Read, Unread, read};
use crate::page::{Json, PageForm};

/// A list to be read.
pub(crate) struct WantedList<'a> {
    /// Name of the call in errors.
    pub call: &'a str,
    /// Versions to try, the newest first.
    pub versions: &'a [&'a str],
    /// Plural of the kind.
    pub plural: &'a str,
    /// One namespace; none is all of them.
    pub namespace: Option<&'a str>,
    /// Selectors.
    pub params: ListParams,
}

impl Cluster {
    /// A consistent list that is reduced page by page; absent if no version of the kind is served. Older versions are
    /// read as JSON, because they differ in shape.
    pub(crate) async fn list_served<K, T, F: PageForm<K>>(
        &self,
        newest: F,
        wanted: WantedList<'_>,
        mut reduce: impl FnMut(K) -> Option<T>,
    ) -> Read<Vec<T>>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        for &version in wanted.versions {
            let url = self.url(version, wanted.plural, wanted.namespace);
            let params = wanted.params.clone();
            let list = if version == NEWEST {
                self.list_reduced(newest, &url, params, &mut reduce).await
            } else {
                self.list_reduced(Json, &url, params, |AsV1(object)| reduce(object))
                    .await
            };
            match read(wanted.call, list) {
                Err(Unread::Absent) => {}
                known => return known,
            }
        }
        Err(Unread::Absent)
    }

    /// The class of a name; absent if there is none, or if no version of the kind is served.
    pub(crate) async fn device_class(&self, name: &str) -> Read<DeviceClass> {
        let call = format!("get DeviceClass {name}");
        for version in VERSIONS {
            let request = Request::new(self.url(version, "deviceclasses", None))
                .get(name, &GetParams::default())
                .map_err(|error| Unread::Unknown(format!("{call}: {error}")))?;
            match self.bounded(self.client.request(request)).await {
                Err(failure) if failure.is_not_served() => {}
                answer => return read(&call, answer).map(|AsV1(class)| class),
            }
        }
        Err(Unread::Absent)
    }

    fn url(&self, version: &str, plural: &str, namespace: Option<&str>) -> String {
        let resource = resource(version, "", plural);
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        api.resource_url().to_owned()
    }
}
