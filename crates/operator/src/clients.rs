//! The ways to the API server.

use std::time::Duration;

use kube::client::ClientBuilder;
use kube::{Client, Config};

use crate::calls::Counting;
use crate::error::Error;
use crate::streams;

/// A watch that says nothing for longer than it was asked for is dead: its connection died silently, and the operator
/// would miss every change (issue 12, B4).
pub(crate) const SILENCE: Duration = streams::WATCH.saturating_add(Duration::from_secs(10));

/// Three ways to the API server: one that tries again by itself, one for what must not wait, and one for watches.
pub(crate) struct Clients {
    pub(crate) patient: Client,
    pub(crate) impatient: Client,
    pub(crate) watching: Client,
}

impl Clients {
    /// `silence`: after which a watch that says nothing is given up.
    pub(crate) fn new(config: Config, silence: Duration, counting: &Counting) -> Result<Self, Error> {
        let build = |config: Config| -> Result<Client, Error> {
            let builder = ClientBuilder::try_from(config).map_err(|source| Error::Client { source })?;
            Ok(builder.with_layer(counting).build())
        };
        let mut impatient = config.clone();
        impatient.default_retry = false;
        let mut watching = impatient.clone();
        watching.read_timeout = Some(silence);
        Ok(Self {
            patient: build(config)?,
            impatient: build(impatient)?,
            watching: build(watching)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use axum::body::Body;
    use axum::extract::State;
    use axum::http::Uri;
    use futures::{StreamExt, stream};
    use kube::Api;
    use kube::runtime::watcher::{self, Event, watcher};
    use perfval_api::PerfValidation;
    use serde_json::json;
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::*;
    use crate::metrics::Metrics;
    use crate::rights::Rights;

    /// Answers lists, and lets every watch begin and then says nothing more.
    async fn silent_server(watched: mpsc::UnboundedSender<()>) -> String {
        let answer = async |State(watched): State<mpsc::UnboundedSender<()>>, asked: Uri| {
            if asked.query().is_some_and(|query| query.contains("watch=true")) {
                let _ = watched.send(());
                return Body::from_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>());
            }
            let list = json!({"kind": "PerfValidationList", "metadata": {"resourceVersion": "1"}, "items": []});
            Body::from(list.to_string())
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it has one");
        let server = axum::Router::new().fallback(answer).with_state(watched);
        tokio::spawn(async move { axum::serve(listener, server).await });
        format!("http://{address}")
    }

    #[tokio::test]
    async fn a_watch_that_has_died_silently_is_begun_again() {
        let (report, mut begun) = mpsc::unbounded_channel();
        let address = silent_server(report).await;
        let config = Config::new(address.parse().expect("well-formed"));
        let counting = Counting::new(Arc::new(Metrics::new(false)), Rights::default());
        let clients = Clients::new(config, Duration::from_millis(50), &counting).expect("a client");
        let api: Api<PerfValidation> = Api::all(clients.watching);
        let mut events = pin!(watcher(api, watcher::Config::default()));
        let watching = async {
            loop {
                if let Some(Ok(Event::Delete(_))) = events.next().await {
                    unreachable!("there was nothing");
                }
            }
        };
        let begun_again = async {
            begun.recv().await;
            begun.recv().await
        };
        let waited = timeout(Duration::from_secs(30), async {
            tokio::select! {
                () = watching => None,
                again = begun_again => again,
            }
        });
        assert_eq!(waited.await, Ok(Some(())), "the first watch was believed for ever");
    }
}
