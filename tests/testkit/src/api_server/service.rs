//! HTTP without a socket.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::channel::mpsc::UnboundedReceiver;
use http::header::{DATE, HeaderValue};
use http::request::Parts;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::fmt::rfc2822::DateTimePrinter;
use kube::client::Body;
use serde_json::Value;

use super::ApiServer;

pub(super) type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;

/// An answer, before it is bytes.
pub(super) enum Answer {
    Json(u16, Value),
    Plain(u16, Vec<u8>),
    Stream(UnboundedReceiver<Bytes>),
    Never,
}

impl tower::Service<Request<Body>> for ApiServer {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            // A body that breaks off is an empty one: the request is refused for it.
            let body = body.collect_bytes().await.unwrap_or_default();
            let (date, answer) = (server.date(&head), server.answer(&head, &body));
            Ok(dated(respond(answer).await, date))
        })
    }
}

impl ApiServer {
    pub(super) fn answer(&self, head: &Parts, body: &[u8]) -> Answer {
        let answer = self.lock().handle(&head.method, &head.uri, &head.headers, body);
        answer.unwrap_or_else(|refusal| Answer::Json(refusal.code, refusal.status()))
    }

    /// The date of an answer. What is behind the proxy has a clock of its own, which nobody may believe.
    pub(super) fn date(&self, head: &Parts) -> HeaderValue {
        let is_proxied = head.uri.path().contains("/proxy");
        let now = Timestamp::from_second(self.lock().store.seconds()).ok();
        let now = now.and_then(|now| DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok());
        let own = now.and_then(|text| HeaderValue::from_str(&text).ok());
        own.filter(|_| !is_proxied)
            .unwrap_or(HeaderValue::from_static("Fri, 31 Dec 9999 23:59:59 GMT"))
    }

    /// The answer to a read, as it was before the last so many changes.
    pub(super) fn answer_from_the_past(&self, changes: u64, head: &Parts, body: &[u8]) -> Answer {
        let present = self.lock().store.enter_the_past(changes);
        let answer = self.answer(head, body);
        self.lock().store.come_back(present);
        answer
    }
}

/// An answer with the date that the server writes into it.
pub(super) fn dated(mut response: Response<AnswerBody>, date: HeaderValue) -> Response<AnswerBody> {
    response.headers_mut().insert(DATE, date);
    response
}

pub(super) async fn respond(answer: Answer) -> Response<AnswerBody> {
    let full = |bytes: Vec<u8>| Full::new(Bytes::from(bytes)).boxed_unsync();
    let (code, body) = match answer {
        Answer::Json(code, value) => (code, full(value.to_string().into_bytes())),
        Answer::Plain(code, bytes) => (code, full(bytes)),
        Answer::Stream(events) => {
            let frames = events.map(|line| Ok(Frame::data(line)));
            (200, StreamBody::new(frames).boxed_unsync())
        }
        Answer::Never => futures::future::pending().await,
    };
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response
}
