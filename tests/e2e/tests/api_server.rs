//! The API server in memory behaves as the real one, in everything that the operator relies on.

mod api_server {
    mod locks;
    mod watches;
}

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Pod, Service};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Config, ResourceExt as _};
use perfval_api::PerfValidation;
use perfval_api::fleet::{PerfBaseline, PerfValidationPolicy};
use perfval_e2e::eventually;
use perfval_testkit::api_server::ApiServer;
use serde_json::{Value, json};

const MANAGER: &str = "claims";

#[tokio::test]
async fn in_memory() {
    let server = ApiServer::new();
    server.keep_changes(1);
    hold(server.client(), "claims").await;
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn in_the_lab() {
    let mut config = Config::infer()
        .await
        .expect("KUBECONFIG names the lab's cluster: run this by `lab exec`");
    // A 503 is an answer here, not a reason to try again for minutes.
    config.default_retry = false;
    let client = Client::try_from(config).expect("a client");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let name = format!("claims-{}", std::process::id());
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a Namespace");
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .expect("a namespace of our own");
    hold(client, &name).await;
    namespaces
        .delete(&name, &DeleteParams::background())
        .await
        .expect("it was ours");
}

/// Everything that must hold on both.
async fn hold(client: Client, namespace: &str) {
    let claims = Claims { client, namespace };
    claims.a_name_is_taken_once().await;
    claims.a_dry_run_leaves_nothing().await;
    claims.not_found_is_404().await;
    claims.status_and_spec_are_written_apart().await;
    claims.new_policies_and_baselines_have_a_status().await;
    claims.an_old_copy_cannot_write_a_status().await;
    claims.an_applied_status_does_not_hold_its_uid().await;
    claims.an_old_copy_cannot_be_merged().await;
    claims.an_old_copy_cannot_replace_a_lease().await;
    claims.what_a_status_leaves_out_goes().await;
    claims.a_status_needs_its_object().await;
    claims.an_apply_creates_and_changes().await;
    claims.a_test_against_null_holds_where_nothing_is().await;
    claims.a_delete_holds_its_uid_and_waits_for_finalizers().await;
    claims.a_delete_holds_its_version().await;
    claims.lists_have_pages_and_selectors().await;
    claims.lists_select_by_the_fields_of_their_kind().await;
    claims.an_object_that_stops_matching_is_deleted_for_a_watch().await;
    claims.a_watch_from_a_forgotten_version_expires().await;
    claims.events_are_found_by_the_uid_of_their_pod().await;
    claims.a_service_without_endpoints_answers_503().await;
}

struct Claims<'a> {
    client: Client,
    namespace: &'a str,
}

fn refused<T>(answer: kube::Result<T>) -> (u16, String) {
    match answer {
        Err(kube::Error::Api(status)) => (status.code, status.reason.clone()),
        Err(other) => panic!("no answer of the API server: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

fn config_map(name: &str, data: &Value) -> ConfigMap {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"of": "claims"}}, "data": data,
    });
    serde_json::from_value(object).expect("a ConfigMap")
}

impl Claims<'_> {
    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    fn validations(&self) -> Api<PerfValidation> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    async fn validation(&self, name: &str) -> PerfValidation {
        let object = json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation", "metadata": {"name": name},
            // No operator may run it meanwhile.
            "spec": {"suspend": true, "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.6.1"}}},
            "status": {"observedGeneration": 7},
        });
        let object = serde_json::from_value(object).expect("a PerfValidation");
        self.validations()
            .create(&PostParams::default(), &object)
            .await
            .expect("it is valid")
    }

    async fn apply_status(&self, of: &PerfValidation, status: Value) -> kube::Result<PerfValidation> {
        let body = json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
            "metadata": {"name": of.name_any(), "uid": of.uid(), "resourceVersion": of.resource_version()},
            "status": status,
        });
        let params = PatchParams::apply(MANAGER).force();
        self.validations()
            .patch_status(&of.name_any(), &params, &Patch::Apply(body))
            .await
    }

    async fn a_name_is_taken_once(&self) {
        let object = config_map("taken", &json!({}));
        self.config_maps()
            .create(&PostParams::default(), &object)
            .await
            .expect("free");
        let again = self.config_maps().create(&PostParams::default(), &object).await;
        assert_eq!(refused(again), (409, "AlreadyExists".into()));
    }

    async fn a_dry_run_leaves_nothing(&self) {
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        self.config_maps()
            .create(&dry, &config_map("dry", &json!({})))
            .await
            .expect("valid");
        assert_eq!(refused(self.config_maps().get("dry").await).0, 404);
        let taken = self.config_maps().create(&dry, &config_map("taken", &json!({}))).await;
        assert_eq!(refused(taken), (409, "AlreadyExists".into()));
    }

    async fn not_found_is_404(&self) {
        assert_eq!(
            refused(self.config_maps().get("nobody").await),
            (404, "NotFound".into())
        );
        assert_eq!(refused(self.config_maps().get_metadata("nobody").await).0, 404);
        // Only of an object that is not there the answer gives the name.
        let name_of = |error: kube::Error| match error {
            kube::Error::Api(status) if status.code == 404 => {
                status.details.map_or(String::new(), |details| details.name)
            }
            other => panic!("no 404 of the API server: {other}"),
        };
        let nobody = self.config_maps().get("nobody").await.expect_err("not there");
        assert_eq!(name_of(nobody), "nobody");
        for unserved in ["unserved.example/v1/things/x", "resource.k8s.io/v9/deviceclasses/x"] {
            let request = http::Request::get(format!("/apis/{unserved}"));
            let request = request.body(Vec::new()).expect("a request");
            let error = self.client.request::<Value>(request).await.expect_err("not served");
            assert_eq!(name_of(error), "", "{unserved}");
        }
    }

    async fn status_and_spec_are_written_apart(&self) {
        let created = self.validation("apart").await;
        let status = created.status.as_ref().expect("a default");
        assert_eq!(
            status.observed_generation, -1,
            "a status in a create counts for nothing"
        );
        let both = json!({"spec": {"trials": {"max": 9}}, "status": {"observedGeneration": 9, "message": "said"}});
        let merge = PatchParams::default();
        let changed = self
            .validations()
            .patch("apart", &merge, &Patch::Merge(&both))
            .await
            .expect("valid");
        assert_eq!(changed.status.as_ref().expect("a default").observed_generation, -1);
        assert_eq!((changed.spec.trials.max, changed.metadata.generation), (9, Some(2)));
        let both = json!({"spec": {"trials": {"max": 12}}, "status": {"observedGeneration": 9, "message": "said"}});
        let answered = self
            .validations()
            .patch_status("apart", &merge, &Patch::Merge(&both))
            .await
            .expect("valid");
        assert_eq!(answered.status.expect("written").observed_generation, 9);
        assert_eq!((answered.spec.trials.max, answered.metadata.generation), (9, Some(2)));
    }

    async fn new_policies_and_baselines_have_a_status(&self) {
        let policy = json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "metadata": {"name": "claims"},
            "spec": {
                "nodeSelector": {"matchLabels": {"of": "claims"}}, "budgets": [{"nodes": 1}],
                "validationTemplate": {"metadata": {"namespace": self.namespace}, "spec": {
                    "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.6.1"}},
                    "gates": [{"name": "g", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "5"}],
                }},
            },
        });
        let baseline = json!({
            "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfBaseline", "metadata": {"name": "claims"},
            "spec": {"environment": {"digest": "0123456789ab"}, "source": "Learned"},
        });
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        for (resource, object) in [
            (ApiResource::erase::<PerfValidationPolicy>(&()), policy),
            (ApiResource::erase::<PerfBaseline>(&()), baseline),
        ] {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let object = serde_json::from_value(object).expect("an object");
            let created = api.create(&dry, &object).await.expect("it is valid");
            assert_eq!(created.data["status"], json!({"observedGeneration": -1}));
        }
    }

    async fn what_a_status_leaves_out_goes(&self) {
        let object = self.validation("left-out").await;
        let long = json!({"observedGeneration": 1, "message": "here", "diagnosis": [
            {"cause": "A", "severity": "Info", "evidence": "", "remedy": ""},
        ]});
        let object = self.apply_status(&object, long).await.expect("current");
        assert_eq!(object.status.as_ref().expect("written").diagnosis.len(), 1);
        let object = self
            .apply_status(&object, json!({"observedGeneration": 1}))
            .await
            .expect("current");
        let status = object.status.expect("written");
        assert_eq!((status.message, status.diagnosis.len()), (None, 0));
    }

    async fn a_status_needs_its_object(&self) {
        let object = self.validation("short-lived").await;
        self.validations()
            .delete("short-lived", &DeleteParams::default())
            .await
            .expect("there");
        let late = self.apply_status(&object, json!({"observedGeneration": 1})).await;
        assert_eq!(refused(late).0, 404);
    }

    async fn an_apply_creates_and_changes(&self) {
        let params = PatchParams::apply(MANAGER).force();
        for data in [json!({"a": "1", "b": "2"}), json!({"a": "3"})] {
            let object = config_map("applied", &data);
            self.config_maps()
                .patch("applied", &params, &Patch::Apply(&object))
                .await
                .expect("ours");
        }
        let found = self.config_maps().get("applied").await.expect("created");
        let data = found.data.expect("applied");
        assert_eq!(data.into_iter().collect::<Vec<_>>(), [("a".to_owned(), "3".to_owned())]);
    }

    async fn lists_have_pages_and_selectors(&self) {
        for name in ["page-1", "page-2", "page-3"] {
            let object = config_map(name, &json!({}));
            self.config_maps()
                .create(&PostParams::default(), &object)
                .await
                .expect("free");
        }
        let mut params = ListParams::default().labels("of=claims").limit(2);
        let mut names = BTreeSet::new();
        loop {
            let page = self.config_maps().list(&params).await.expect("a page");
            assert!(page.items.len() <= 2);
            names.extend(page.items.iter().map(kube::ResourceExt::name_any));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => break,
            }
        }
        assert!(
            names.is_superset(&["page-1", "page-2", "page-3"].map(str::to_owned).into()),
            "{names:?}"
        );
        let one = ListParams::default().fields("metadata.name=page-2");
        assert_eq!(self.config_maps().list(&one).await.expect("a list").items.len(), 1);
        let none = ListParams::default().labels("of=others");
        assert_eq!(self.config_maps().list(&none).await.expect("a list").items.len(), 0);
    }

    async fn lists_select_by_the_fields_of_their_kind(&self) {
        let by = |field: &str| ListParams::default().fields(field);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), self.namespace);
        for name in ["pending", "succeeded"] {
            let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
            let pod: Pod = serde_json::from_value(pod).expect("a Pod");
            // Pods are refused until the namespace has its service account.
            eventually("a pod", Duration::from_secs(30), || async {
                pods.create(&PostParams::default(), &pod).await
            })
            .await;
        }
        let over = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
        pods.patch_status("succeeded", &PatchParams::default(), &over)
            .await
            .expect("there");
        let found = pods.list(&by("status.phase!=Succeeded,status.phase!=Failed")).await;
        let found = found.expect("a list").items;
        let names: Vec<String> = found.iter().map(kube::ResourceExt::name_any).collect();
        assert_eq!(names, ["pending"]);

        for (name, status) in [
            ("settled-absent", json!({"observedGeneration": 1})),
            (
                "settled-false",
                json!({"observedGeneration": 1, "operatorState": {"settled": false}}),
            ),
            (
                "settled-true",
                json!({"observedGeneration": 1, "operatorState": {"settled": true}}),
            ),
        ] {
            let object = self.validation(name).await;
            self.apply_status(&object, status).await.expect("current");
        }
        let found = self.validations().list(&by("status.operatorState.settled!=true")).await;
        let found = found.expect("a list").items;
        let mut names: Vec<String> = found.iter().map(kube::ResourceExt::name_any).collect();
        names.retain(|name| name.starts_with("settled-"));
        names.sort();
        assert_eq!(names, ["settled-absent", "settled-false"]);

        assert_eq!(refused(pods.list(&by("spec.priority=1")).await).0, 400);
        assert_eq!(refused(self.validations().list(&by("spec.suspend=true")).await).0, 400);
    }

    async fn events_are_found_by_the_uid_of_their_pod(&self) {
        let events: Api<Event> = Api::namespaced(self.client.clone(), self.namespace);
        for (name, uid, kind) in [
            ("e-1", "u-1", "Warning"),
            ("e-2", "u-1", "Normal"),
            ("e-3", "u-2", "Warning"),
        ] {
            let event = json!({
                "metadata": {"name": name}, "type": kind, "reason": "Claimed", "message": name,
                "involvedObject": {"kind": "Pod", "namespace": self.namespace, "name": "p", "uid": uid},
            });
            let event = serde_json::from_value(event).expect("an Event");
            events.create(&PostParams::default(), &event).await.expect("valid");
        }
        let params = ListParams::default()
            .fields("involvedObject.uid=u-1,type=Warning")
            .limit(50);
        let found = events.list(&params).await.expect("a list");
        assert_eq!(
            found.items.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>(),
            ["e-1"]
        );
    }

    async fn a_service_without_endpoints_answers_503(&self) {
        let services: Api<Service> = Api::namespaced(self.client.clone(), self.namespace);
        let service = json!({
            "metadata": {"name": "nobody"}, "spec": {"selector": {"of": "nobody"}, "ports": [{"port": 8000}]},
        });
        let service = serde_json::from_value(service).expect("a Service");
        services.create(&PostParams::default(), &service).await.expect("valid");
        let path = format!(
            "/api/v1/namespaces/{}/services/http:nobody:8000/proxy/v1/models",
            self.namespace
        );
        // 404 until a controller has written down that there are none.
        let answered = async {
            loop {
                let request = http::Request::get(&path)
                    .body(kube::client::Body::empty())
                    .expect("a request");
                match self.client.send(request).await.expect("an answer").status().as_u16() {
                    404 => tokio::time::sleep(Duration::from_millis(100)).await,
                    code => break code,
                }
            }
        };
        let code = tokio::time::timeout(Duration::from_secs(30), answered).await;
        assert_eq!(code, Ok(503));
    }
}
