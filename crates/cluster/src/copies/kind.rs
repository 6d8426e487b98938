//! Kinds with copies.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{DynamicObject, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A kind with copies.
pub trait Copied: Resource + Clone + Serialize + DeserializeOwned {
    /// Index of the kind.
    const KIND: usize;
}

impl Copied for Pod {
    const KIND: usize = 0;
}

impl Copied for Job {
    const KIND: usize = 1;
}

impl Copied for DynamicObject {
    const KIND: usize = 2;
}

/// Number of kinds.
pub(super) const KINDS: usize = 3;
