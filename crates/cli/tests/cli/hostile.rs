//! Secrets and characters that reorder a line or control a terminal, in everything that a terminal or an archive shows.

use perfval_testkit::api_server::Fault;
use serde_json::{Value, json};

use super::bundle::bundle;
use super::desk::{Desk, run_id, stored};

const VALUE: &str = "plain-but-secret-value";
const NAMES: [&str; 6] = [
    "SSH_PRIVATE_KEY",
    "LICENSE_KEY",
    "REGISTRY_CREDENTIAL",
    "NGC_APIKEY",
    "DOCKER_AUTH_CONFIG",
    "AZURE_CONNECTION_STRING",
];

/// A finished run whose spec has a secret that a program printed.
fn desk(name: &str) -> Desk {
    let desk = Desk::new();
    let mut object = stored("failed");
    object["spec"]["workload"]["dynamo"]["env"] = json!([{"name": name, "value": VALUE}]);
    let id = run_id(&object);
    desk.server.put(object);
    desk.server.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "w0", "namespace": "perf", "labels": {
            "perfvalidation.dev/name": "run", "perfvalidation.dev/run": id, "perfvalidation.dev/component": "worker",
        }},
        "spec": {"containers": [{"name": "main", "image": "i", "env": [{"name": name, "value": VALUE}]}]},
    }));
    let log = format!("2026-09-21T14:13:33.2Z {name}={VALUE}\n2026-09-21T14:13:34.2Z got \u{202e}{VALUE}\n");
    desk.server.set_log("perf", "w0", "main", log.as_str());
    desk
}

#[tokio::test]
async fn a_value_with_a_secret_name_is_in_no_log_and_no_bundle() {
    for name in NAMES {
        let desk = desk(name);
        let logs = desk.types("logs run").await;
        logs.prints("worker");
        logs.prints("[hidden]");
        assert!(!logs.out.contains(VALUE), "{name}: {}", logs.out);
        assert!(!logs.out.contains('\u{202e}'), "{name}: {}", logs.out);
        for (file, text) in bundle(&desk).await {
            assert!(!text.contains(VALUE), "{name} in {file}: {text}");
        }
    }
}

#[tokio::test]
async fn no_command_prints_a_character_that_reorders_its_line() {
    let mut desk = Desk::new();
    let mut object = stored("failed");
    let hostile = |text: &mut Value| *text = json!("throughput \u{202e}ssim\u{2066} \u{200f}\u{1b}[2J\u{9b}31m\u{7}\r");
    hostile(&mut object["status"]["message"]);
    hostile(&mut object["status"]["placement"]["node"]);
    hostile(&mut object["spec"]["model"]["name"]);
    desk.server.put(object);
    let controls = |letter: char| letter.is_control() && letter != '\n';
    for columns in [None, Some(100)] {
        desk.columns = columns;
        for command in [
            "describe run",
            "get -o wide",
            "history run",
            // It draws once: the run is over.
            "watch run",
            "report run -o markdown",
        ] {
            let answer = desk.types(command).await;
            let shown = format!("{}{}", answer.out, answer.err);
            assert!(!shown.is_empty(), "{command}");
            assert!(!shown.contains(perfval_api::text::reorders), "{command}: {shown:?}");
            assert!(!shown.contains(controls), "{command}: {shown:?}");
        }
    }
    desk.server
        .fail(Fault::refuse("list", "perfvalidations", 503).saying("\u{1b}[2Jbusy"));
    let answer = desk.types("get").await;
    answer.exits(4, "(read PerfValidations):  [2Jbusy; try again");
}
