//! Writes and deletions that hold only on the object that was seen.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::{Claims, refused};

impl Claims<'_> {
    pub async fn an_old_copy_cannot_write_a_status(&self) {
        let old = self.validation("old-copy").await;
        let new = self
            .apply_status(&old, json!({"observedGeneration": 1}))
            .await
            .expect("current");
        let late = self.apply_status(&old, json!({"observedGeneration": 2})).await;
        assert_eq!(refused(late), (409, "Conflict".into()));
        self.apply_status(&new, json!({"observedGeneration": 2}))
            .await
            .expect("current");
    }

    /// The version is the only lock. Two objects of one name never have the same.
    pub async fn an_applied_status_does_not_hold_its_uid(&self) {
        let mut object = self.validation("namesake").await;
        object.metadata.uid = Some("another".into());
        let written = self.apply_status(&object, json!({"observedGeneration": 1})).await;
        let status = written.expect("current").status.expect("written");
        assert_eq!(status.observed_generation, 1);
    }

    pub async fn an_old_copy_cannot_be_merged(&self) {
        let old = self.validation("old-merge").await;
        let new = self
            .apply_status(&old, json!({"observedGeneration": 1}))
            .await
            .expect("current");
        let merge = async |version: Option<String>| {
            let change = json!({"metadata": {"resourceVersion": version}, "spec": {"trials": {"max": 9}}});
            let (api, params) = (self.validations(), PatchParams::default());
            api.patch("old-merge", &params, &Patch::Merge(&change)).await
        };
        let late = merge(old.resource_version()).await;
        assert_eq!(refused(late), (409, "Conflict".into()));
        let changed = merge(new.resource_version()).await.expect("current");
        assert_eq!(changed.spec.trials.max, 9);
    }

    pub async fn an_old_copy_cannot_replace_a_lease(&self) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), self.namespace);
        let lease = json!({"metadata": {"name": "leader"}, "spec": {"holderIdentity": "a"}});
        let lease = serde_json::from_value(lease).expect("a Lease");
        let old = leases.create(&PostParams::default(), &lease).await.expect("free");
        let claim = async |holder: &str| {
            let spec = LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                ..LeaseSpec::default()
            };
            let next = Lease {
                spec: Some(spec),
                ..old.clone()
            };
            leases.replace("leader", &PostParams::default(), &next).await
        };
        claim("b").await.expect("current");
        assert_eq!(refused(claim("c").await), (409, "Conflict".into()));
    }

    pub async fn a_test_against_null_holds_where_nothing_is(&self) {
        let operations = json!([
            {"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": ["perfvalidation.dev/claims"]},
        ]);
        let patch: Patch<()> = Patch::Json(serde_json::from_value(operations).expect("a JSON patch"));
        let params = PatchParams::default();
        let first = self
            .config_maps()
            .patch_metadata("taken", &params, &patch)
            .await
            .expect("none yet");
        assert_eq!(first.finalizers(), ["perfvalidation.dev/claims"]);
        let again = self.config_maps().patch_metadata("taken", &params, &patch).await;
        // The refusal of a policy has a name.
        let named = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.details.as_ref().is_some_and(|details| !details.name.is_empty()));
        assert!(!again.as_ref().is_err_and(named), "{again:?}");
        assert_eq!(refused(again).0, 422);
    }

    /// On the object that got its finalizer just before.
    pub async fn a_delete_holds_its_uid_and_waits_for_finalizers(&self) {
        let found = self.config_maps().get("taken").await.expect("there");
        let of = |uid: Option<String>| {
            DeleteParams::background().preconditions(Preconditions {
                uid,
                resource_version: None,
            })
        };
        let namesake = self.config_maps().delete("taken", &of(Some("another".into()))).await;
        assert_eq!(refused(namesake), (409, "Conflict".into()));
        self.config_maps()
            .delete("taken", &of(found.uid()))
            .await
            .expect("this one");
        let held = self.config_maps().get("taken").await.expect("held by its finalizer");
        assert!(held.metadata.deletion_timestamp.is_some());
        let operations = json!([
            {"op": "test", "path": "/metadata/finalizers/0", "value": "perfvalidation.dev/claims"},
            {"op": "remove", "path": "/metadata/finalizers/0"},
        ]);
        let patch: Patch<()> = Patch::Json(serde_json::from_value(operations).expect("a JSON patch"));
        self.config_maps()
            .patch_metadata("taken", &PatchParams::default(), &patch)
            .await
            .expect("released");
        assert_eq!(refused(self.config_maps().get("taken").await).0, 404);
    }

    /// A validation changed after the decision to delete it.
    pub async fn a_delete_holds_its_version(&self) {
        let old = self.validation("old-delete").await;
        let new = self
            .apply_status(&old, json!({"observedGeneration": 1}))
            .await
            .expect("current");
        let delete = async |resource_version: Option<String>| {
            let seen = Preconditions {
                uid: old.uid(),
                resource_version,
            };
            let params = DeleteParams::background().preconditions(seen);
            self.validations().delete("old-delete", &params).await
        };
        let late = delete(old.resource_version()).await;
        assert_eq!(refused(late), (409, "Conflict".into()));
        delete(new.resource_version()).await.expect("current");
        assert_eq!(refused(self.validations().get("old-delete").await).0, 404);
    }
}
