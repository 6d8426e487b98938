//! The ways to the API server.

use std::time::Duration;

use kube::client::ClientBuilder;
use kube::client::retry::RetryPolicy;
use kube::{Client, Config};
use tower::buffer::BufferLayer;
use tower::retry::RetryLayer;

use crate::calls::Counting;
use crate::error::Error;
use crate::fence::Fence;
use crate::server_clock::ServerClock;
use crate::streams;

/// A watch that is silent for longer than its own time-out is dead: its connection died silently, and the operator
/// would miss every change.
pub(crate) const SILENCE: Duration = streams::WATCH.saturating_add(Duration::from_secs(10));

pub(crate) struct Clients {
    /// Client that retries; it writes for as long as the lease allows it.
    pub(crate) patient: Client,
    /// For what must not wait; writes for as long as the lease allows it.
    pub(crate) impatient: Client,
    pub(crate) watching: Client,
}

/// The client of a process that does not lead: for the lease itself, and for the check of its own rights.
pub(crate) fn unfenced(config: Config, counting: &Counting, clock: &ServerClock) -> Result<Client, Error> {
    let builder = ClientBuilder::try_from(without_retries(config)).map_err(Error::Client)?;
    Ok(builder.with_layer(clock).with_layer(counting).build())
}

/// The same configuration without attempts of kube's own client.
fn without_retries(mut config: Config) -> Config {
    config.default_retry = false;
    config
}

/// Calls that may wait for the connection, as in kube's own client.
const WAITING: usize = 1024;

impl Clients {
    /// `silence`: time after which a silent watch is given up.
    pub(crate) fn new(
        config: Config,
        silence: Duration,
        counting: &Counting,
        fence: &Fence,
        clock: &ServerClock,
    ) -> Result<Self, Error> {
        let config = without_retries(config);
        let mut watching = config.clone();
        watching.read_timeout = Some(silence);
        let builder = |config: Config| {
            let builder = ClientBuilder::try_from(config).map_err(Error::Client);
            builder.map(|builder| builder.with_layer(clock))
        };
        // Each attempt passes the fence, also after the wait of a retry or in the buffer.
        let retry = RetryLayer::new(RetryPolicy::server_retry());
        let shared = builder(config.clone())?
            .with_layer(fence)
            .with_layer(&BufferLayer::new(WAITING));
        Ok(Self {
            patient: shared.with_layer(&retry).with_layer(counting).build(),
            impatient: builder(config)?.with_layer(fence).with_layer(counting).build(),
            watching: builder(watching)?.with_layer(counting).build(),
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
    use kube::api::DeleteParams;
    use kube::runtime::watcher::{self, Event, watcher};
    use perfval_api::PerfValidation;
    use serde_json::json;
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::*;
    use crate::fence::Tenure;
    use crate::metrics::OperatorMetrics;
    use crate::moment::Moment;
    use crate::rights::Rights;

    /// Answers lists, and lets every watch begin and then stays silent.
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

    fn clients(address: &str, silence: Duration, tenure: Option<Tenure>) -> Clients {
        let config = Config::new(address.parse().expect("well-formed"));
        let counting = Counting::new(Arc::new(OperatorMetrics::new(false)), Rights::default());
        let clock = ServerClock::new(Arc::new(chrono::Utc::now));
        Clients::new(config, silence, &counting, &Fence::new(tenure), &clock).expect("a client")
    }

    #[tokio::test]
    async fn a_write_that_waited_in_the_buffer_passes_the_fence_after_that() {
        let tenure = Tenure::default();
        tenure.renewed(Moment::now());
        let clients = clients("http://127.0.0.1:1", SILENCE, Some(tenure.clone()));
        let api: Api<PerfValidation> = Api::namespaced(clients.patient, "perf");
        let params = DeleteParams::default();
        let mut write = pin!(api.delete("a", &params));
        // Until the tasks of the client wait for requests.
        tokio::task::yield_now().await;
        assert!(futures::poll!(&mut write).is_pending());
        // Tasks run in the order in which they are woken: the retries, this one, the connection.
        tokio::spawn(async move { tenure.end() });
        let refused = write.await.expect_err("no server listens there");
        assert!(refused.to_string().contains("not sent"), "{refused}");
    }

    #[tokio::test]
    async fn a_watch_that_has_died_silently_is_begun_again() {
        let (report, mut begun) = mpsc::unbounded_channel();
        let address = silent_server(report).await;
        let clients = clients(&address, Duration::from_millis(50), None);
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
