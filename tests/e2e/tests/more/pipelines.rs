//! The examples for pipelines: their own scripts, in a shell as the tool starts it, with an account that has the rights
//! that the page names and no others.

use std::path::{Path, PathBuf};
use std::time::Duration;

use perfval_e2e::{Lab, Validation, config, quick};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::e2e::plugin::folder as of_the_programs;
use crate::ready;

/// Longest that a script may take.
const SCRIPT: Duration = Duration::from_mins(10);

#[tokio::test]
#[ignore = "needs the lab: just e2e-all"]
async fn the_scripts_of_the_pipelines_end_as_the_verdict_and_keep_its_report() {
    let (lab, _operator) = ready().await;
    let namespace = lab.namespace("e2e-pipelines").await;
    let job = Job::in_namespace(&lab, &namespace).await;

    // GitLab: a gate that nothing meets.
    let gitlab = example("gitlab-ci.yaml");
    let mut manifest = quick("gitlab", &namespace);
    manifest["spec"]["gates"][0]["threshold"] = json!("1000000");
    job.commit(&manifest);
    let script = lines(&gitlab["validate-gpus"]["script"]);
    assert_eq!(job.runs(&["sh", "-e", "-c", &script], &[]).await, 1, "Failed");
    let report = job.path("report");
    is_report_of(&report, "Failed", &["verdict", "throughput", "ttft-p99", "trial 1"]);
    let reports = &gitlab["validate-gpus"]["artifacts"]["reports"];
    for kind in ["junit", "metrics"] {
        let named = reports[kind].as_str().expect("a path");
        assert!(job.path(named).exists(), "no {named}");
    }

    // GitHub: no gates, so nothing to judge. Each step is a script of its own, and the last ones run always.
    std::fs::remove_dir_all(&report).expect("a job begins without a report");
    let mut manifest = quick("github", &namespace);
    manifest["spec"]["gates"] = json!([]);
    job.commit(&manifest);
    let github = example("github-actions.yaml");
    let step = |name: &str| {
        let steps = github["jobs"]["gpus"]["steps"].as_array().expect("steps");
        let step = steps.iter().find(|step| step["name"] == name).expect(name);
        step["run"].as_str().expect("a script").to_owned()
    };
    let kubeconfig = job.path(".kubeconfig").to_string_lossy().into_owned();
    let summary = job.path("summary").to_string_lossy().into_owned();
    let secret = std::fs::read_to_string(job.path("kubeconfig")).expect("a kubeconfig");
    let variables = [
        ("KUBECONFIG", kubeconfig.as_str()),
        ("KUBECONFIG_DATA", secret.as_str()),
        ("GITHUB_STEP_SUMMARY", summary.as_str()),
    ];
    for name in ["Kubeconfig", "Validate", "Summary"] {
        let script = step(name);
        let shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", &script];
        assert_eq!(job.runs(&shell, &variables).await, 0, "{name}");
    }
    is_report_of(&report, "Skipped", &["verdict"]);
    let shown = std::fs::read_to_string(&summary).expect("the job's page");
    assert!(shown.contains("Skipped"), "{shown}");
    job.runs(&["sh", "-e", "-c", &step("Forget the kubeconfig")], &variables)
        .await;
    assert!(!Path::new(&kubeconfig).exists(), "the kubeconfig is forgotten");

    // Tekton: an image that is nowhere.
    let mut manifest = quick("tekton", &namespace);
    manifest["spec"]["workload"]["dynamo"]["image"] = json!("localhost/no-such:1.4.2");
    job.commit(&manifest);
    let task = example("tekton.yaml");
    let script = task["spec"]["steps"][0]["script"].as_str().expect("a script");
    let (workspace, verdict) = (job.path("workspace"), job.path("verdict"));
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let (workspace, verdict) = (path(&workspace), path(&verdict));
    let variables = [
        ("MANIFEST", "validation/perfvalidation.yaml"),
        ("REPORT", &workspace),
        ("VERDICT", &verdict),
    ];
    assert_eq!(job.runs(&["sh", "-c", script], &variables).await, 4, "Error");
    let result = std::fs::read_to_string(&verdict).expect("the task's result");
    assert_eq!(result, "Error");
    is_report_of(Path::new(&workspace), "Error", &["verdict"]);

    // Argo Workflows: the container's command, where its artifacts would be mounted.
    let mut manifest = quick("argo", &namespace);
    manifest["spec"]["gates"] = json!([]);
    job.commit(&manifest);
    let template = example("argo-workflows.yaml");
    let container = &template["spec"]["templates"][1]["container"];
    let words = [&container["command"], &container["args"]].map(|words| words.as_array().expect("words").clone());
    let mounted = path(&job.path("validation"));
    let words: Vec<String> = words
        .concat()
        .iter()
        .map(|word| word.as_str().expect("a word").replace("/validation", &mounted))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(job.runs(&words, &[]).await, 0, "Skipped");
    is_report_of(&job.path("validation/report"), "Skipped", &["verdict"]);

    for name in ["gitlab", "github", "tekton", "argo"] {
        Validation::existing(&lab, &namespace, name).delete().await;
    }
}

/// The first document of an example.
fn example(name: &str) -> Value {
    let path = format!("{}/pipelines/{name}", config());
    let text = std::fs::read_to_string(path).expect("an example");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
    documents.into_iter().next().expect("a document")
}

/// A script that is written as a list of lines.
fn lines(script: &Value) -> String {
    let lines = script.as_array().expect("lines").iter();
    lines.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// Where a pipeline's job runs: its checkout, and a kubeconfig of its account.
struct Job(TempDir);

impl Job {
    /// With the rights of `docs/pipelines.md`.
    async fn in_namespace(lab: &Lab, namespace: &str) -> Self {
        let allow = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        let name = |kind: &str, group: &str| {
            json!({"apiVersion": format!("{group}v1"), "kind": kind,
            "metadata": {"name": "pipeline", "namespace": namespace}})
        };
        let mut role = name("Role", "rbac.authorization.k8s.io/");
        role["rules"] = json!([
            allow(
                "perfvalidation.dev",
                "perfvalidations",
                &["create", "get", "list", "watch", "patch"]
            ),
            allow("", "configmaps", &["get"]),
        ]);
        let mut binding = name("RoleBinding", "rbac.authorization.k8s.io/");
        binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pipeline"});
        binding["subjects"] = json!([{"kind": "ServiceAccount", "name": "pipeline", "namespace": namespace}]);
        for object in [name("ServiceAccount", ""), role, binding] {
            lab.apply(&object).await;
        }
        let token = lab.kubectl(&["create", "token", "pipeline", "-n", namespace]).await;
        let config = lab
            .kubectl(&["config", "view", "--raw", "--minify", "-o", "json"])
            .await;
        let mut config: Value = serde_json::from_str(&config).expect("a kubeconfig");
        config["users"][0]["user"] = json!({"token": token.trim()});
        let desk = tempfile::tempdir().expect("a folder");
        std::fs::write(desk.path().join("kubeconfig"), config.to_string()).expect("written");
        Self(desk)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Puts the manifest where the examples expect it.
    fn commit(&self, manifest: &Value) {
        std::fs::create_dir_all(self.path("validation")).expect("a folder");
        std::fs::write(self.path("validation/perfvalidation.yaml"), manifest.to_string()).expect("written");
    }

    /// Runs a command in the checkout; its exit code.
    async fn runs(&self, words: &[&str], variables: &[(&str, &str)]) -> i32 {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .current_dir(self.0.path())
            .env("PATH", format!("{}:{path}", of_the_programs().display()))
            .env("KUBECONFIG", self.path("kubeconfig"))
            .envs(variables.iter().copied());
        let output = tokio::time::timeout(SCRIPT, command.kill_on_drop(true).output()).await;
        let output = output
            .unwrap_or_else(|_| panic!("{words:?} does not end"))
            .expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        println!(
            "$ {}\n{}{}({:?})\n",
            words[words.len() - 1].trim(),
            text(&output.stdout),
            text(&output.stderr),
            output.status
        );
        output.status.code().expect("an exit code")
    }
}

/// The files that pipelines read say this verdict, and have these cases.
pub fn is_report_of(folder: &Path, verdict: &str, cases: &[&str]) {
    let read =
        |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let good = ["Passed", "Skipped"].contains(&verdict);
    let page = read("report.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains(verdict), "{page}");
    let summary = read("summary.md");
    let title = summary.lines().next().unwrap_or_default();
    assert!(title.starts_with("## ") && title.ends_with(verdict), "{title}");

    let ctrf: Value = serde_json::from_str(&read("ctrf-report.json")).expect("JSON");
    let tests = ctrf["results"]["tests"].as_array().expect("tests");
    let names: Vec<&str> = tests.iter().filter_map(|test| test["name"].as_str()).collect();
    assert_eq!(names, cases);
    assert_eq!(tests[0]["rawStatus"], verdict);
    assert_eq!(
        ctrf["results"]["summary"]["failed"] == 0,
        good,
        "{}",
        ctrf["results"]["summary"]
    );

    let junit = read("junit.xml");
    assert_eq!(junit.matches("<testcase ").count(), cases.len(), "{junit}");
    let complains = junit.contains("<failure") || junit.contains("<error");
    assert_eq!(!complains, good, "{junit}");

    let metrics = read("metrics.openmetrics.txt");
    let verdicts: Vec<&str> = metrics
        .lines()
        .filter(|line| line.starts_with("perfvalidation_last_verdict{") && line.ends_with(" 1.0"))
        .collect();
    assert!(
        verdicts.len() == 1 && verdicts[0].contains(&format!("verdict=\"{verdict}\"")),
        "{metrics}"
    );
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
}
