//! One chat completion, over either way.

use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client as HttpClient};
use hyper_util::rt::TokioExecutor;
use kube::Client;
use kube::client::Body;
use perfval_run::decision::ProbeRequest;
use perfval_run::observed::ProbeAnswer;
use serde_json::json;

use super::answer::{other_models, read_completion, refusal};
use crate::cause::chain;

/// Enough for 16 tokens and an error page.
const BODY_BYTES: usize = 1 << 20;
/// A Service without endpoints refuses at once or drops packets; the request's own deadline is for the first token.
const CONNECT: Duration = Duration::from_secs(5);
const MAX_TOKENS: u32 = 16;

/// Access of the operator to a frontend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointAccess {
    /// By the Service's DNS name: from inside the cluster.
    Dns,
    /// Through the API server's service proxy: from outside.
    ServiceProxy,
}

#[derive(Clone)]
pub(super) enum Way {
    Dns(HttpClient<HttpConnector, Body>),
    ServiceProxy(Client),
}

impl Way {
    pub(super) fn new(access: EndpointAccess, impatient: Client) -> Self {
        match access {
            EndpointAccess::ServiceProxy => Self::ServiceProxy(impatient),
            EndpointAccess::Dns => Self::dns(),
        }
    }

    fn dns() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT));
        // Each probe its own connection: a kept one may lead to a frontend that is gone.
        let client = legacy::Builder::new(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(connector);
        Self::Dns(client)
    }

    /// Base of a URL of the frontend, without its path.
    pub(super) fn base(&self, request: &ProbeRequest, cluster_domain: &str) -> String {
        let ProbeRequest {
            namespace,
            service,
            port,
            ..
        } = request;
        match self {
            Self::Dns(_) => format!("http://{service}.{namespace}.svc.{cluster_domain}:{port}"),
            Self::ServiceProxy(_) => format!("/api/v1/namespaces/{namespace}/services/http:{service}:{port}/proxy"),
        }
    }

    async fn send(&self, request: Request<Body>) -> Result<(StatusCode, Vec<u8>), String> {
        match self {
            Self::Dns(client) => read(client.request(request).await.map_err(|error| chain(&error))?).await,
            Self::ServiceProxy(client) => read(client.send(request).await.map_err(|error| chain(&error))?).await,
        }
    }
}

/// Requests one completion, within the request's deadline.
pub(super) async fn probe(way: &Way, base: &str, request: &ProbeRequest) -> ProbeAnswer {
    match tokio::time::timeout(request.timeout, ask(way, base, request)).await {
        Ok(answer) => answer.unwrap_or_else(ProbeAnswer::Failed),
        Err(_) => ProbeAnswer::Failed(format!("no answer within {} s", request.timeout.as_secs())),
    }
}

async fn ask(way: &Way, base: &str, request: &ProbeRequest) -> Result<ProbeAnswer, String> {
    // The model's slashes stay: it is a wildcard route. 404 proves nothing: an old Dynamo or an unknown model.
    let ready = format!("{base}/v1/models/{}/ready", request.model);
    let (status, body) = way.send(build(Method::GET, &ready, Body::empty())?).await?;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return Ok(ProbeAnswer::Refused(status.as_u16(), refusal(&body)));
    }
    let completion = json!({
        "model": request.model,
        "messages": [{"role": "user", "content": "Say hello."}],
        "max_tokens": MAX_TOKENS,
        "stream": false,
    });
    let url = format!("{base}/v1/chat/completions");
    let body = Body::from(completion.to_string().into_bytes());
    let (status, body) = way.send(build(Method::POST, &url, body)?).await?;
    if status == StatusCode::OK {
        return Ok(read_completion(&body));
    }
    if status == StatusCode::NOT_FOUND {
        // An unknown model, or a model that is not there yet: the list decides.
        let models = format!("{base}/v1/models");
        let (_, list) = way.send(build(Method::GET, &models, Body::empty())?).await?;
        let served = other_models(&list, &request.model);
        if !served.is_empty() {
            return Ok(ProbeAnswer::OtherModels(served));
        }
    }
    Ok(ProbeAnswer::Refused(status.as_u16(), refusal(&body)))
}

fn build(method: Method, url: &str, body: Body) -> Result<Request<Body>, String> {
    Request::builder()
        .method(method)
        .uri(url)
        .header(header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|error| format!("{url}: {error}"))
}

async fn read<B>(response: Response<B>) -> Result<(StatusCode, Vec<u8>), String>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = response.into_parts();
    let body = Limited::new(body, BODY_BYTES)
        .collect()
        .await
        .map_err(|error| chain(&*error))?;
    Ok((head.status, body.to_bytes().to_vec()))
}

#[cfg(test)]
mod tests;
