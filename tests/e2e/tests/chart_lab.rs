//! The life of an installation on the real cluster: nothing is lost on the way, and nothing is left at the end.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use perfval_api::{PerfValidationStatus, Phase, Verdict};
use perfval_e2e::release::{Helm, NAMESPACE, RELEASE};
use perfval_e2e::{Lab, Operator, Validation, config, eventually, quick};
use tempfile::TempDir;

const CRD: &str = "perfvalidations.perfvalidation.dev";
/// A column of the CRD, and its name in an earlier version of it.
const COLUMN: (&str, &str) = ("TOK/S", "TOKENS/S");

fn project(folder: &str) -> PathBuf {
    PathBuf::from(config()).with_file_name(folder)
}

fn chart() -> PathBuf {
    project("charts").join(RELEASE)
}

/// The chart as it was before a column of the CRD was renamed.
fn earlier_chart() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join(RELEASE);
    let copied = Command::new("cp").arg("-r").arg(chart()).arg(&copy).status();
    assert!(copied.expect("cp starts").success());
    let crd = copy.join("files/crds/perfvalidations.yaml");
    let (now, before) = COLUMN;
    let text = fs::read_to_string(&crd).expect("the chart has the CRD");
    let changed = text.replace(&format!("name: {now}\n"), &format!("name: {before}\n"));
    assert_ne!(text, changed, "the CRD has no column {now}");
    fs::write(crd, changed).expect("write the CRD");
    (folder, copy)
}

async fn columns(lab: &Lab) -> String {
    let path = "jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}";
    lab.kubectl(&["get", "crd", CRD, "-o", path]).await
}

fn is_first_run(status: &PerfValidationStatus) {
    assert_eq!(
        status.run.as_ref().map(|run| run.number),
        Some(1),
        "the same run goes on"
    );
    assert_eq!(
        status.state.trials.len(),
        1,
        "no trial is repeated: {:?}",
        status.state.trials
    );
}

/// Nothing of an installation by another test, or of one that failed.
async fn bare_lab() -> Lab {
    let lab = Lab::connect().await;
    // While an operator is still there to release them; without the definition there are none.
    let _ = lab
        .try_kubectl(&["delete", "perfvalidations", "--all", "-A", "--timeout=120s"])
        .await;
    lab.kubectl(&["delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=120s"])
        .await;
    lab.kubectl(&["delete", "crd", CRD, "--ignore-not-found", "--timeout=120s"])
        .await;
    for kind in ["clusterroles", "clusterrolebindings", "roles", "rolebindings"] {
        let ours = ["-A", "-l", "app.kubernetes.io/part-of=perfvalidation-operator"];
        lab.kubectl(&[&["delete", kind][..], &ours].concat()).await;
    }
    lab
}

#[tokio::test]
#[ignore = "needs the lab: just chart-lab"]
async fn upgrade_and_rollback_lose_no_run_and_uninstalling_leaves_nothing() {
    let lab = bare_lab().await;
    let helm = Helm::new(&lab).await;
    let (_folder, earlier) = earlier_chart();
    // As the chart's README allows a namespace.
    let namespace = lab.namespace_without_runs("chart").await;
    helm.install(&earlier, &["runNamespaces={chart}"]).await;
    helm.test().await;
    assert!(columns(&lab).await.contains(COLUMN.1));

    let upgraded = Validation::create(&lab, quick("upgraded", &namespace)).await;
    upgraded.phase(Phase::WaitingForReady).await;
    helm.upgrade(&chart(), &["runNamespaces={chart}", "replicas=2", "log.level=debug"])
        .await;
    assert!(columns(&lab).await.contains(COLUMN.0), "an upgrade brings the new CRD");
    is_first_run(&upgraded.ends(Verdict::Passed).await);

    let rolled_back = Validation::create(&lab, quick("rolled-back", &namespace)).await;
    rolled_back.phase(Phase::Benchmarking).await;
    helm.roll_back().await;
    assert!(
        columns(&lab).await.contains(COLUMN.1),
        "a rollback brings the CRD of before"
    );
    is_first_run(&rolled_back.ends(Verdict::Passed).await);
    helm.test().await;

    let before = upgraded.get().await.expect("it outlived both");
    assert_eq!(before.status.and_then(|status| status.verdict), Some(Verdict::Passed));
    upgraded.delete().await;
    rolled_back.delete().await;
    assert_eq!(helm.uninstall().await, Vec::<String>::new());
    assert!(
        columns(&lab).await.contains(COLUMN.1),
        "the CRD is kept, and every object with it"
    );
    lab.kubectl(&["delete", "crd", CRD, "--timeout=60s"]).await;
}

#[tokio::test]
#[ignore = "needs the lab: just chart-lab"]
async fn a_release_for_one_namespace_works_there_and_may_do_nothing_elsewhere() {
    let lab = bare_lab().await;
    let helm = Helm::new(&lab).await;
    let namespace = lab.namespace_without_runs("chart-here").await;
    helm.install(&chart(), &[&format!("watchNamespaces={{{namespace}}}")])
        .await;
    works_only_in(&lab, &namespace).await;
    assert_eq!(helm.uninstall().await, Vec::<String>::new());
    lab.kubectl(&["delete", "crd", CRD, "--timeout=60s"]).await;
}

#[tokio::test]
#[ignore = "needs the lab: just chart-lab"]
async fn an_installation_by_kustomize_runs_nothing_until_a_namespace_is_allowed() {
    let lab = bare_lab().await;
    let config = project("config").to_string_lossy().into_owned();
    let operator = Operator::install(&lab, &config).await;
    let here = lab.namespace("chart-here").await;
    let elsewhere = lab.namespace_without_runs("chart-elsewhere").await;
    may_act_only_in(&lab, &here, &elsewhere).await;

    let run = Validation::create(&lab, quick("waits", &elsewhere)).await;
    run.until("it waits for the administrator", |status| {
        let message = status.message.as_deref().unwrap_or_default();
        message.contains("may create nothing in namespace chart-elsewhere")
    })
    .await;
    lab.allow_runs(&elsewhere).await;
    is_first_run(&run.ends(Verdict::Passed).await);
    run.delete().await;
    drop(operator);
    let folder = format!("{config}/lab");
    lab.kubectl(&["delete", "-k", &folder, "--timeout=120s"]).await;
}

/// A run there passes, one elsewhere is not looked at, and the API server would not let the operator act elsewhere.
async fn works_only_in(lab: &Lab, namespace: &str) {
    let elsewhere = lab.namespace_without_runs("chart-elsewhere").await;
    let ignored = Validation::create(lab, quick("ignored", &elsewhere)).await;
    let here = Validation::create(lab, quick("here", namespace)).await;
    is_first_run(&here.ends(Verdict::Passed).await);
    // The API server itself gives every object a status, of no generation.
    let seen = ignored
        .status()
        .await
        .map(|status| (status.observed_generation, status.run.is_some()));
    assert_eq!(seen, Ok((-1, false)), "an object of another namespace is left alone");
    may_act_only_in(lab, namespace, &elsewhere).await;
    here.delete().await;
    // It has no finalizer.
    eventually("the ignored one goes at once", Duration::from_secs(30), || async {
        let named = ["perfval", "-n", &elsewhere, "ignored"];
        lab.try_kubectl(&[&["delete", "--ignore-not-found", "--timeout=30s"], &named[..]].concat())
            .await
    })
    .await;
}

/// The API server lets the operator act in one namespace and not in the other.
async fn may_act_only_in(lab: &Lab, namespace: &str, elsewhere: &str) {
    let account = format!("--as=system:serviceaccount:{NAMESPACE}:{RELEASE}");
    for right in [
        &["create", "jobs.batch"][..],
        &["delete", "services"],
        &["patch", "configmaps"],
        &["get", "pods", "--subresource=log"],
    ] {
        let may = async |namespace: &str| {
            let arguments = [right, &["-n", namespace, &account]].concat();
            lab.can_i(&arguments).await
        };
        assert!(may(namespace).await, "{right:?} in {namespace}");
        assert!(!may(elsewhere).await, "{right:?} in {elsewhere}");
    }
}
