//! Readers of the metrics. The API server checks their tokens and their rights.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tracing::warn;

use crate::rbac::Right;

/// Time for which an answer of the API server holds. A scrape every 30 s costs a check a minute.
const HOLDS: Duration = Duration::from_mins(1);
/// Time for which a right holds while the API server does not answer: its outage must not hide the operator's metrics.
const OUTAGE: Duration = Duration::from_mins(15);
/// Most rights that are remembered, and most refusals.
const MOST: usize = 256;
/// Checks at the same time. Clients without a valid token must not make the API server busy.
const AT_ONCE: usize = 4;
/// Longest time of a check, with its wait for others.
const LIMIT: Duration = Duration::from_secs(5);
/// Longest token (bytes). Those of service accounts have about 1,000.
const LONGEST: usize = 16 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Granted,
    /// No token, or none of this cluster.
    Unauthenticated,
    /// This user may not.
    Refused(String),
    /// The API server did not answer.
    Unknown,
}

/// The readers whose tokens were checked. Clones share them.
#[derive(Clone)]
pub struct Readers(Arc<SharedReaders>);

struct SharedReaders {
    client: Client,
    asking: Semaphore,
    known: Mutex<KnownTokens>,
}

type Digest = [u8; 32];

/// Answers of the API server by the digests of the tokens. Refusals have a place of their own, so that they drive out no right.
#[derive(Default)]
struct KnownTokens {
    granted: HashMap<Digest, Instant>,
    refused: HashMap<Digest, (Instant, Access)>,
    warned: Option<Instant>,
}

impl Readers {
    /// Readers that this client checks. It creates reviews, so no fence may stop it in a follower.
    pub fn new(client: Client) -> Self {
        Self(Arc::new(SharedReaders {
            client,
            asking: Semaphore::new(AT_ONCE),
            known: Mutex::default(),
        }))
    }

    /// Access of the owner of a token to `/metrics`.
    pub(super) async fn access(&self, token: Option<&str>) -> Access {
        let Some(token) = token.filter(|token| token.len() <= LONGEST) else {
            return Access::Unauthenticated;
        };
        let digest: Digest = Sha256::digest(token).into();
        if let Some(known) = self.known(&digest, HOLDS) {
            return known;
        }
        let why = match timeout(LIMIT, self.check(token, &digest)).await {
            Ok(Ok(access)) => return access,
            Ok(Err(error)) => {
                let forbidden = matches!(&error, kube::Error::Api(status) if status.code == 403);
                let remedy = if forbidden {
                    "; bind the ClusterRole system:auth-delegator to the operator"
                } else {
                    ""
                };
                format!("{error}{remedy}")
            }
            Err(_) => format!("no answer within {} s", LIMIT.as_secs()),
        };
        if self.is_to_warn() {
            warn!(why, "a reader of the metrics could not be checked");
        }
        self.known(&digest, OUTAGE).unwrap_or(Access::Unknown)
    }

    async fn check(&self, token: &str, digest: &Digest) -> Result<Access, kube::Error> {
        // It is never closed.
        let _one = self.0.asking.acquire().await;
        // Another request may have had the answer meanwhile.
        if let Some(known) = self.known(digest, HOLDS) {
            return Ok(known);
        }
        let access = self.ask(token).await?;
        self.remember(*digest, &access);
        Ok(access)
    }

    async fn ask(&self, token: &str) -> Result<Access, kube::Error> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let reviews = Api::all(self.0.client.clone());
        let status = reviews
            .create(&PostParams::default(), &review)
            .await?
            .status
            .unwrap_or_default();
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(Access::Unauthenticated);
        };
        let name = user.username.clone().unwrap_or_default();
        let reviews = Api::all(self.0.client.clone());
        let review = reviews.create(&PostParams::default(), &may_get_metrics(user)).await?;
        Ok(if review.status.is_some_and(|status| status.allowed) {
            Access::Granted
        } else {
            Access::Refused(name)
        })
    }

    /// The answer about a token. A right is valid for `holds`, a refusal for [`HOLDS`].
    fn known(&self, digest: &Digest, holds: Duration) -> Option<Access> {
        let known = self.0.known.lock();
        let is_granted = known.granted.get(digest).is_some_and(|at| at.elapsed() < holds);
        let refused = || known.refused.get(digest).filter(|(at, _)| at.elapsed() < HOLDS);
        is_granted
            .then_some(Access::Granted)
            .or_else(|| refused().map(|(_, access)| access.clone()))
    }

    fn remember(&self, digest: Digest, access: &Access) {
        let now = Instant::now();
        let mut known = self.0.known.lock();
        known.granted.retain(|_, at| at.elapsed() < OUTAGE);
        known.refused.retain(|_, (at, _)| at.elapsed() < HOLDS);
        known.granted.remove(&digest);
        known.refused.remove(&digest);
        if *access == Access::Granted {
            if known.granted.len() < MOST {
                known.granted.insert(digest, now);
            }
        } else if known.refused.len() < MOST {
            known.refused.insert(digest, (now, access.clone()));
        }
    }

    /// Returns true once a minute.
    fn is_to_warn(&self) -> bool {
        let mut known = self.0.known.lock();
        let is_due = known.warned.is_none_or(|at| at.elapsed() >= HOLDS);
        if is_due {
            known.warned = Some(Instant::now());
        }
        is_due
    }
}

/// Rights that the checks need.
pub(crate) fn rights() -> [Right; 2] {
    [
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    ]
    .map(|(group, resource)| Right {
        group,
        resource,
        verb: "create",
        name: None,
        namespace: None,
    })
}

fn may_get_metrics(user: UserInfo) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some("/metrics".to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::service_fn;

    use super::*;

    /// Readers behind an API server with two users. `alice` may read. Requests are counted.
    fn readers(asked: Arc<AtomicUsize>) -> Readers {
        let answer = move |request: Request<Body>| {
            let asked = asked.clone();
            async move {
                asked.fetch_add(1, Ordering::Relaxed);
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect_bytes().await.expect("a body");
                let mut review: Value = serde_json::from_slice(&body).expect("JSON");
                let spec = review["spec"].clone();
                let status = match path.as_str() {
                    "/apis/authentication.k8s.io/v1/tokenreviews" => match spec["token"].as_str() {
                        Some("broken") => return Ok(answered(500, &json!({}))),
                        Some(name @ ("alice" | "bob")) => {
                            json!({"authenticated": true, "user": {"username": name, "groups": ["readers"]}})
                        }
                        _ => json!({"authenticated": false, "user": {"username": "alice"}}),
                    },
                    "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
                        assert_eq!(
                            spec["nonResourceAttributes"],
                            json!({"path": "/metrics", "verb": "get"})
                        );
                        assert_eq!(spec["groups"], json!(["readers"]));
                        json!({"allowed": spec["user"] == "alice"})
                    }
                    other => panic!("{other}"),
                };
                review["status"] = status;
                Ok::<_, std::convert::Infallible>(answered(201, &review))
            }
        };
        Readers::new(Client::new(service_fn(answer), "default"))
    }

    fn answered(code: u16, body: &Value) -> Response<Body> {
        let body = Body::from(body.to_string().into_bytes());
        Response::builder().status(code).body(body).expect("well-formed")
    }

    #[tokio::test(start_paused = true)]
    async fn the_api_server_decides_who_reads() {
        let asked = Arc::new(AtomicUsize::new(0));
        let readers = readers(asked.clone());
        for (token, expected) in [
            (None, Access::Unauthenticated),
            (Some("stranger"), Access::Unauthenticated),
            (Some("bob"), Access::Refused("bob".to_owned())),
            (Some("alice"), Access::Granted),
            (Some("broken"), Access::Unknown),
        ] {
            assert_eq!(readers.access(token).await, expected, "{token:?}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_for_a_minute_and_a_failure_does_not() {
        let asked = Arc::new(AtomicUsize::new(0));
        let readers = readers(asked.clone());
        for _ in 0..3 {
            assert_eq!(readers.access(Some("alice")).await, Access::Granted);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        tokio::time::advance(HOLDS).await;
        readers.access(Some("alice")).await;
        assert_eq!(asked.load(Ordering::Relaxed), 4);
        for _ in 0..2 {
            assert_eq!(readers.access(Some("broken")).await, Access::Unknown);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_without_end_take_no_memory_and_drive_out_no_right() {
        let asked = Arc::new(AtomicUsize::new(0));
        let readers = readers(asked.clone());
        for number in 0..2 * MOST {
            readers.access(Some(&number.to_string())).await;
        }
        assert_eq!(readers.0.known.lock().refused.len(), MOST);
        readers.access(Some("alice")).await;
        let before = asked.load(Ordering::Relaxed);
        assert_eq!(readers.access(Some("alice")).await, Access::Granted);
        assert_eq!(asked.load(Ordering::Relaxed), before, "the right is remembered");
        let too_long = "x".repeat(LONGEST + 1);
        assert_eq!(readers.access(Some(&too_long)).await, Access::Unauthenticated);
        assert_eq!(asked.load(Ordering::Relaxed), before, "no request is made");
    }

    /// Readers behind an API server that answers until `is_out` and hangs from then on.
    fn failing(is_out: Arc<AtomicBool>) -> Readers {
        let working = readers(Arc::default());
        let client = working.0.client.clone();
        let answer = move |request: Request<Body>| {
            let (client, is_out) = (client.clone(), is_out.load(Ordering::Relaxed));
            async move {
                if is_out {
                    std::future::pending::<()>().await;
                }
                let answer = client.send(request).await.expect("an answer");
                Ok::<_, std::convert::Infallible>(answer)
            }
        };
        Readers::new(Client::new(service_fn(answer), "default"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_outlives_an_outage_of_the_api_server_and_a_refusal_does_not() {
        let is_out = Arc::new(AtomicBool::new(false));
        let readers = failing(is_out.clone());
        assert_eq!(readers.access(Some("alice")).await, Access::Granted);
        assert_eq!(readers.access(Some("bob")).await, Access::Refused("bob".to_owned()));
        is_out.store(true, Ordering::Relaxed);
        tokio::time::advance(HOLDS).await;
        assert_eq!(readers.access(Some("alice")).await, Access::Granted);
        assert_eq!(readers.access(Some("bob")).await, Access::Unknown);
        tokio::time::advance(OUTAGE).await;
        assert_eq!(readers.access(Some("alice")).await, Access::Unknown);
    }
}
