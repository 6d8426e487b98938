//! A person with no other right than to create `PerfValidation`s, in a namespace with Pod Security `restricted` and the
//! shipped limits for tenants, where an administrator allows runs while the first one waits.

use std::time::Duration;

use perfval_api::{Phase, Verdict};
use perfval_e2e::{Lab, Validation, config, eventually, quick};
use serde_json::{Value, json};

use crate::ready;

const TENANT: &str = "tenant";
const ROLE: &str = "perfvalidation-operator-edit";
/// The API server notices policies and bindings after a while.
const NOTICED: Duration = Duration::from_secs(30);

/// A run within the limits; its pods ask for what `restricted` requires, as docs/security.md shows.
fn within_the_limits(name: &str, namespace: &str) -> Value {
    let mut manifest = quick(name, namespace);
    let spec = &mut manifest["spec"];
    spec["placement"]["nodeSelector"] = json!({"perfvalidation.dev/pool": "validation"});
    spec["timeouts"]["total"] = json!("30m");
    spec["podTemplate"]["spec"]["securityContext"] = json!({
        "runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"},
    });
    spec["podTemplate"]["spec"]["containerSecurityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    manifest
}

/// The namespace, its limits, and the only right of the tenant.
async fn prepare(lab: &Lab, name: &str) -> String {
    let namespace = lab.namespace_without_runs(name).await;
    for folder in ["users", "policies"] {
        let folder = format!("{}/{folder}", config());
        lab.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &folder])
            .await;
    }
    lab.apply(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": TENANT, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": TENANT}],
    }))
    .await;
    // Names of the lab's images begin with `localhost`.
    let registries = r#"--patch={"data":{"registries":"localhost\n"}}"#;
    for arguments in [
        vec![
            "patch",
            "configmap",
            "perfvalidation-operator-limits",
            "-n",
            "perfvalidation-system",
            "--type=merge",
            registries,
        ],
        vec![
            "label",
            "nodes",
            "--all",
            "--overwrite",
            "perfvalidation.dev/pool=validation",
        ],
        vec![
            "label",
            "namespace",
            &namespace,
            "pod-security.kubernetes.io/enforce=restricted",
            "perfvalidation.dev/limits=enforced",
        ],
    ] {
        lab.kubectl(&arguments).await;
    }
    namespace
}

/// Gives the operator another environment. No network plug-in enforces policies here.
async fn set_operator_variable(lab: &Lab, variable: &str) {
    let operator = "deployment/perfvalidation-operator";
    for arguments in [
        &["set", "env", operator, variable][..],
        &["rollout", "status", operator, "--timeout=60s"],
    ] {
        lab.kubectl(&[arguments, &["-n", "perfvalidation-system"]].concat())
            .await;
    }
}

/// Runs kubectl as the tenant.
async fn as_tenant(lab: &Lab, arguments: &[&str]) -> Result<String, String> {
    lab.try_kubectl(&[arguments, &["--as", TENANT]].concat()).await
}

async fn create(lab: &Lab, manifest: &Value) -> Result<String, String> {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), manifest.to_string()).expect("write the manifest");
    as_tenant(lab, &["create", "-f", &file.path().to_string_lossy()]).await
}

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn a_tenant_measures_in_a_restricted_namespace_within_the_limits() {
    let (lab, _operator) = ready().await;
    let namespace = prepare(&lab, "e2e-tenant").await;
    set_operator_variable(&lab, "PERFVAL_RUN_NETWORK_POLICY=[]").await;
    for resource in [
        "pods",
        "jobs.batch",
        "configmaps",
        "secrets",
        "dynamographdeployments.nvidia.com",
    ] {
        for verb in ["create", "get"] {
            let ask = [verb, resource, "-n", &namespace, "--as", TENANT];
            assert!(!lab.can_i(&ask).await, "the tenant may {verb} {resource}");
        }
    }

    let mut beyond = within_the_limits("beyond", &namespace);
    beyond["spec"]["placement"]["maxGPUs"] = json!(9);
    eventually("nine GPUs are refused", NOTICED, || async {
        match create(&lab, &beyond).await {
            Err(said) if said.contains("maxGPUs") => Ok(()),
            Err(said) => Err(said),
            Ok(_) => {
                as_tenant(&lab, &["delete", "perfval", "beyond", "-n", &namespace]).await?;
                Err("it is admitted".to_owned())
            }
        }
    })
    .await;

    create(&lab, &within_the_limits("within", &namespace))
        .await
        .expect("it is admitted");
    let run = Validation::existing(&lab, &namespace, "within");
    run.until("it waits for the administrator", |status| {
        let message = status.message.as_deref().unwrap_or_default();
        message.contains("the operator may create nothing")
    })
    .await;
    lab.allow_runs(&namespace).await;
    let policies = ["get", "networkpolicies", "-n", &namespace, "-o", "name"];
    run.until("it is measured", |status| status.phase == Some(Phase::Benchmarking))
        .await;
    assert_eq!(
        lab.kubectl(&policies).await.lines().count(),
        1,
        "a NetworkPolicy of its own"
    );
    run.ends(Verdict::Passed).await;
    run.left_nothing().await;
    set_operator_variable(&lab, "PERFVAL_RUN_NETWORK_POLICY-").await;
    as_tenant(&lab, &["delete", "perfval", "within", "-n", &namespace])
        .await
        .expect("the tenant deletes it");

    // Without the security context the namespace refuses Dynamo's pods, and the run says so.
    let mut unrestricted = within_the_limits("unrestricted", &namespace);
    let pods = unrestricted["spec"]["podTemplate"]["spec"]
        .as_object_mut()
        .expect("fields");
    pods.retain(|field, _| field == "imagePullPolicy");
    create(&lab, &unrestricted).await.expect("the limits do not ask for it");
    let run = Validation::existing(&lab, &namespace, "unrestricted");
    let status = run.ends(Verdict::Error).await;
    let message = status.message.clone().unwrap_or_default();
    assert_eq!(status.reason.as_deref(), Some("Refused"), "{message}");
    assert!(message.contains("PodSecurity"), "{message}");
    run.left_nothing().await;
    run.delete().await;
}
