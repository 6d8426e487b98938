//! Counter of every call of the API server, by all clients. A refused call makes the operator check its rights again.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, Uri};
use kube::client::Body;
use tower::{Layer, Service};

use crate::metrics::OperatorMetrics;
use crate::rbac;
use crate::rights::Rights;

/// Counts the calls of a client.
#[derive(Clone)]
pub struct Counting {
    metrics: Arc<OperatorMetrics>,
    rights: Rights,
}

impl Counting {
    /// Into these metrics.
    pub fn new(metrics: Arc<OperatorMetrics>, rights: Rights) -> Self {
        Self { metrics, rights }
    }
}

impl<S> Layer<S> for Counting {
    type Service = CountedClient<S>;

    fn layer(&self, inner: S) -> CountedClient<S> {
        CountedClient {
            inner,
            counting: self.clone(),
        }
    }
}

/// A client whose calls are counted.
#[derive(Clone)]
pub struct CountedClient<S> {
    inner: S,
    counting: Counting,
}

impl<S, B> Service<Request<Body>> for CountedClient<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (verb, resource) = asked(request.method(), request.uri());
        let pending = CallInFlight {
            metrics: self.counting.metrics.clone(),
            verb,
            resource,
            code: None,
        };
        let rights = self.counting.rights.clone();
        let answer = self.inner.call(request);
        async move {
            // All of it, or it would be dropped before the answer.
            let mut pending = pending;
            let answer = answer.await?;
            pending.code = Some(answer.status().as_u16());
            if answer.status() == StatusCode::FORBIDDEN {
                rights.doubt(verb, resource);
            }
            Ok(answer)
        }
        .boxed()
    }
}

/// A call until it is answered, or given up by its caller.
struct CallInFlight {
    metrics: Arc<OperatorMetrics>,
    verb: &'static str,
    resource: &'static str,
    code: Option<u16>,
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        self.metrics.called(self.verb, self.resource, self.code);
    }
}

/// Verb and resource as in a role. A call that no role of the operator contains is `other`: discovery, and the
/// version.
fn asked(method: &Method, uri: &Uri) -> (&'static str, &'static str) {
    let parts: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
    let in_version = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => &[],
    };
    let in_namespace = match in_version {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let (resource, is_named) = match in_namespace {
        [] => (String::new(), false),
        [plural] => ((*plural).to_owned(), false),
        [plural, _] => ((*plural).to_owned(), true),
        [plural, _, subresource, ..] => (format!("{plural}/{subresource}"), true),
    };
    let watches = || {
        uri.query()
            .into_iter()
            .flat_map(|query| query.split('&'))
            .any(|part| part == "watch=true" || part == "watch=1")
    };
    let verb = match *method {
        Method::GET if is_named => "get",
        Method::GET if watches() => "watch",
        Method::GET if !resource.is_empty() => "list",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    };
    (verb, rbac::known_resource(&resource).unwrap_or(rbac::OTHER_RESOURCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_as_a_role_would_name_it() {
        for (method, uri, expected) in [
            ("GET", "/api/v1/pods?limit=500", ("list", "pods")),
            ("GET", "/api/v1/pods?watch=true&timeoutSeconds=40", ("watch", "pods")),
            (
                "GET",
                "/api/v1/namespaces/perf/pods/a/log?container=c",
                ("get", "pods/log"),
            ),
            ("POST", "/apis/batch/v1/namespaces/perf/jobs", ("create", "jobs")),
            (
                "PUT",
                "/apis/coordination.k8s.io/v1/namespaces/own/leases/l",
                ("update", "leases"),
            ),
            (
                "PATCH",
                "/apis/perfvalidation.dev/v1alpha1/namespaces/perf/perfvalidations/a/status",
                ("patch", "perfvalidations/status"),
            ),
            ("DELETE", "/api/v1/namespaces/perf/services/a", ("delete", "services")),
            (
                "POST",
                "/api/v1/namespaces/perf/services/a:8000/proxy/v1/chat/completions",
                ("create", "services/proxy"),
            ),
            ("GET", "/version", ("get", "other")),
            ("GET", "/apis/nvidia.com/v1beta1", ("get", "other")),
            ("GET", "/api/v1/namespaces/any", ("get", "other")),
            ("GET", "/apis/example.com/v1/widgets", ("list", "other")),
        ] {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(asked(&method.parse().unwrap(), &uri), expected, "{method} {uri}");
        }
    }
}
