//! The kubectl commands of the pages, as they stand there, on an API server with a finished run.

use std::os::unix::fs::symlink;
use std::path::Path;

use perfval_e2e::documentation::pages;
use serde_json::json;
use tokio::process::Command;

use crate::{cluster, kubectl, namespace};

/// What the pages call NAME.
const NAME: &str = "h100-baseline";
const RESULTS: &str = "h100-baseline-3f9a1c07";

/// The run that the pages speak of, over and judged, with its results.
async fn finished_run() {
    for name in ["perf", "team-a", "perfvalidation-system"] {
        namespace(name).await;
    }
    kubectl(&["apply", "-n", "perf", "-f", "config/samples/h100-baseline.yaml"], "").await;
    let status = json!({"status": {
        "observedGeneration": 1, "phase": "Completed", "verdict": "Passed", "reason": "GatesMet", "message": "8/8 GPUs",
        "resultsRef": {"name": RESULTS, "sha256": ""},
        "trials": [{"number": 1, "outcome": "Pass"}],
        "conditions": [{"type": "Complete", "status": "True", "reason": "RunOver", "message": "over",
                        "lastTransitionTime": "2026-11-20T10:00:00Z"}],
    }});
    let patch = [
        "patch",
        "perfval",
        NAME,
        "-n",
        "perf",
        "--subresource=status",
        "--type=merge",
        "-p",
    ];
    kubectl(&[&patch[..], &[&status.to_string()]].concat(), "").await;
    // An empty gzip file.
    let trial = "H4sIAAAAAAAAAwMAAAAAAAAAAAA=";
    let results = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": RESULTS, "namespace": "perf"},
                         "binaryData": {"trial-1.json.gz": trial}});
    kubectl(&["apply", "--server-side", "-f", "-"], &results.to_string()).await;
}

#[tokio::test]
#[ignore = "needs the lab: just admission"]
async fn the_commands_of_the_pages_work() {
    cluster().await;
    finished_run().await;
    let root = std::env::current_dir().expect("the repository's root");
    // Some write files.
    let folder = tempfile::tempdir().expect("a folder");
    symlink(root.join("config"), folder.path().join("config")).expect("a link");
    let mut ran = 0;
    for page in pages(&root).iter().filter(|page| page.is_for_users()) {
        for block in page
            .blocks()
            .iter()
            .filter(|block| block.language == "sh" && block.mark.is_none())
        {
            for command in block
                .commands()
                .iter()
                .filter(|command| command.starts_with("kubectl "))
            {
                let failed = shell(&command.replace("NAME", NAME), folder.path()).await.err();
                assert_eq!(failed, None, "{}:{}: {command}", page.path, block.line);
                ran += 1;
            }
        }
    }
    assert!(ran >= 10, "only {ran} commands were found");
}

async fn shell(command: &str, folder: &Path) -> Result<(), String> {
    let words = ["-euo", "pipefail", "-c", command];
    let output = Command::new("bash")
        .args(words)
        .current_dir(folder)
        .output()
        .await
        .expect("bash");
    let said = || {
        [output.stdout.clone(), output.stderr.clone()]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat()
    };
    if output.status.success() { Ok(()) } else { Err(said()) }
}
