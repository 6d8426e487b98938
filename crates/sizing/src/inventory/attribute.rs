use std::sync::Arc;

use k8s_openapi::api::resource::v1::DeviceAttribute;

use super::texts::{Texts, share};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// Text.
    String(Arc<str>),
    /// Semantic version.
    Version(Arc<str>),
    /// Number.
    Int(i64),
    /// Truth.
    Bool(bool),
    /// An unknown kind of value.
    Unknown,
}

impl Attribute {
    /// Reads a value.
    pub(super) fn read(attribute: &DeviceAttribute, texts: &mut Texts) -> Self {
        match attribute {
            DeviceAttribute {
                version: Some(text), ..
            } => Self::Version(share(texts, text.as_str())),
            DeviceAttribute { string: Some(text), .. } => Self::String(share(texts, text.as_str())),
            DeviceAttribute { int: Some(number), .. } => Self::Int(*number),
            DeviceAttribute { bool: Some(truth), .. } => Self::Bool(*truth),
            _ => Self::Unknown,
        }
    }

    /// The value, if it is text.
    pub fn string(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value, if it is text or a version.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::String(text) | Self::Version(text) => Some(text),
            _ => None,
        }
    }
}
