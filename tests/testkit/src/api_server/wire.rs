//! The line between one process and the API server: it counts every call, and at one of them something goes wrong.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::pending;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::BoxError;

use super::ApiServer;
use super::call::{Call, Target};
use super::refusal::{Refusal, reason};
use super::service::{Answer, AnswerBody, dated, respond};

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strike {
    /// The process is gone before the call is sent.
    StopBefore,
    /// The call is carried out, and the process is gone before its answer comes.
    StopAfter,
    /// It is refused with this code; a 429 says when to come again (s).
    Refuse(u16),
    /// No answer, and nothing was done.
    LoseCall,
    /// It is carried out, and not answered.
    LoseAnswer,
    /// A read is answered with what was true before the last so many changes.
    Stale(u64),
    /// The answer takes so many seconds.
    Slow(u64),
    /// The process is gone, and the call is carried out so many seconds later: it waited in the API server's queue.
    Late(u64),
    /// Just before a write is carried out, somebody else puts an object of their own where it goes.
    Usurp,
}

/// A call that was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its number, from 0.
    pub number: usize,
    /// What was asked for, with the name of what is created; discovery and the version have the group version as their
    /// resource.
    pub call: Call,
    /// How many changes there had been in the cluster.
    pub after: u64,
    /// When.
    pub at: Instant,
    /// Code of the answer; `None` if none was given.
    pub code: Option<u16>,
}

impl Made {
    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        self.call.writes()
    }

    /// Whether it reads once.
    pub fn reads(&self) -> bool {
        self.call.reads()
    }
}

/// The line of a process. Clones are the same line.
#[derive(Clone)]
pub struct Wire {
    server: ApiServer,
    state: Arc<Mutex<State>>,
    /// Rings when the process has to stop.
    pub stop: Arc<Notify>,
    /// Rings after every write.
    pub wrote: Arc<Notify>,
}

#[derive(Default)]
struct State {
    generation: u64,
    made: Vec<Made>,
    strikes: BTreeMap<usize, Strike>,
    /// Strikes of one kind at the calls that are next, whatever they are.
    queued: VecDeque<Strike>,
    /// How long each answer takes.
    pace: Duration,
    /// Whether no call gets through.
    severed: bool,
}

impl Wire {
    /// A line to a server.
    pub fn new(server: &ApiServer) -> Self {
        Self {
            server: server.clone(),
            state: Arc::default(),
            stop: Arc::default(),
            wrote: Arc::default(),
        }
    }

    /// Connects a process; whatever was connected before is cut off, as the dead are.
    pub fn connect(&self) -> Line {
        let mut state = self.lock();
        state.generation += 1;
        Line {
            wire: self.clone(),
            generation: state.generation,
        }
    }

    /// Cuts off whatever is connected.
    pub fn cut(&self) {
        self.lock().generation += 1;
    }

    /// From now on no call gets through, or each again.
    pub fn sever(&self, severed: bool) {
        self.lock().severed = severed;
    }

    /// From now on each answer takes this time.
    pub fn slow_down(&self, pace: Duration) {
        self.lock().pace = pace;
    }

    /// Something goes wrong with the call of this number.
    pub fn strike(&self, number: usize, strike: Strike) {
        self.lock().strikes.insert(number, strike);
    }

    /// Something goes wrong with the next call that has nothing else coming.
    pub fn strike_next(&self, strike: Strike) {
        self.lock().queued.push_back(strike);
    }

    /// Every call so far.
    pub fn made(&self) -> Vec<Made> {
        self.lock().made.clone()
    }

    /// How many calls there were so far.
    pub fn count(&self) -> usize {
        self.lock().made.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers a call; `None` if the process is dead.
    fn number(&self, generation: u64, request: &http::request::Parts, body: &[u8]) -> Option<Sent> {
        let after = self.server.version();
        let mut state = self.lock();
        if state.generation != generation || state.severed {
            return None;
        }
        let number = state.made.len();
        let mut call = named(request);
        if call.verb == "create" {
            call.name = name_in(body);
        }
        state.made.push(Made {
            number,
            call,
            after,
            at: Instant::now(),
            code: None,
        });
        let strike = state.strikes.remove(&number).or_else(|| state.queued.pop_front());
        Some(Sent {
            number,
            strike,
            takes: state.pace,
        })
    }

    fn answered(&self, number: usize, code: u16) {
        let mut state = self.lock();
        let wrote = state.made.get_mut(number).is_some_and(|made| {
            made.code = Some(code);
            made.writes() && code < 300
        });
        drop(state);
        if wrote {
            self.wrote.notify_one();
        }
    }
}

/// A call on its way.
struct Sent {
    number: usize,
    strike: Option<Strike>,
    takes: Duration,
}

fn named(request: &http::request::Parts) -> Call {
    let plain = |resource: String| Call {
        verb: "get",
        group: String::new(),
        resource,
        namespace: None,
        name: None,
        dry_run: false,
    };
    match Target::of(&request.uri) {
        Some(Target::Resource(address)) => address.call(&request.method),
        Some(Target::Discovery { group, version }) => Some(plain(format!("{group}/{version}"))),
        Some(Target::Version) | None => Some(plain("version".to_owned())),
    }
    .unwrap_or_else(|| plain(request.uri.path().to_owned()))
}

fn name_in(body: &[u8]) -> Option<String> {
    let object: Value = serde_json::from_slice(body).ok()?;
    object["metadata"]["name"].as_str().map(str::to_owned)
}

/// A process's end of the line.
#[derive(Clone)]
pub struct Line {
    wire: Wire,
    generation: u64,
}

impl tower::Service<Request<Body>> for Line {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let line = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap_or_default();
            let Some(Sent { number, strike, takes }) = line.wire.number(line.generation, &head, &body) else {
                return pending().await;
            };
            let reads = head.method == Method::GET;
            let date = line.wire.server.date(&head);
            let answer = match strike {
                Some(Strike::StopBefore) => {
                    line.wire.stop.notify_one();
                    return pending().await;
                }
                Some(Strike::LoseCall) => return pending().await,
                Some(Strike::Late(seconds)) => {
                    let server = line.wire.server.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_secs(seconds)).await;
                        server.answer(&head, &body);
                    });
                    line.wire.stop.notify_one();
                    return pending().await;
                }
                Some(Strike::Refuse(code)) => Answer::Json(code, refusal(code).status()),
                Some(Strike::Usurp) if !reads => {
                    let call = line.wire.lock().made[number].call.clone();
                    line.wire.server.usurp_first(&call, &body);
                    line.wire.server.answer(&head, &body)
                }
                Some(Strike::Stale(changes)) if reads => line.wire.server.answer_from_the_past(changes, &head, &body),
                _ => line.wire.server.answer(&head, &body),
            };
            match strike {
                Some(Strike::StopAfter) => {
                    line.wire.stop.notify_one();
                    return pending().await;
                }
                Some(Strike::LoseAnswer) => {
                    line.wire.wrote.notify_one();
                    return pending().await;
                }
                Some(Strike::Slow(seconds)) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                _ if takes > Duration::ZERO => tokio::time::sleep(takes).await,
                _ => {}
            }
            let mut response = dated(respond(answer).await, date);
            if let Some(Strike::Refuse(429)) = strike {
                response
                    .headers_mut()
                    .insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            line.wire.answered(number, response.status().as_u16());
            Ok(response)
        })
    }
}

fn refusal(code: u16) -> Refusal {
    // With a name: a refused 404 is a missing object, not a kind that is not served.
    Refusal::new(code, reason(code), format!("a fault of {code}")).about("fault")
}
