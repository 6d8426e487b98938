//! A page of a list: its request, and the bytes of its answer.

use http::header::{ACCEPT, HeaderValue};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde::de::Error as _;

/// Longest page in memory. A page of 500 pods of a real cluster has 4 MB, but the API server admits pods of 1.5 MB.
pub(crate) const PAGE_BYTES: usize = 8 << 20;

/// Requests a page and reads it into a buffer, which all pages of a list share: a new one for each cost a fifth of the
/// CPU of a look (`just bench`). A refusal is an error. `None`: the page has more than [`PAGE_BYTES`].
pub(crate) async fn request<'b>(
    client: &Client,
    mut request: http::Request<Vec<u8>>,
    buffer: &'b mut Vec<u8>,
) -> kube::Result<Option<&'b [u8]>> {
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().entry(ACCEPT).or_insert(json);
    let response = client.send(request.map(Body::from)).await?;
    let code = response.status();
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
    if code.is_success() {
        return Ok(Some(buffer.as_slice()));
    }
    Err(kube::Error::Api(refusal(buffer, code.as_u16()).boxed()))
}

fn refusal(body: &[u8], code: u16) -> Status {
    let status = serde_json::from_slice::<Status>(body).ok();
    // JSON of a gateway is a status without a code. Its 404 shows nothing about a kind.
    let code = if status.is_some() && code == 404 { 0 } else { code };
    status.filter(|status| status.code != 0).unwrap_or_else(|| {
        // Of a proxy, or of a group that is not served: any text.
        let text = String::from_utf8_lossy(body);
        Status::failure(text.trim(), "Failed to parse error data").with_code(code)
    })
}

/// Failure of a list with more bytes than memory is kept for.
pub(crate) fn too_long(part: &str, bytes: usize) -> kube::Error {
    kube::Error::SerdeError(serde_json::Error::custom(format!("{part} has more than {bytes} bytes")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::CallFailure;

    fn failure(body: &[u8], code: u16) -> CallFailure {
        CallFailure::Call(kube::Error::Api(refusal(body, code).boxed()))
    }

    #[test]
    fn a_refusal_is_a_status_of_the_api_server_or_any_text() {
        for name in ["", "a"] {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "no", "details": { "name": name },
            });
            let refused = failure(status.to_string().as_bytes(), 500);
            assert_eq!((refused.code(), refused.is_not_served()), (Some(404), name.is_empty()));
            assert_eq!(refused.to_string(), "404 NotFound: no");
        }
        let refused = failure(b"404 page not found\n", 404);
        assert!(refused.is_not_served() && refused.to_string().ends_with("404 page not found"));
        let gateway = r#"{"message":"no healthy upstream"}"#;
        for (body, code, known) in [
            (r#"{"error":{"code":7}}"#, 429, 429),
            (gateway, 503, 503),
            (gateway, 404, 0),
        ] {
            let refused = failure(body.as_bytes(), code);
            assert_eq!(refused.code(), Some(known), "{body}");
            assert!(refused.to_string().ends_with(body), "{refused}");
        }
    }
}
