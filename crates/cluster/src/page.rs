//! A page of a list: the form in which it is asked for, and how it is read.

use std::fmt::Debug;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use kube::Client;
use kube::core::{ObjectList, Status};
use perfval_sizing::inventory::protobuf;
use serde::de::{DeserializeOwned, Error as _};

/// How objects of a kind are asked for and read.
pub(crate) trait Form<K>: Copy {
    /// What is accepted.
    const ACCEPT: HeaderValue;

    /// Reads a page, object by object; gives the token of the next page.
    fn read(answer: &Answer, each: impl FnMut(K)) -> kube::Result<Option<String>>;
}

/// JSON, which every kind has.
#[derive(Clone, Copy)]
pub(crate) struct Json;

/// Protobuf, which only kinds of the API server itself have; JSON from whoever does not know it.
#[derive(Clone, Copy)]
pub(crate) struct Protobuf;

impl<K: Clone + DeserializeOwned + Debug> Form<K> for Json {
    const ACCEPT: HeaderValue = HeaderValue::from_static("application/json");

    fn read(answer: &Answer, each: impl FnMut(K)) -> kube::Result<Option<String>> {
        let page: ObjectList<K> = serde_json::from_slice(&answer.body).map_err(kube::Error::SerdeError)?;
        page.items.into_iter().for_each(each);
        Ok(page.metadata.continue_.filter(|token| !token.is_empty()))
    }
}

impl<K: Clone + DeserializeOwned + Debug + protobuf::Message> Form<K> for Protobuf {
    const ACCEPT: HeaderValue = HeaderValue::from_static("application/vnd.kubernetes.protobuf, application/json");

    fn read(answer: &Answer, each: impl FnMut(K)) -> kube::Result<Option<String>> {
        if answer.is_protobuf {
            protobuf::page(&answer.body, each).map_err(malformed)
        } else {
            Json::read(answer, each)
        }
    }
}

/// An answer as it came.
pub(crate) struct Answer {
    is_protobuf: bool,
    body: Vec<u8>,
}

impl Answer {
    /// Asks for a page. A refusal is an error, in whichever form it comes.
    pub(crate) async fn to(
        client: &Client,
        mut request: http::Request<Vec<u8>>,
        accept: HeaderValue,
    ) -> kube::Result<Self> {
        request.headers_mut().insert(ACCEPT, accept);
        let response = client.send(request.map(kube::client::Body::from)).await?;
        let code = response.status();
        let is_protobuf = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|form| form.as_bytes().starts_with(protobuf::MEDIA_TYPE.as_bytes()));
        let body = response.into_body().collect_bytes().await?.into();
        let answer = Self { is_protobuf, body };
        if code.is_success() {
            return Ok(answer);
        }
        Err(kube::Error::Api(answer.refusal(code.as_u16()).boxed()))
    }

    fn refusal(&self, code: u16) -> Status {
        let told = if self.is_protobuf {
            protobuf::status(&self.body).ok()
        } else {
            serde_json::from_slice(&self.body).ok()
        };
        // Of a proxy, or of a group that is not served: any text.
        told.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&self.body);
            Status::failure(text.trim(), "Failed to parse error data").with_code(code)
        })
    }
}

fn malformed(error: protobuf::Malformed) -> kube::Error {
    kube::Error::SerdeError(serde_json::Error::custom(error))
}
