//! The API server's clock, as the `Date` header of its answers shows it.
//!
//! Every time in an object that the API server sets is by this clock, and it is the same for all processes of the
//! operator, on all machines. So decisions are made by it, and never by the clock of the operator's own machine.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::DATE;
use http::{HeaderMap, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use perfval_cluster::TimeSource;
use tower::{Layer, Service};

use crate::moment::Moment;

/// Steps of the header.
const RESOLUTION: TimeDelta = TimeDelta::seconds(1);

/// The API server's clock. Clones are the same clock.
#[derive(Clone)]
pub struct ServerClock {
    /// Used before the first answer.
    machine: TimeSource,
    known: Arc<Mutex<Option<KnownTime>>>,
}

/// Times that the answers have shown.
struct KnownTime {
    /// The time at a moment lies between these two.
    at: Moment,
    earliest: DateTime<Utc>,
    latest: DateTime<Utc>,
    /// The time that was shown last, and when.
    shown: (DateTime<Utc>, Moment),
}

impl KnownTime {
    /// The time now. If the server's clock was set back, this clock goes at half its speed until both are the same:
    /// if it stood still, every look that waits for a moment would come again at once.
    fn show(&mut self) -> DateTime<Utc> {
        let now = Moment::now();
        let (shown, at) = self.shown;
        let time = (self.earliest + delta(now.since(self.at))).max(shown + delta(now.since(at) / 2));
        self.shown = (time, now);
        time
    }
}

impl ServerClock {
    /// `machine`: the clock to use before the first answer.
    pub fn new(machine: TimeSource) -> Self {
        Self {
            machine,
            known: Arc::default(),
        }
    }

    /// The same as the clock that decisions are made by.
    pub fn clock(&self) -> TimeSource {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }

    fn now(&self) -> DateTime<Utc> {
        let mut known = self.known.lock();
        match known.as_mut() {
            None => (self.machine)(),
            Some(known) => known.show(),
        }
    }

    /// Learns from an answer to a call that was begun at `began`: its date was true at some moment since then.
    fn learn(&self, date: DateTime<Utc>, began: Moment) {
        let mut known = self.known.lock();
        let at = Moment::now();
        let (mut earliest, mut latest) = (date, date + RESOLUTION + delta(at.since(began)));
        let mut shown = (earliest, at);
        if let Some(before) = &*known {
            let passed = delta(at.since(before.at));
            let later = earliest.max(before.earliest + passed);
            let sooner = latest.min(before.latest + passed);
            // If not both can be true, a clock was set, or drifted away, or another API server answers.
            if later <= sooner {
                (earliest, latest) = (later, sooner);
            }
            shown = before.shown;
        }
        *known = Some(KnownTime {
            at,
            earliest,
            latest,
            shown,
        });
    }
}

fn delta(time: Duration) -> TimeDelta {
    TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX)
}

fn date(headers: &HeaderMap) -> Option<DateTime<Utc>> {
    let text = headers.get(DATE)?.to_str().ok()?;
    Some(DateTime::parse_from_rfc2822(text).ok()?.to_utc())
}

impl<S> Layer<S> for ServerClock {
    type Service = Watched<S>;

    fn layer(&self, inner: S) -> Watched<S> {
        Watched {
            inner,
            clock: self.clone(),
        }
    }
}

/// A client whose answers set the clock.
#[derive(Clone)]
pub struct Watched<S> {
    inner: S,
    clock: ServerClock,
}

impl<S, B> Service<Request<Body>> for Watched<S>
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
        // A server behind the API server's proxy, such as a user's frontend, answers with a date of its own.
        let is_proxied = request.uri().path().contains("/proxy");
        let (clock, began) = (self.clock.clone(), Moment::now());
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await?;
            if let Some(date) = date(answer.headers()).filter(|_| !is_proxied) {
                clock.learn(date, began);
            }
            Ok(answer)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::future::{Ready, ready};
    use tokio::time::{advance, sleep};
    use tower::ServiceExt as _;

    use super::*;

    /// The server's time at the beginning of each test.
    const BEGAN: i64 = 1_800_000_000;

    fn at(milliseconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(BEGAN * 1000 + milliseconds).expect("a time")
    }

    /// A machine whose clock is this many seconds ahead of the server's.
    fn ahead(seconds: i64) -> ServerClock {
        let began = Moment::now();
        ServerClock::new(Arc::new(move || at(seconds * 1000) + delta(began.elapsed())))
    }

    /// An answer with this date, as a server writes it.
    fn answer(
        date: DateTime<Utc>,
    ) -> impl Service<
        Request<Body>,
        Response = Response<()>,
        Error = Infallible,
        Future = Ready<Result<Response<()>, Infallible>>,
    > {
        let text = date.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        tower::service_fn(move |_| {
            ready(Ok(Response::builder()
                .header(DATE, text.as_str())
                .body(())
                .expect("an answer")))
        })
    }

    async fn ask(clock: &ServerClock, path: &str, date: DateTime<Utc>) {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let Ok(_) = clock.layer(answer(date)).oneshot(request).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_is_the_servers_wherever_the_machines_own_stands() {
        for seconds in [-3600, -60, 0, 60, 3600] {
            let clock = ahead(seconds);
            assert_eq!(clock.now(), at(seconds * 1000), "nothing else is known yet");
            ask(&clock, "/api/v1/pods", at(0)).await;
            assert_eq!(clock.now(), at(0), "{seconds}");
            sleep(Duration::from_millis(1500)).await;
            assert_eq!(clock.now(), at(1500), "{seconds}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_answers_show_more_than_the_whole_seconds_of_one() {
        let (clock, began) = (ahead(60), Moment::now());
        // The server is at 700 ms of its second.
        let server = || at(700) + delta(began.elapsed());
        for _ in 0..20 {
            ask(&clock, "/version", server()).await;
            sleep(Duration::from_millis(170)).await;
        }
        let off = server() - clock.now();
        assert!(off >= TimeDelta::zero() && off < TimeDelta::milliseconds(200), "{off}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_is_followed_and_never_goes_back_or_stands_still() {
        let clock = ahead(0);
        ask(&clock, "/version", at(0)).await;
        ask(&clock, "/version", at(60_000)).await;
        assert_eq!(clock.now(), at(60_000));
        ask(&clock, "/version", at(0)).await;
        assert_eq!(clock.now(), at(60_000), "it does not go back");
        for half in 1..=60 {
            advance(Duration::from_secs(2)).await;
            assert_eq!(clock.now(), at(60_000 + 1000 * half), "it goes at half the speed");
        }
        advance(Duration::from_secs(2)).await;
        assert_eq!(clock.now(), at(122_000), "and with the server's again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_frontend_behind_the_proxy_does_not_set_the_clock() {
        let clock = ahead(0);
        ask(&clock, "/version", at(0)).await;
        let frontend = "/api/v1/namespaces/perf/services/http:pv-1-frontend:8000/proxy/v1/models";
        ask(&clock, frontend, at(1_000_000_000)).await;
        assert_eq!(clock.now(), at(0));
    }
}
