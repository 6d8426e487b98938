//! A page of a list: the form of its request, and its reader.

use std::fmt::Debug;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use perfval_sizing::inventory::protobuf::{self, ListMeta};
use serde::de::{DeserializeOwned, Error as _};

use crate::json_list;

/// Form in which objects of a kind are requested and read.
pub(crate) trait PageForm<K>: Copy {
    /// Value of the `Accept` header.
    const ACCEPT: HeaderValue;

    /// Reads a page, object by object; gives the metadata of the list.
    fn read(answer: &PageAnswer<'_>, each: impl FnMut(K)) -> kube::Result<ListMeta>;
}

/// JSON, which every kind has.
#[derive(Clone, Copy)]
pub(crate) struct Json;

/// Protobuf, which only kinds of the API server itself have; JSON from a server without it.
#[derive(Clone, Copy)]
pub(crate) struct Protobuf;

impl<K: Clone + DeserializeOwned + Debug> PageForm<K> for Json {
    const ACCEPT: HeaderValue = HeaderValue::from_static("application/json");

    fn read(answer: &PageAnswer<'_>, each: impl FnMut(K)) -> kube::Result<ListMeta> {
        json_list::read(answer.body, each).map_err(kube::Error::SerdeError)
    }
}

impl<K: Clone + DeserializeOwned + Debug + protobuf::Message> PageForm<K> for Protobuf {
    const ACCEPT: HeaderValue = HeaderValue::from_static("application/vnd.kubernetes.protobuf, application/json");

    fn read(answer: &PageAnswer<'_>, each: impl FnMut(K)) -> kube::Result<ListMeta> {
        if answer.is_protobuf {
            protobuf::page(answer.body, each).map_err(malformed)
        } else {
            Json::read(answer, each)
        }
    }
}

/// Longest page in memory. A page of 500 pods of a real cluster has 4 MB, but the API server admits pods of 1.5 MB.
const PAGE_BYTES: usize = 8 << 20;

/// An answer as it came.
pub(crate) struct PageAnswer<'b> {
    is_protobuf: bool,
    body: &'b [u8],
}

impl<'b> PageAnswer<'b> {
    /// Requests a page and reads it into a buffer, which all pages of a list share: a new one for each cost a fifth
    /// of the CPU of a look (`just bench`). A refusal is an error, in both forms. `None`: the page has more than
    /// [`PAGE_BYTES`].
    pub(crate) async fn to(
        client: &Client,
        mut request: http::Request<Vec<u8>>,
        accept: HeaderValue,
        buffer: &'b mut Vec<u8>,
    ) -> kube::Result<Option<Self>> {
        request.headers_mut().insert(ACCEPT, accept);
        let response = client.send(request.map(Body::from)).await?;
        let code = response.status();
        let form = response.headers().get(CONTENT_TYPE);
        let is_protobuf = form.is_some_and(|form| form.as_bytes().starts_with(protobuf::MEDIA_TYPE.as_bytes()));
        let mut body = response.into_body();
        buffer.clear();
        while let Some(frame) = body.frame().await {
            if let Some(bytes) = frame?.data_ref() {
                if buffer.len() + bytes.len() > PAGE_BYTES {
                    return Ok(None);
                }
                buffer.extend_from_slice(bytes);
            }
        }
        let answer = Self {
            is_protobuf,
            body: buffer,
        };
        if code.is_success() {
            return Ok(Some(answer));
        }
        Err(kube::Error::Api(answer.refusal(code.as_u16()).boxed()))
    }

    fn refusal(&self, code: u16) -> Status {
        let reported = if self.is_protobuf {
            protobuf::status(self.body).ok()
        } else {
            serde_json::from_slice(self.body).ok()
        };
        // Of a proxy, or of a group that is not served: any text.
        reported.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(self.body);
            Status::failure(text.trim(), "Failed to parse error data").with_code(code)
        })
    }
}

/// Failure of a list in which a single object is longer than a page may be.
pub(crate) fn too_long() -> kube::Error {
    kube::Error::SerdeError(serde_json::Error::custom(format!(
        "one object has more than {PAGE_BYTES} bytes"
    )))
}

fn malformed(error: protobuf::Malformed) -> kube::Error {
    kube::Error::SerdeError(serde_json::Error::custom(error))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use perfval_testkit::protobuf::body;
    use serde_json::json;

    use super::*;
    use crate::CallFailure;

    fn names<F: PageForm<Pod>>(_: F, answer: &PageAnswer<'_>) -> Result<(Vec<String>, ListMeta), String> {
        let mut names = Vec::new();
        let metadata = F::read(answer, |pod: Pod| names.extend(pod.metadata.name));
        metadata
            .map(|metadata| (names, metadata))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_list_is_the_same_in_both_forms() {
        let list = json!({
            "kind": "PodList", "apiVersion": "v1", "metadata": { "resourceVersion": "7", "continue": "more" },
            "items": [{ "metadata": { "name": "a" } }, { "metadata": { "name": "b" } }],
        });
        let metadata = ListMeta {
            version: Some("7".to_owned()),
            next: Some("more".to_owned()),
        };
        let expected = Ok((vec!["a".to_owned(), "b".to_owned()], metadata));
        for (is_protobuf, body) in [(true, body(&list).unwrap()), (false, list.to_string().into_bytes())] {
            let answer = PageAnswer {
                is_protobuf,
                body: &body,
            };
            assert_eq!(names(Protobuf, &answer), expected, "{is_protobuf}");
            // Half a list is none.
            let cut = PageAnswer {
                is_protobuf,
                body: &body[..body.len() - 6],
            };
            assert!(names(Protobuf, &cut).is_err(), "{is_protobuf}");
        }
    }

    #[test]
    fn a_refusal_is_the_same_in_every_form() {
        let refusal = |name: &str| {
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "no", "details": { "name": name },
            })
        };
        for name in ["", "a"] {
            let status = refusal(name);
            for (is_protobuf, body) in [(true, body(&status).unwrap()), (false, status.to_string().into_bytes())] {
                let answer = PageAnswer {
                    is_protobuf,
                    body: &body,
                };
                let failure = CallFailure::Call(kube::Error::Api(answer.refusal(500).boxed()));
                assert_eq!((failure.code(), failure.is_not_served()), (Some(404), name.is_empty()));
                assert_eq!(failure.to_string(), "404 NotFound: no");
            }
        }
        let text = PageAnswer {
            is_protobuf: false,
            body: b"404 page not found\n",
        };
        let failure = CallFailure::Call(kube::Error::Api(text.refusal(404).boxed()));
        assert!(failure.is_not_served() && failure.to_string().ends_with("404 page not found"));
    }
}
