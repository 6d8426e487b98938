//! One watch: its namespace, whose children it shows, and what becomes of its errors.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt, future};
use k8s_openapi::NamespaceResourceScope;
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use perfval_api::meta;
use perfval_cluster::cause::innermost;
use perfval_cluster::{Copied, Copies};
use serde::de::DeserializeOwned;
use tracing::{debug, warn};

use super::child::ChildMetadata;
use crate::metrics::OperatorMetrics;
use crate::stored::Stored;

/// Time-out of a watch, after which it starts again: a watch that is silent for longer is dead.
pub const WATCH: Duration = Duration::from_secs(40);

/// Children of one page of a first list, whose text is in memory whole, twice for a moment: the four lists with 5 of 1.5 MB each are
/// 60 MB. The 1,000 pods of 100 runs take 200 requests.
const PAGE: u32 = 5;

/// Configuration of all watches.
pub fn config() -> watcher::Config {
    watcher::Config::default().timeout(u32::try_from(WATCH.as_secs()).unwrap_or(u32::MAX))
}

/// Parameters of every watch of a scope.
#[derive(Clone)]
pub(super) struct Watches {
    pub(super) client: Client,
    pub(super) namespace: Option<String>,
    pub(super) metrics: Arc<OperatorMetrics>,
    pub(super) copies: Copies,
}

impl Watches {
    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    /// The objects whose children of this kind changed. Metadata alone: a pass reads what it needs.
    pub(super) fn children<K>(&self, kind: &'static str) -> impl Stream<Item = ObjectRef<Stored>> + Send + use<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let events = watcher(self.api::<ChildMetadata<K>>(), labelled());
        self.owners(kind, events)
    }

    /// The objects whose children of this kind changed. Each change ends the copy of its object.
    pub(super) fn copied_children<K>(
        &self,
        kind: &'static str,
        api: Api<ChildMetadata<K>>,
    ) -> impl Stream<Item = ObjectRef<Stored>> + Send + use<K>
    where
        K: Copied + Debug + Send + 'static,
    {
        let (copies, namespace) = (self.copies.clone(), self.namespace.clone());
        let events = watcher(api, labelled()).map_ok(ChildMetadata::unwrap_event);
        let events = events.inspect(move |event| copies.follow(namespace.as_deref(), event));
        self.owners(kind, events)
    }

    /// The objects that children belong to.
    fn owners<K, S>(&self, kind: &'static str, events: S) -> impl Stream<Item = ObjectRef<Stored>> + Send + use<K, S>
    where
        K: ResourceExt + Send,
        S: Stream<Item = watcher::Result<Event<K>>> + Send,
    {
        let touched = events.default_backoff().touched_objects();
        without_errors(self.metrics.clone(), kind, touched).filter_map(|child| future::ready(owner(&child)))
    }
}

fn labelled() -> watcher::Config {
    config().labels(meta::NAME_LABEL).page_size(PAGE)
}

/// Logs, counts and swallows errors: the watcher restarts without help.
pub fn without_errors<T: Send>(
    metrics: Arc<OperatorMetrics>,
    kind: &'static str,
    stream: impl Stream<Item = watcher::Result<T>> + Send,
) -> impl Stream<Item = T> + Send {
    stream.filter_map(move |item| {
        if let Err(error) = &item {
            metrics.watch_failed(kind);
            if kind == "ResourceClaim" && is_not_served(error) {
                debug!(kind, "not served by this cluster");
            } else {
                warn!(kind, error = innermost(error), "watch broke; it starts again");
            }
        }
        future::ready(item.ok())
    })
}

/// The object that a child belongs to, by the operator's label.
fn owner(child: &impl ResourceExt) -> Option<ObjectRef<Stored>> {
    let name = child.labels().get(meta::NAME_LABEL)?;
    Some(ObjectRef::new(name).within(&child.namespace()?))
}

/// Returns true if the kind itself is unknown. A cluster without DRA serves no ResourceClaims; every other kind has to be installed.
fn is_not_served(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(source) | watcher::Error::WatchStartFailed(source)) = error else {
        return false;
    };
    matches!(source, kube::Error::Api(status) if status.is_not_found())
}

#[cfg(test)]
mod tests {
    use std::io;

    use futures::stream;
    use k8s_openapi::api::core::v1::Pod;
    use kube::core::Status;
    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;

    fn child(namespace: Option<&str>, labels: &Value) -> Pod {
        let metadata = json!({"namespace": namespace, "labels": labels});
        Pod {
            metadata: serde_json::from_value(metadata).expect("metadata"),
            ..Pod::default()
        }
    }

    #[test]
    fn a_child_wakes_the_object_its_label_names_in_its_own_namespace() {
        let labels = json!({(meta::NAME_LABEL): "h100", (meta::RUN_LABEL): "0011aabb"});
        let found = owner(&child(Some("perf"), &labels)).unwrap();
        assert_eq!(
            (found.name.as_str(), found.namespace.as_deref()),
            ("h100", Some("perf"))
        );
    }

    #[test]
    fn a_stranger_wakes_no_object() {
        assert!(owner(&child(Some("perf"), &json!({"app": "h100"}))).is_none());
        assert!(owner(&child(None, &json!({(meta::NAME_LABEL): "h100"}))).is_none());
    }

    #[derive(Clone, Default)]
    struct LogText(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogText {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Text that the log has after an error of a watch.
    async fn log_of(kind: &'static str, error: watcher::Error) -> String {
        let log = LogText::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let _logging = tracing::subscriber::set_default(subscriber);
        let broken = stream::iter([Err::<(), _>(error)]);
        let metrics = Arc::new(OperatorMetrics::new(true));
        let passed: Vec<()> = without_errors(metrics, kind, broken).collect().await;
        assert!(passed.is_empty());
        String::from_utf8_lossy(&log.0.lock()).into_owned()
    }

    #[tokio::test]
    async fn a_kind_that_is_not_installed_is_logged_except_claims_of_a_cluster_without_dra() {
        let missing = || {
            let status = Status::failure("404 page not found", "NotFound").with_code(404);
            watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()))
        };
        let text = log_of("PerfValidation", missing()).await;
        assert!(
            text.contains("watch broke") && text.contains("PerfValidation"),
            "{text}"
        );
        assert_eq!(log_of("ResourceClaim", missing()).await, "");
    }

    #[tokio::test]
    async fn the_log_of_a_broken_watch_has_no_password_of_a_proxy() {
        let proxy_url: http::Uri = "http://me:t-secret@127.0.0.1:1".parse().expect("a URL");
        let refused = kube::Error::ProxyProtocolDisabled {
            proxy_url: Box::new(proxy_url),
            protocol_feature: "kube/http-proxy",
        };
        let text = log_of("Pod", watcher::Error::WatchFailed(refused)).await;
        assert!(
            text.contains("watch broke") && text.contains("cannot use a proxy") && !text.contains("t-secret"),
            "{text}"
        );
    }
}
