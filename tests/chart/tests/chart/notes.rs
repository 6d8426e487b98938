//! The notes name the next command, and that command works.

use perfval_api::admission::Admission;
use perfval_chart::render::notes;
use serde_json::{Value, json};

/// The manifest in the notes.
fn manifest(notes: &str) -> Value {
    let (_, rest) = notes.split_once("<<END\n").expect("a manifest");
    let (text, _) = rest.split_once("\nEND\n").expect("its end");
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_manifest_in_the_notes_is_admitted() {
    let notes = notes(&json!({}));
    let refusals = Admission::new().expect("well-formed").admit(&manifest(&notes));
    assert!(refusals.is_ok(), "{refusals:?}");
}

#[test]
fn they_name_the_namespace_that_is_looked_after() {
    let everywhere = notes(&json!({}));
    assert!(everywhere.contains("in all namespaces"), "{everywhere}");
    assert!(everywhere.contains("kubectl create namespace perf\n"), "{everywhere}");
    let allow = "kubectl create rolebinding perfvalidation -n perf --clusterrole perfvalidation-operator-runs \
                 --serviceaccount perfvalidation-system:perfvalidation-operator\n";
    assert!(everywhere.contains(allow), "{everywhere}");
    for values in [json!({"runNamespaces": ["*"]}), json!({"runNamespaces": ["perf"]})] {
        assert!(!notes(&values).contains("create rolebinding"), "{values}");
    }
    let named = notes(&json!({"watchNamespaces": ["team-a", "team-b"]}));
    assert!(named.contains("in team-a, team-b"), "{named}");
    assert!(named.contains("kubectl apply -n team-a"), "{named}");
    assert!(!named.contains("create namespace"), "the namespaces exist: {named}");
    for namespace in ["team-a", "team-b"] {
        let removal = format!("kubectl delete perfvalidations --all -n {namespace}\n");
        assert!(named.contains(&removal), "{named}");
    }
}

/// The plug-in looks in `perfvalidation-system`, unless a flag sets another one.
#[test]
fn they_name_the_operators_namespace_where_it_is_another() {
    let here = notes(&json!({}));
    assert!(here.contains("kubectl perfval doctor -n perf\n"), "{here}");
    let elsewhere = notes(&json!({"namespaceOverride": "gpu-ops"}));
    let doctor = "kubectl perfval doctor -n perf --operator-namespace gpu-ops\n";
    assert!(elsewhere.contains(doctor), "{elsewhere}");
}

#[test]
fn the_notes_show_what_uninstalling_leaves() {
    assert!(notes(&json!({})).contains("kubectl delete crd"));
    assert!(!notes(&json!({"crds": {"keep": false}})).contains("kubectl delete crd"));
    let namespaced = notes(&json!({"watchNamespaces": ["perf"]}));
    assert!(
        namespaced.contains("before you uninstall or delete a namespace, because"),
        "{namespaced}"
    );
    let unbind = "kubectl delete rolebinding perfvalidation -n perf";
    assert!(notes(&json!({})).contains(unbind));
    assert!(!notes(&json!({"runNamespaces": ["perf"]})).contains(unbind));
}
