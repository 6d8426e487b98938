//! Permission to create what runs need in a namespace.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::{Api, PostParams};

use super::dynamo::{GROUP, PLURAL};
use crate::{CallFailure, Cluster};

/// A right as the API server asks for it; a subresource comes after a slash.
pub fn resource_attributes(verb: &str, group: &str, resource: &str, namespace: Option<&str>) -> ResourceAttributes {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ResourceAttributes {
        verb: given(verb),
        group: given(group),
        resource: given(resource),
        subresource: given(subresource),
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    }
}

/// Question about a right of the caller. Every authenticated user may ask by default.
pub fn own_right(right: ResourceAttributes) -> SelfSubjectAccessReview {
    SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(right),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    }
}

impl Cluster {
    /// Returns true if runs are allowed in a namespace. One right stands for all of its role, which is bound whole.
    pub(crate) async fn may_run_in(&self, namespace: &str) -> Result<bool, CallFailure> {
        if self.allowed.get(&namespace.to_owned()).is_some() {
            return Ok(true);
        }
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let review = own_right(resource_attributes("create", GROUP, PLURAL, Some(namespace)));
        let answered = self.bounded(reviews.create(&PostParams::default(), &review)).await?;
        let is_allowed = answered.status.is_some_and(|status| status.allowed);
        if is_allowed {
            self.allowed.keep(namespace.to_owned(), ());
        }
        Ok(is_allowed)
    }
}
