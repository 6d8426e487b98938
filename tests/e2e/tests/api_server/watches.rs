//! Changes that a watch shows, and its end.

use std::pin::pin;
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use tokio::time::timeout;

use crate::{Claims, config_map};

/// Time in which a change arrives also on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

impl Claims<'_> {
    pub async fn an_object_that_stops_matching_is_deleted_for_a_watch(&self) {
        let maps = self.config_maps();
        let created = maps
            .create(&PostParams::default(), &config_map("leaves", &json!({})))
            .await;
        let version = created.expect("free").resource_version().expect("a version");
        let of_us = WatchParams::default().labels("of=claims").disable_bookmarks();
        let selected = of_us.fields("metadata.name=leaves");
        let events = maps.watch(&selected, &version).await.expect("a stream");
        let mut events = pin!(events);
        for of in ["others", "claims"] {
            let change = json!({"metadata": {"labels": {"of": of}}});
            let changed = maps
                .patch("leaves", &PatchParams::default(), &Patch::Merge(&change))
                .await;
            let changed = changed.expect("valid");
            let event = timeout(PATIENCE, events.try_next()).await.expect("in time");
            let shown = match event.expect("no failure").expect("no end") {
                // It comes as the watch knew it.
                WatchEvent::Deleted(shown) if of == "others" => shown,
                WatchEvent::Added(shown) if of == "claims" => shown,
                other => panic!("{of}: {other:?}"),
            };
            assert_eq!(shown.labels()["of"], "claims");
            assert_eq!(shown.resource_version(), changed.resource_version());
        }
    }

    /// The definition of the kind is newer than this version.
    pub async fn a_watch_from_a_forgotten_version_expires(&self) {
        let all = WatchParams::default();
        let events = self.validations().watch(&all, "1").await.expect("a stream");
        let mut events = pin!(events);
        let expired = match timeout(PATIENCE, events.try_next()).await.expect("in time") {
            Ok(Some(WatchEvent::Error(status))) | Err(kube::Error::Api(status)) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(expired.code, 410);
    }
}
