//! `/metrics` over TLS, for readers whose token may get this path. Leader and followers serve it alike.

mod readers;
mod tls;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio_util::sync::CancellationToken;

use self::readers::Access;
pub use self::readers::Readers;
pub(crate) use self::readers::rights;
pub use self::tls::Listener;
use crate::error::Error;
use crate::health::{Health, page};
use crate::listen::IdleListener;

/// Serves until the process ends.
pub async fn serve(listener: Listener, health: Health, readers: Readers, end: CancellationToken) -> Result<(), Error> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .with_state((health, readers));
    axum::serve(IdleListener(listener), router)
        .with_graceful_shutdown(end.cancelled_owned())
        .await
        .map_err(Error::Serve)
}

async fn metrics(State((health, readers)): State<(Health, Readers)>, headers: HeaderMap) -> Response {
    match readers.access(token(&headers)).await {
        Access::Granted => page(State(health)).await.into_response(),
        Access::Unauthenticated => (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, "Bearer")],
            "send the bearer token of a service account of this cluster\n",
        )
            .into_response(),
        Access::Refused(user) => (
            StatusCode::FORBIDDEN,
            format!("{user} may not get the path /metrics: bind a ClusterRole with this nonResourceURL to it\n"),
        )
            .into_response(),
        Access::Unknown => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the API server did not answer whose token this is; the operator's log has the error\n",
        )
            .into_response(),
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bearer_token_counts() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().expect("a header"));
            token(&headers).map(str::to_owned)
        };
        assert_eq!(token(&HeaderMap::new()), None);
        assert_eq!(of("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(of("bearer  abc ").as_deref(), Some("abc"));
        assert_eq!((of("Basic abc"), of("Bearer "), of("Bearer")), (None, None, None));
    }
}
