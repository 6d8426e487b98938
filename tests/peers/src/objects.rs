//! Objects of an operator, by kubectl's own names: each operator has its own kind.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use perfval_e2e::Lab;
use serde_json::Value;

use crate::Outcome;
use crate::subject::Subject;

/// Writes under way at once.
const AT_ONCE: usize = 16;

/// The objects of a subject.
pub fn api(lab: &Lab, subject: &Subject) -> Api<DynamicObject> {
    let text = |key: &str| subject.object[key].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or_default();
    let kind = GroupVersionKind::gvk(group, version, text("kind"));
    let resource = ApiResource::from_gvk_with_plural(&kind, subject.plural);
    Api::namespaced_with(lab.client.clone(), subject.name, &resource)
}

/// Creates one.
pub async fn create(api: &Api<DynamicObject>, object: Value) -> Outcome<String> {
    let object: DynamicObject = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await?;
    Ok(object.name_any())
}

/// Creates many, as fast as the API server takes them.
pub async fn create_all(api: &Api<DynamicObject>, objects: Vec<Value>) -> Outcome<Vec<String>> {
    let created = stream::iter(objects)
        .map(|object| create(api, object))
        .buffered(AT_ONCE);
    created.collect::<Vec<_>>().await.into_iter().collect()
}

/// Deletes all and waits until they are gone; how many there were.
pub async fn delete_all(api: &Api<DynamicObject>, limit: Duration) -> Outcome<usize> {
    let all = ListParams::default();
    let were = api.list_metadata(&all).await?.items.len();
    api.delete_collection(&DeleteParams::default(), &all).await?;
    let began = Instant::now();
    loop {
        let left = api.list_metadata(&all).await?.items.len();
        if left == 0 {
            return Ok(were);
        }
        if began.elapsed() > limit {
            return Err(format!("{left} of {were} objects are still there after {limit:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
