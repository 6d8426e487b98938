//! Answers of a real API server that a kinder one would not give.

use http::{Request, header};
use serde_json::{Value, json};

use super::ApiServer;
use super::service::Answer;

const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const OURS: &str = "/apis/perfvalidation.dev/v1alpha1/perfvalidations";
const MAPS: &str = "/api/v1/namespaces/n/configmaps";

fn send(server: &ApiServer, method: &str, path: &str, content: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(header::CONTENT_TYPE, content).body(());
    let (head, ()) = request.expect("well-formed").into_parts();
    match server.answer(&head, body.to_string().as_bytes()) {
        Answer::Json(code, answer) => (code, answer),
        _ => panic!("{method} {path} is not answered in JSON"),
    }
}

fn get(server: &ApiServer, path: &str) -> (u16, Value) {
    send(server, "GET", path, "", &Value::Null)
}

fn put_map(server: &ApiServer, finalizers: &Value) {
    server.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n", "finalizers": finalizers},
    }));
}

#[test]
fn items_of_built_in_kinds_have_no_kind() {
    let server = ApiServer::new();
    put_map(&server, &json!([]));
    server.put(json!({
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidation",
        "metadata": {"name": "a", "namespace": "n"}, "spec": {},
    }));
    assert_eq!(get(&server, MAPS).1["items"][0]["kind"], Value::Null);
    assert_eq!(get(&server, OURS).1["items"][0]["kind"], "PerfValidation");
}

#[test]
fn an_apply_with_a_uid_creates_nothing() {
    let server = ApiServer::new();
    let apply = |uid: Option<&str>| {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "uid": uid}});
        send(&server, "PATCH", &format!("{MAPS}/c?fieldManager=m"), APPLY, &body).0
    };
    assert_eq!(apply(Some("u")), 409);
    assert_eq!(apply(None), 200);
}

#[test]
fn a_lease_is_not_replaced_without_a_version() {
    let server = ApiServer::new();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": "n"},
    });
    let stored = server.put(lease.clone());
    let replace = |with: &Value| {
        let path = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l";
        send(&server, "PUT", path, "application/json", with).0
    };
    assert_eq!(replace(&lease), 422);
    assert_eq!(replace(&stored), 200);
}

#[test]
fn an_object_that_is_being_deleted_gets_no_new_finalizer() {
    let server = ApiServer::new();
    put_map(&server, &json!(["others.example/hold"]));
    server.delete("configmaps", "n", "c");
    let set = |finalizers: Value| {
        let body = json!({"metadata": {"labels": {"a": "b"}, "finalizers": finalizers}});
        send(&server, "PATCH", &format!("{MAPS}/c"), MERGE, &body).0
    };
    assert_eq!(set(json!(["others.example/hold", "others.example/more"])), 422);
    assert_eq!(set(json!(["others.example/hold"])), 200);
}
