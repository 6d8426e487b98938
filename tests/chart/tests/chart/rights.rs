//! Who may do what, as rendered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::objects;

const READS: [&str; 3] = ["get", "list", "watch"];

fn words(value: &Value) -> BTreeSet<String> {
    let words = value.as_array().into_iter().flatten();
    words
        .map(|word| word.as_str().expect("well-formed").to_owned())
        .collect()
}

fn rules(object: &Value) -> &[Value] {
    object["rules"].as_array().map_or(&[], Vec::as_slice)
}

/// The operator's `ClusterRoles` that a `ClusterRoleBinding` gives it.
fn bound_everywhere(objects: &BTreeMap<String, Value>) -> Vec<&Value> {
    let bindings = objects.values().filter(|object| object["kind"] == "ClusterRoleBinding");
    bindings
        .map(|binding| {
            &objects[&format!(
                "ClusterRole /{}",
                binding["roleRef"]["name"].as_str().expect("well-formed")
            )]
        })
        .collect()
}

#[test]
fn with_named_namespaces_nothing_may_be_written_elsewhere() {
    let objects = objects(&json!({"watchNamespaces": ["a", "b"]}));
    let bound = bound_everywhere(&objects);
    assert_eq!(bound.len(), 1);
    for rule in bound.iter().flat_map(|role| rules(role)) {
        assert!(
            words(&rule["verbs"]).iter().all(|verb| READS.contains(&verb.as_str())),
            "{rule}"
        );
    }
    for namespace in ["a", "b"] {
        for role in ["watch", "runs"] {
            is_bound_in(&objects, namespace, role);
        }
    }
}

/// A `RoleBinding` there gives the operator the rules of this `ClusterRole`.
fn is_bound_in(objects: &BTreeMap<String, Value>, namespace: &str, role: &str) {
    let name = format!("perfvalidation-operator-{role}");
    let binding = &objects[&format!("RoleBinding {namespace}/{name}")];
    assert_eq!(binding["roleRef"]["kind"], "ClusterRole");
    assert_eq!(binding["roleRef"]["name"], name);
    assert_eq!(binding["subjects"][0]["namespace"], "perfvalidation-system");
    let role = &objects[&format!("ClusterRole /{name}")];
    assert!(
        rules(role).iter().any(|rule| words(&rule["verbs"]).contains("create")),
        "{role}"
    );
}

/// What a `ClusterRoleBinding` lets the operator create or change.
fn written_everywhere(values: &Value) -> BTreeSet<String> {
    let objects = objects(values);
    let bound = bound_everywhere(&objects);
    let all = bound.iter().flat_map(|role| rules(role));
    let writing = all.filter(|rule| words(&rule["verbs"]).iter().any(|verb| !READS.contains(&verb.as_str())));
    writing.flat_map(|rule| words(&rule["resources"])).collect()
}

#[test]
fn by_default_only_its_own_kinds_and_events_are_written() {
    let own = [
        "events",
        "nodeperformances",
        "nodeperformances/status",
        "perfbaselines",
        "perfbaselines/status",
        "perfvalidationpolicies/status",
        "perfvalidations",
        "perfvalidations/status",
    ];
    let own = BTreeSet::from(own.map(str::to_owned));
    assert_eq!(written_everywhere(&json!({})), own);
    let some = json!({"runNamespaces": ["a"]});
    assert_eq!(written_everywhere(&some), own);
    is_bound_in(&objects(&some), "a", "runs");
    let everywhere = written_everywhere(&json!({"runNamespaces": ["*"]}));
    assert!(everywhere.contains("jobs"), "{everywhere:?}");
}

#[test]
fn no_role_reads_secrets_or_holds_a_wildcard() {
    let objects = objects(&json!({"watchNamespaces": ["a"]}));
    let all: Vec<_> = objects.values().flat_map(rules).collect();
    assert!(all.len() > 20, "{}", all.len());
    for rule in all {
        let words: Vec<_> = ["apiGroups", "resources", "verbs"]
            .iter()
            .flat_map(|field| words(&rule[*field]))
            .collect();
        assert!(
            words
                .iter()
                .all(|word| !word.contains('*') && !word.starts_with("secrets")),
            "{rule}"
        );
    }
}

#[test]
fn roles_of_people_extend_roles_of_the_cluster_only_on_request() {
    for role in ["view", "edit", "admin"] {
        let name = format!("ClusterRole /perfvalidation-operator-{role}");
        let labels = objects(&json!({}))[&name]["metadata"]["labels"].to_string();
        assert!(!labels.contains("aggregate-to"), "{labels}");
    }
    let objects = objects(&json!({"rbac": {"aggregate": true}}));
    let joined = |name: &str| {
        let labels = objects[&format!("ClusterRole /perfvalidation-operator-{name}")]["metadata"]["labels"].clone();
        ["view", "edit", "admin"].map(|role| labels[format!("rbac.authorization.k8s.io/aggregate-to-{role}")] == "true")
    };
    assert_eq!(joined("view"), [true, true, true]);
    assert_eq!(joined("edit"), [false, true, true]);
    assert_eq!(joined("admin"), [false, false, true]);
    let view = &objects["ClusterRole /perfvalidation-operator-view"];
    assert!(
        rules(view)
            .iter()
            .all(|rule| words(&rule["verbs"]).iter().all(|verb| READS.contains(&verb.as_str())))
    );
}

#[test]
fn roles_and_account_may_come_from_elsewhere() {
    let objects = objects(&json!({
        "rbac": {"create": false, "aggregate": false},
        "serviceAccount": {"create": false, "name": "theirs"},
    }));
    let kinds: BTreeSet<_> = objects
        .values()
        .map(|object| object["kind"].as_str().expect("well-formed"))
        .collect();
    assert_eq!(
        kinds,
        BTreeSet::from(["CustomResourceDefinition", "Deployment", "Pod", "Service"])
    );
    let deployment = &objects["Deployment perfvalidation-system/perfvalidation-operator"];
    assert_eq!(deployment["spec"]["template"]["spec"]["serviceAccountName"], "theirs");
}

#[test]
fn a_named_account_is_bound() {
    let objects = objects(&json!({"serviceAccount": {"name": "mine", "annotations": {"role": "arn"}}}));
    let account = &objects["ServiceAccount perfvalidation-system/mine"];
    assert_eq!(account["metadata"]["annotations"], json!({"role": "arn"}));
    for binding in objects.values().filter(|object| !object["subjects"].is_null()) {
        assert_eq!(binding["subjects"][0]["name"], "mine", "{binding}");
    }
}
