//! What `config/policies` refuses and admits, on a real API server.

mod table;

use perfval_e2e::eventually;
use perfval_testkit::admission::{merge, with_spec};
use serde_json::{Value, json};

use crate::{NOTICED, cluster, kubectl, namespace, try_kubectl};

const POLICY: &str = "perfvalidation-operator-limits";
const NO_CLEANUP: &str = "perfvalidation.dev/no-cleanup";

/// A manifest within the limits, changed by a merge patch of its `spec`.
fn manifest(namespace: &str, name: &str, spec: Value) -> Value {
    let mut manifest = with_spec(json!({
        "placement": {"nodeSelector": {"perfvalidation.dev/pool": "validation"}, "maxGPUs": 8},
        "benchmark": {"placement": "WorkloadNode"},
        "timeouts": {"total": "4h"},
    }));
    manifest["metadata"] = json!({"name": name, "namespace": namespace});
    merge(&mut manifest["spec"], spec);
    manifest
}

fn kept(mut manifest: Value) -> Value {
    manifest["metadata"]["annotations"] = json!({NO_CLEANUP: "true"});
    manifest
}

/// The API server's refusal of a manifest; `None` if it admits it.
async fn refusal(manifest: &Value) -> Option<String> {
    let create = ["create", "--dry-run=server", "-f", "-"];
    try_kubectl(&create, &manifest.to_string()).await.err()
}

async fn assert_refused(manifest: &Value, words: &str) {
    let name = manifest["metadata"]["name"].as_str().expect("a name");
    let said = refusal(manifest).await.unwrap_or_else(|| panic!("{name} is accepted"));
    assert!(said.contains(words), "{name}: no {words:?} in {said}");
}

async fn assert_admitted(manifest: &Value) {
    let name = manifest["metadata"]["name"].as_str().expect("a name");
    assert_eq!(refusal(manifest).await, None, "{name}");
}

/// The API server notices policies, bindings and labels after a while.
async fn assert_soon_refused(manifest: &Value, words: &str) {
    eventually(words, NOTICED, async || match refusal(manifest).await {
        Some(said) if said.contains(words) => Ok(()),
        answer => Err(format!("{answer:?}")),
    })
    .await;
}

async fn apply(object: &Value) {
    kubectl(&["apply", "--server-side", "-f", "-"], &object.to_string()).await;
}

/// Installs the policy and its ConfigMap, and gives a namespace this value of the label.
async fn enforce(limited: &str, label: &str) {
    kubectl(&["apply", "--server-side", "-k", "config/policies"], "").await;
    let label = format!("perfvalidation.dev/limits={label}");
    kubectl(&["label", "--overwrite", "namespace", limited, &label], "").await;
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn the_policy_refuses_and_admits_as_documented() {
    const NAMESPACE: &str = "limited";
    cluster().await;
    namespace("perfvalidation-system").await;
    namespace(NAMESPACE).await;
    // An object that is older than the limits and breaks them; an earlier test run may have left the label.
    kubectl(&["label", "namespace", NAMESPACE, "perfvalidation.dev/limits-"], "").await;
    let foreign = json!({"suspend": true, "workload": {"dynamo": {"image": "docker.io/library/busybox:1"}}});
    let mut old = manifest(NAMESPACE, "old", foreign.clone());
    old["metadata"]["annotations"] = json!({"perfvalidation.dev/rerun": "0"});
    eventually("the old object is refused", NOTICED, async || {
        let apply = ["apply", "--server-side", "-f", "-"];
        try_kubectl(&apply, &old.to_string()).await.map(drop)
    })
    .await;
    enforce(NAMESPACE, "enforced").await;
    assert_soon_refused(&manifest(NAMESPACE, "foreign", foreign), "images are limited to").await;

    for (name, spec) in table::admitted() {
        assert_admitted(&manifest(NAMESPACE, name, spec)).await;
    }
    for (name, spec, words) in table::refused() {
        assert_refused(&manifest(NAMESPACE, name, spec), words).await;
    }
    let keeping = manifest(NAMESPACE, "kept", json!({"keptSecondsAfterFinished": 60}));
    assert_refused(&kept(keeping), "leave the annotation perfvalidation.dev/no-cleanup out").await;

    // It can still be annotated, and deleted; a new run has to keep the limits.
    let annotate = |annotation: &'static str| ["annotate", "perfval", "old", "--namespace", NAMESPACE, annotation];
    kubectl(&annotate("example.com/owner=someone"), "").await;
    kubectl(&annotate("perfvalidation.dev/rerun-"), "").await;
    // An empty token requests a run, too.
    for annotation in [
        "perfvalidation.dev/no-cleanup=true",
        "perfvalidation.dev/rerun=1",
        "perfvalidation.dev/rerun=",
    ] {
        let said = try_kubectl(&annotate(annotation), "").await;
        let said = said.expect_err(annotation);
        assert!(said.contains("images are limited to"), "{said}");
    }
    let mut edit = annotate("");
    edit[0] = "patch";
    edit[5] = r#"--patch={"spec":{"suspend":false}}"#;
    let edit = [edit.as_slice(), &["--type=merge"]].concat();
    let said = try_kubectl(&edit, "").await.expect_err("the old image in a new spec");
    assert!(said.contains("images are limited to"), "{said}");
    kubectl(&["delete", "perfval", "old", "--namespace", NAMESPACE], "").await;
}

/// A namespace with a ConfigMap and a binding of its own: the shipped one, changed.
async fn with_parameters(name: &str, change: impl Fn(&mut Value)) {
    cluster().await;
    namespace("perfvalidation-system").await;
    namespace(name).await;
    enforce(name, name).await;
    let read = async |kind: &str, options: &[&str]| {
        let get = [&["get", kind, POLICY, "--output=json"], options].concat();
        let mut object: Value = serde_json::from_str(&kubectl(&get, "").await.0).expect("JSON");
        object["metadata"] = json!({"name": name, "namespace": object["metadata"]["namespace"]});
        object
    };
    let mut parameters = read("configmap", &["--namespace=perfvalidation-system"]).await;
    change(&mut parameters["data"]);
    // An apply would keep parameters of an earlier test run.
    let delete = [
        "delete",
        "configmap",
        name,
        "--namespace=perfvalidation-system",
        "--ignore-not-found",
    ];
    kubectl(&delete, "").await;
    apply(&parameters).await;
    let mut binding = read("validatingadmissionpolicybinding", &[]).await;
    binding["spec"]["paramRef"]["name"] = json!(name);
    binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"] = json!({"perfvalidation.dev/limits": name});
    apply(&binding).await;
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn a_missing_or_malformed_parameter_refuses_everything_and_is_named() {
    const NAMESPACE: &str = "incomplete";
    with_parameters(NAMESPACE, |data| {
        data.as_object_mut().unwrap().remove("maxGPUs");
        data["maxTotalTime"] = json!("four hours");
        data["registries"] = json!("");
    })
    .await;
    let words = "an administrator must repair the ConfigMap perfvalidation-system/incomplete: \
                 write registries (a list), maxGPUs (a number, or all), maxTotalTime (a Go duration, such as 4h)";
    assert_soon_refused(&manifest(NAMESPACE, "plain", json!({})), words).await;
    let delete = ["delete", "configmap", NAMESPACE, "--namespace=perfvalidation-system"];
    kubectl(&delete, "").await;
    assert_soon_refused(&manifest(NAMESPACE, "plain", json!({})), "no params found").await;
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn another_binding_gives_another_namespace_other_limits() {
    const NAMESPACE: &str = "trusted";
    with_parameters(NAMESPACE, |data| {
        data["maxGPUs"] = json!("all");
        data["maxKeptSeconds"] = json!("3600");
        data["tolerationKeys"] = json!("maintenance\n");
        data["claims"] = json!("weights\n");
        data["runtimeClasses"] = json!("nvidia\n");
    })
    .await;
    let keeping = |name: &str, spec: Value| kept(manifest(NAMESPACE, name, spec));
    let words = "write keptSecondsAfterFinished of at most 3600";
    assert_soon_refused(&keeping("kept-for-ever", json!({})), words).await;
    assert_refused(
        &keeping("kept-for-long", json!({"keptSecondsAfterFinished": 3601})),
        words,
    )
    .await;
    assert_admitted(&keeping("kept", json!({"keptSecondsAfterFinished": 3600}))).await;
    for (name, spec) in [
        ("whole-node", json!({"placement": {"maxGPUs": null}})),
        (
            "tolerant",
            json!({"placement": {"tolerations": [{"key": "maintenance", "operator": "Exists"}]}}),
        ),
        (
            "cached",
            json!({"model": {"cache": {"persistentVolumeClaim": {"claimName": "weights"}}}}),
        ),
        (
            "runtime",
            json!({"podTemplate": {"spec": {"runtimeClassName": "nvidia"}}}),
        ),
    ] {
        assert_admitted(&manifest(NAMESPACE, name, spec)).await;
    }
    let tolerant = json!({"placement": {"tolerations": [{"operator": "Exists"}]}});
    let words = "placement.tolerations is limited to the keys maintenance";
    assert_refused(&manifest(NAMESPACE, "all-taints", tolerant), words).await;
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn the_policys_expressions_fit_the_types_of_the_definition() {
    cluster().await;
    namespace("perfvalidation-system").await;
    kubectl(&["apply", "--server-side", "-k", "config/policies"], "").await;
    eventually("its types are not checked", NOTICED, async || {
        let get = ["get", "validatingadmissionpolicy", POLICY, "-o=json"];
        let policy: Value = serde_json::from_str(&kubectl(&get, "").await.0).map_err(|error| error.to_string())?;
        let checked = policy["status"]["observedGeneration"] == policy["metadata"]["generation"];
        let warnings = &policy["status"]["typeChecking"]["expressionWarnings"];
        assert!(warnings.is_null(), "{warnings:#}");
        if checked {
            Ok(())
        } else {
            Err(policy["status"].to_string())
        }
    })
    .await;
}
