//! One call: its deadline, and what its failure means.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kube::api::{Api, ListParams, PostParams};
use kube::core::{Request, Resource, request};
use perfval_api::meta::FIELD_MANAGER;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

pub(crate) use crate::read::{Read, Unread, read, seen, unless_absent};
use crate::{CallFailure, Cluster, json_list, page};

/// Time-out of a call. The default client retries 429, 503 and 504 for minutes and has no read timeout.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Logs come from a kubelet, and a result may have megabytes.
pub(crate) const LOG_PATIENCE: Duration = Duration::from_secs(30);
/// Time-out of all reads of one look together: many times the time for 5,000 nodes (`just bench`), and a quarter of
/// the time-out of a pass.
const LOOK: Duration = Duration::from_mins(1);
/// Objects per page of a list, as `kubectl` requests them. Pages of 250 need no less memory (`just bench`): 71 to 86
/// MiB both.
const PAGE: u32 = 500;
/// Bytes of a list whose objects are kept. The pods of a run have some hundred KB, but a tenant may label 400 of 1 MB.
const LIST_BYTES: usize = 32 << 20;
/// A paged list is one snapshot; when it expires in between, the whole list is read again this often.
const RESTARTS: u32 = 3;

type BuildPage = fn(&Request, &ListParams) -> Result<http::Request<Vec<u8>>, request::Error>;

#[derive(Clone, Copy)]
pub(crate) struct ListForm {
    build: BuildPage,
    /// Bytes of all pages beyond which the list fails.
    most_bytes: usize,
    /// True if the first page is enough.
    ends_early: bool,
}

/// Every page of whole objects.
pub(crate) const ALL: ListForm = ListForm {
    build: Request::list,
    most_bytes: usize::MAX,
    ends_early: false,
};
/// Every page of metadata: annotations may have 256 KiB in each object.
pub(crate) const METADATA: ListForm = ListForm {
    build: Request::list_metadata,
    ..ALL
};
/// The first page, of at most `params.limit` objects, and fewer if they have many bytes.
pub(crate) const FIRST: ListForm = ListForm {
    ends_early: true,
    ..ALL
};

tokio::task_local! {
    /// End of the look that the current call belongs to.
    static LOOK_ENDS: Instant;
}

/// One look at the cluster: a call without an answer by the end of the look fails then. Earlier answers are kept, so
/// a kubelet that does not answer costs its own logs and never the pass.
pub(crate) async fn one_look<T>(reads: impl Future<Output = T>) -> T {
    LOOK_ENDS.scope(Instant::now() + LOOK, reads).await
}

/// Time until the current look is over.
pub(crate) fn look_left() -> Duration {
    let left = LOOK_ENDS.try_with(|ends| ends.saturating_duration_since(Instant::now()));
    left.unwrap_or(LOOK)
}

/// The limit of a call, and its failure.
fn bound(limit: Duration) -> (Duration, CallFailure) {
    match look_left() {
        left if left < limit => (left, CallFailure::LookOver(LOOK)),
        _ => (limit, CallFailure::TimedOut(limit)),
    }
}

impl Cluster {
    /// A call with the ordinary deadline.
    pub(crate) async fn bounded<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, CallFailure> {
        self.bounded_by(PATIENCE, call).await
    }

    pub(crate) async fn bounded_by<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, CallFailure> {
        let (limit, failure) = bound(limit);
        let answer = timeout(limit, call).await.map_err(|_| {
            self.counters.timeouts.fetch_add(1, Ordering::Relaxed);
            failure
        })?;
        answer.map_err(CallFailure::Call)
    }

    /// A consistent list of at most [`LIST_BYTES`]: all pages, of one snapshot, never from a cache that may be behind.
    pub(crate) async fn list<K>(&self, api: &Api<K>, params: ListParams) -> Result<Vec<K>, CallFailure>
    where
        K: Resource + DeserializeOwned,
    {
        self.list_whole(api, params).await.map(|listed| listed.items)
    }

    /// The same with its version.
    pub(crate) async fn list_whole<K>(&self, api: &Api<K>, params: ListParams) -> Result<Listed<K>, CallFailure>
    where
        K: Resource + DeserializeOwned,
    {
        let form = ListForm {
            most_bytes: LIST_BYTES,
            ..ALL
        };
        let reduce = |(): &mut (), object: K| Some(without_managed_fields(object));
        self.list_as(form, api.resource_url(), params, (), reduce).await
    }

    /// A consistent list in a form. Each page is reduced before the next one is read. `state` is that of `reduce`: each attempt has a
    /// copy, so that the pages of an expired list leave nothing in it.
    pub(crate) async fn list_as<K: DeserializeOwned, T, S: Clone>(
        &self,
        form: ListForm,
        url: &str,
        params: ListParams,
        state: S,
        mut reduce: impl FnMut(&mut S, K) -> Option<T>,
    ) -> Result<Listed<T>, CallFailure> {
        let mut restarts = 0;
        loop {
            let mut state = state.clone();
            let reduce = |object: K| reduce(&mut state, object);
            match self.pages(form, url, params.clone(), reduce).await {
                Err(expired) if expired.code() == Some(410) && restarts < RESTARTS => restarts += 1,
                done => return done,
            }
        }
    }

    async fn pages<K: DeserializeOwned, T>(
        &self,
        form: ListForm,
        url: &str,
        params: ListParams,
        mut reduce: impl FnMut(K) -> Option<T>,
    ) -> Result<Listed<T>, CallFailure> {
        let mut params = match params.limit {
            Some(_) => params,
            None => params.limit(PAGE),
        };
        let most = params.limit;
        let (mut items, mut buffer, mut bytes) = (Vec::new(), Vec::new(), 0);
        loop {
            let request = (form.build)(&Request::new(url), &params);
            let request = request.map_err(|error| CallFailure::Call(kube::Error::BuildRequest(error)))?;
            let answer = page::request(&self.client, request, &mut buffer);
            let Some(page) = self.bounded(answer).await? else {
                params = shorter(params)?;
                continue;
            };
            bytes += page.len();
            if bytes > form.most_bytes {
                return Err(CallFailure::Call(page::too_long("a list", form.most_bytes)));
            }
            let metadata = json_list::read(page, |object: K| {
                if let Some(item) = reduce(object) {
                    push(&mut items, item);
                }
            });
            let metadata = metadata.map_err(|error| CallFailure::Call(kube::Error::SerdeError(error)))?;
            let is_whole = metadata.next.is_none();
            let Some(token) = metadata.next.filter(|_| !form.ends_early) else {
                let version = metadata.version.unwrap_or_default();
                return Ok(Listed {
                    items,
                    version,
                    is_whole,
                });
            };
            params = params.continue_token(&token);
            // Large objects may be few. A page that would not fit is read in vain.
            if buffer.len() < page::PAGE_BYTES / 2 {
                params.limit = params.limit.map(|limit| limit.saturating_mul(2)).min(most);
            }
        }
    }
}

pub(crate) fn creation(dry_run: bool) -> PostParams {
    PostParams {
        dry_run,
        field_manager: Some(FIELD_MANAGER.to_owned()),
    }
}

/// An object without `managedFields`, half of its bytes.
fn without_managed_fields<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

/// Adds an item. A vector that doubles needs three times the memory of its items while they are copied.
fn push<T>(items: &mut Vec<T>, item: T) {
    if items.len() == items.capacity() {
        items.reserve_exact(items.len() / 4 + 16);
    }
    items.push(item);
}

/// A list, and the version from which a watch goes on.
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    pub(crate) version: String,
    /// True if there is no page after it.
    pub(crate) is_whole: bool,
}

/// Requests a fourth of the objects, after a page with too many bytes.
fn shorter(params: ListParams) -> Result<ListParams, CallFailure> {
    match params.limit {
        Some(limit) if limit > 1 => Ok(params.limit((limit / 4).max(1))),
        _ => Err(CallFailure::Call(page::too_long("one object", page::PAGE_BYTES))),
    }
}
