//! Labels. Their values are bounded: words of the code, and names only of objects that exist.

use prometheus_client::encoding::EncodeLabelSet;

/// Labels with words of the code, as name and value.
pub(super) type Labels<const N: usize> = [(&'static str, &'static str); N];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Request {
    pub(super) verb: &'static str,
    pub(super) resource: &'static str,
    pub(super) code: String,
}
