//! Helm and kustomize, built by the lab's wrappers, and what they make of the chart and of `config/`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perfval_lab::programs::{self, Family, HELM, KUBERNETES, KUSTOMIZE};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::files::CHART;

/// The name and the namespace of the manifests under `config/`.
pub const RELEASE: &str = "perfvalidation-operator";
/// See [`RELEASE`].
pub const NAMESPACE: &str = "perfvalidation-system";

/// The root of the checkout, from the folder of the package, where `cargo test` runs a test. Not `env!`: one target folder
/// serves many checkouts.
pub fn repository() -> PathBuf {
    PathBuf::from("../..")
}

/// The objects that the chart gives for these values; `Err` holds what helm complained about.
///
/// # Errors
/// If helm refuses the values.
///
/// # Panics
/// If there is no helm, or what it prints is no YAML.
pub fn chart(values: &Value) -> Result<Vec<Value>, String> {
    release(RELEASE, NAMESPACE, values)
}

/// The same for a release of another name.
///
/// # Errors
/// If helm refuses the values.
///
/// # Panics
/// If there is no helm, or what it prints is no YAML.
pub fn release(name: &str, namespace: &str, values: &Value) -> Result<Vec<Value>, String> {
    template(&repository().join(CHART), name, namespace, &[], values)
}

/// The objects of the chart with a value of the command line, as `--set` takes it.
///
/// # Errors
/// If helm refuses the value.
pub fn with_set(value: &str) -> Result<Vec<Value>, String> {
    let chart = repository().join(CHART);
    template(&chart, RELEASE, NAMESPACE, &["--set", value], &json!({}))
}

/// The objects of the chart for a cluster of this version of Kubernetes.
///
/// # Errors
/// If helm refuses the version.
pub fn for_kubernetes(version: &str) -> Result<Vec<Value>, String> {
    let chart = repository().join(CHART);
    template(&chart, RELEASE, NAMESPACE, &["--kube-version", version], &json!({}))
}

/// The objects of a published chart, whose list of images contains this digest for each of them.
///
/// # Errors
/// If helm refuses the values.
///
/// # Panics
/// If the chart cannot be copied.
pub fn published(digest: &str, values: &Value) -> Result<Vec<Value>, String> {
    let copy = copied();
    let chart = copy.path().join("chart");
    let file = chart.join("Chart.yaml");
    let text = std::fs::read_to_string(&file).expect("Chart.yaml");
    let digest = format!("@{digest}");
    let lines = text.lines().map(|line| {
        let is_ours = line.contains(" image: ghcr.io/perfvalidation/");
        let end = if is_ours { &*digest } else { "" };
        format!("{line}{end}\n")
    });
    let pinned: String = lines.collect();
    std::fs::write(&file, pinned).expect("write Chart.yaml");
    template(&chart, RELEASE, NAMESPACE, &[], values)
}

/// The objects of a parent chart that has this one under the condition `enabled`.
///
/// # Errors
/// If helm refuses the values.
///
/// # Panics
/// If the chart cannot be copied.
pub fn parent(values: &Value) -> Result<Vec<Value>, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = copied();
    let charts = folder.path().join("charts");
    std::fs::create_dir(&charts).expect("a folder");
    std::fs::rename(copy.path().join("chart"), charts.join(RELEASE)).expect("the chart moves");
    let dependency = json!({"name": RELEASE, "version": "*-0", "condition": format!("{RELEASE}.enabled")});
    let chart = json!({"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": [dependency]});
    std::fs::write(folder.path().join("Chart.yaml"), chart.to_string()).expect("write Chart.yaml");
    template(folder.path(), RELEASE, NAMESPACE, &[], &json!({RELEASE: values}))
}

fn template(chart: &Path, name: &str, namespace: &str, flags: &[&str], values: &Value) -> Result<Vec<Value>, String> {
    let chart = chart.to_string_lossy();
    let arguments = ["template", name, &chart, "--namespace", namespace, "--values", "-"];
    // Of two versions the last one counts.
    let version = ["--kube-version", KUBERNETES];
    helm(&[&arguments[..], &version, flags].concat(), values).map(|text| parsed(&text))
}

/// A temporary folder with a copy of the chart in `chart`.
fn copied() -> TempDir {
    let copy = tempfile::tempdir().expect("a temporary folder");
    let status = Command::new("cp")
        .arg("-r")
        .arg(repository().join(CHART))
        .arg(copy.path().join("chart"))
        .status();
    assert!(status.expect("cp starts").success(), "the chart is copied");
    copy
}

/// Lints the chart with these values.
///
/// # Errors
/// If helm finds something, be it a warning.
///
/// # Panics
/// If there is no helm.
pub fn lint(values: &Value) -> Result<String, String> {
    let chart = repository().join(CHART);
    let chart = chart.to_string_lossy();
    let arguments = ["lint", &chart, "--strict", "--values", "-"];
    helm(&[&arguments[..], &["--kube-version", KUBERNETES]].concat(), values)
}

/// The notes that an installation ends with. Helm prints them after a real one only: here they become a field of an object.
///
/// # Panics
/// If the chart cannot be copied or rendered.
pub fn notes(values: &Value) -> String {
    let copy = copied();
    let folder = copy.path().join("chart");
    let notes = std::fs::read_to_string(folder.join("templates/NOTES.txt")).expect("the chart has notes");
    for (file, text) in [
        ("_notes.tpl", format!("{{{{ define \"notes\" }}}}{notes}{{{{ end }}}}")),
        ("notes.yaml", "notes: {{ include \"notes\" . | quote }}\n".to_owned()),
    ] {
        std::fs::write(folder.join("templates").join(file), text).expect("write the template");
    }
    let only = ["--show-only", "templates/notes.yaml"];
    let objects = template(&folder, RELEASE, NAMESPACE, &only, values).expect("the notes are rendered");
    objects[0]["notes"].as_str().expect("a text").to_owned()
}

/// The objects of a kustomization.
///
/// # Panics
/// If kustomize refuses it.
pub fn kustomization(folder: &Path) -> Vec<Value> {
    let output = Command::new(program(&KUSTOMIZE))
        .arg("build")
        .arg(folder)
        .output()
        .expect("kustomize starts");
    assert!(
        output.status.success(),
        "{}: {}",
        folder.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    parsed(&String::from_utf8_lossy(&output.stdout))
}

/// The objects of `config/default` with these components.
///
/// # Panics
/// If kustomize refuses it.
pub fn with_components(components: &[&str]) -> Vec<Value> {
    let overlay = tempfile::tempdir().expect("a temporary folder");
    let config = repository().join("config").canonicalize().expect("the config folder");
    let here = overlay.path().canonicalize().expect("the temporary folder");
    // kustomize takes no absolute paths.
    let up = "../".repeat(here.components().count() - 1);
    let config = format!("{up}{}", config.strip_prefix("/").expect("an absolute path").display());
    let components: Vec<_> = components
        .iter()
        .map(|name| format!("{config}/components/{name}"))
        .collect();
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [format!("{config}/default")],
        "components": components,
    });
    std::fs::write(here.join("kustomization.yaml"), kustomization.to_string()).expect("write the overlay");
    self::kustomization(&here)
}

fn helm(arguments: &[&str], values: &Value) -> Result<String, String> {
    let mut child = Command::new(program(&HELM))
        .args(arguments)
        .env("KUBECONFIG", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("helm starts");
    let given = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(values.to_string().as_bytes());
    given.expect("helm reads the values");
    let output = child.wait_with_output().expect("helm ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stdout) + &text(&output.stderr))
    }
}

/// A program of the lab's cache; the first use on a machine builds it.
fn program(family: &Family) -> PathBuf {
    let folder = programs::build(family, &mut |text| eprintln!("{text}"));
    folder
        .unwrap_or_else(|error| panic!("{}: {error}", family.name))
        .join(family.name)
}

fn parsed(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    documents.into_iter().filter(|object| !object.is_null()).collect()
}
