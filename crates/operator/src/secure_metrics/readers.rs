//! Readers of the metrics. The API server checks their tokens and their rights.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::warn;

/// Time for which an answer of the API server holds. A scrape every 30 s costs a check a minute.
const HOLDS: Duration = Duration::from_mins(1);
/// Most answers that are remembered.
const MOST: usize = 256;
/// Checks at the same time. Clients without a valid token must not make the API server busy.
const AT_ONCE: usize = 4;

/// Answer about a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// It may read.
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
pub struct Readers(Arc<Shared>);

struct Shared {
    client: Client,
    asking: Semaphore,
    known: Mutex<HashMap<[u8; 32], (Instant, Access)>>,
}

impl Readers {
    /// Readers that this client checks. It creates reviews, so no fence may stop it in a follower.
    pub fn new(client: Client) -> Self {
        Self(Arc::new(Shared {
            client,
            asking: Semaphore::new(AT_ONCE),
            known: Mutex::default(),
        }))
    }

    /// Access of the owner of a token to `/metrics`.
    pub(super) async fn access(&self, token: Option<&str>) -> Access {
        let Some(token) = token else {
            return Access::Unauthenticated;
        };
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(known) = self.known(&digest) {
            return known;
        }
        let Ok(_one) = self.0.asking.acquire().await else {
            return Access::Unknown;
        };
        // Another request may have asked meanwhile.
        if let Some(known) = self.known(&digest) {
            return known;
        }
        match self.ask(token).await {
            Ok(access) => {
                self.remember(digest, access.clone());
                access
            }
            Err(error) => {
                warn!(
                    error = &error as &dyn std::error::Error,
                    "a reader of the metrics is unknown: the operator needs the ClusterRole system:auth-delegator"
                );
                Access::Unknown
            }
        }
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

    fn known(&self, digest: &[u8; 32]) -> Option<Access> {
        let known = self.lock();
        let (at, access) = known.get(digest)?;
        (at.elapsed() < HOLDS).then(|| access.clone())
    }

    fn remember(&self, digest: [u8; 32], access: Access) {
        let mut known = self.lock();
        known.retain(|_, (at, _)| at.elapsed() < HOLDS);
        if known.len() < MOST {
            known.insert(digest, (Instant::now(), access));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], (Instant, Access)>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    use std::sync::atomic::{AtomicUsize, Ordering};

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
    async fn wrong_tokens_without_end_take_no_memory() {
        let readers = readers(Arc::default());
        for number in 0..2 * MOST {
            readers.access(Some(&number.to_string())).await;
        }
        assert_eq!(readers.lock().len(), MOST);
    }
}
