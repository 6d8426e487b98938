//! `/healthz`, `/readyz` and `/metrics`, served by leader and followers alike.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::listen::IdleListener;
use crate::metrics::OperatorMetrics;
use crate::objects::Objects;
use crate::planner::apart;
use crate::rights::Rights;

/// State behind the answers of the endpoints.
#[derive(Clone)]
pub struct Health {
    /// The series.
    pub metrics: Arc<OperatorMetrics>,
    /// The objects of all watched namespaces; empty in a follower.
    pub objects: Objects,
    /// Rights of the operator.
    pub rights: Rights,
    leading: Arc<AtomicBool>,
    /// One page at a time.
    page: Arc<Mutex<()>>,
}

impl Health {
    /// The health of a process that does not lead yet.
    pub fn new(metrics: Arc<OperatorMetrics>, objects: Objects, rights: Rights) -> Self {
        Self {
            metrics,
            objects,
            rights,
            leading: Arc::default(),
            page: Arc::default(),
        }
    }

    /// From now on, ready means that the objects were listed.
    pub fn leads(&self) {
        self.metrics.leads();
        self.leading.store(true, Ordering::Relaxed);
    }

    /// Obstacle to the process' readiness. A follower is ready to take over; a leader once it has seen every object.
    /// Idle is healthy. With a right missing neither is: `helm --wait` and a rollout stop there, the replica of the
    /// version before continues, and no other part depends on it, because no client sends the operator requests.
    fn obstacle(&self) -> Option<String> {
        let unlisted = self.leading.load(Ordering::Relaxed) && !self.objects.listed();
        let unlisted = unlisted.then(|| "the objects are not listed yet\n".to_owned());
        self.rights.complaint().or(unlisted)
    }
}

/// Serves until the process ends: the last scrape comes after the signal to stop. `has_metrics`: anybody may read the metrics
/// here.
pub async fn serve(
    listener: TcpListener,
    health: Health,
    has_metrics: bool,
    end: CancellationToken,
) -> Result<(), Error> {
    let metrics = if has_metrics { get(page) } else { get(elsewhere) };
    let router = Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready))
        .route("/metrics", metrics)
        .with_state(health);
    axum::serve(IdleListener(listener), router)
        .with_graceful_shutdown(end.cancelled_owned())
        .await
        .map_err(Error::Serve)
}

async fn ready(State(health): State<Health>) -> impl IntoResponse {
    match health.obstacle() {
        None => (StatusCode::OK, "ok".to_owned()),
        Some(obstacle) => (StatusCode::SERVICE_UNAVAILABLE, obstacle),
    }
}

async fn elsewhere() -> impl IntoResponse {
    (
        StatusCode::NOT_FOUND,
        "the metrics are served over TLS, on --secure-metrics-addr\n",
    )
}

/// The page of metrics. It unpacks every object, so another thread makes it: passes would wait for this one.
pub(crate) async fn page(State(health): State<Health>) -> impl IntoResponse {
    // The page keeps its turn also if the client leaves meanwhile.
    let turn = health.page.clone().lock_owned().await;
    let page = apart(move || {
        let _turn = turn;
        health.objects.scraped(&health.metrics)
    });
    let (status, kind, text) = match page.await {
        Ok(text) => (
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            text,
        ),
        Err(why) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "text/plain; charset=utf-8",
            format!("the page was not made: {why}\n"),
        ),
    };
    (status, [(header::CONTENT_TYPE, kind)], text)
}
