//! Sources of a report, and its notes about missing parts.

use std::io::Read as _;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use perfval_api::{PerfValidation, Verdict};
use perfval_report::{Export, RunReport};
use perfval_verdict::environment;
use perfval_verdict::frame::Payload;
use perfval_verdict::gate::Share;
use perfval_verdict::node_facts::NodeFacts;
use serde_json::{Value, json};

use super::recorded::{self, Saved};
use super::report;

pub fn export(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../verdict/tests/fixtures");
    std::fs::read(format!("{folder}/{name}")).expect("an export")
}

pub fn asking(rule: &str) -> PerfValidation {
    let spec = json!({
        "model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1"}}, "trials": {"rule": rule},
        "gates": [{"name": "throughput", "metric": "OutputTokenThroughput", "operator": ">=", "threshold": "100", "scaling": "PerGPU"}],
    });
    PerfValidation::new("bare", serde_json::from_value(spec).expect("a spec"))
}

#[test]
fn exports_are_judged_as_the_operator_would() {
    let (good, slow) = (
        export("aiperf-success.json"),
        export("aiperf-slow-worker-round-robin.json"),
    );
    let exports = [("good.json", &good), ("slow.json", &slow)].map(|(name, bytes)| Export {
        name,
        bytes,
        requests: None,
    });
    let share = Some(Share { gpus: 4, node_gpus: 8 });
    let report = RunReport::from_exports(&asking("Sequential"), share, &exports).expect("a report");
    assert_eq!(report.verdict(), Some(Verdict::Passed));
    let page = report.html();
    for text in [
        "good.json",
        "slow.json",
        "Time to first token",
        "aiperf profile",
        "≥ 400",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains("no samples of the workers are in the results"));
    assert!(!page.contains("1970"), "a time that was not recorded is not shown");
    assert!(!report.junit().contains("1970"), "{}", report.junit());
    super::pipelines::against_the_schema(&report.ctrf());

    let single = RunReport::from_exports(&asking("Single"), share, &exports).expect("a report");
    assert!(single.html().contains("1 of 2 exports were judged"));
}

#[test]
fn an_export_that_cannot_be_read_is_shown_and_never_a_pass() {
    let exports = [Export {
        name: "cut.json",
        bytes: b"{\"schema_version\": \"1.4\",",
        requests: None,
    }];
    let report = RunReport::from_exports(&asking("Single"), None, &exports).expect("a report");
    assert_eq!(report.verdict(), Some(Verdict::Error));
    assert!(report.html().contains("export is not valid JSON"), "{}", report.html());
}

/// The results with another payload of the first trial.
pub fn edited(results: &ConfigMap, edit: impl FnOnce(&mut Payload)) -> ConfigMap {
    let mut results = results.clone();
    let trials = results.binary_data.as_mut().expect("trials");
    let ByteString(packed) = trials.get_mut("trial-1.json.gz").expect("a trial");
    let mut text = String::new();
    GzDecoder::new(packed.as_slice())
        .read_to_string(&mut text)
        .expect("a payload");
    let mut payload: Payload = serde_json::from_str(&text).expect("a payload");
    edit(&mut payload);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    serde_json::to_writer(&mut gzip, &payload).expect("JSON");
    *packed = gzip.finish().expect("packed");
    results
}

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// The first thing to compare when two machines with the same GPUs differ.
#[test]
fn the_machine_of_the_load_generator_and_the_commit_that_it_loaded_are_shown() {
    let run = recorded::healthy();
    let node = run.object.status.as_ref().and_then(|status| status.placement.clone());
    let node = node.expect("a placement").node;
    let page = |machine: &str| {
        let results = edited(&run.results, |payload| {
            payload.node = Some(NodeFacts {
                node: machine.to_owned(),
                cpu_model: Some("Intel(R) Xeon(R) Platinum 8480C".to_owned()),
                kernel: Some("6.18.44".to_owned()),
                ..NodeFacts::default()
            });
            payload.record.commit = Some(COMMIT.to_owned());
        });
        RunReport::new(&run.object, Some(&results)).expect("a report").html()
    };
    let facts = "Intel(R) Xeon(R) Platinum 8480C, kernel 6.18.44";
    let here = page(&node);
    assert!(
        here.contains("CPUs and kernel of the node") && here.contains(facts),
        "{here}"
    );
    let elsewhere = page("cpu-node-1");
    assert!(here.contains("Commit of the model, as AIPerf loaded it") && here.contains(COMMIT));
    assert!(elsewhere.contains("Load generator on") && elsewhere.contains(&format!("cpu-node-1: {facts}")));
    assert!(!report(&run).html().contains("Load generator on"));
}

#[test]
fn a_config_map_alone_is_enough_for_all_but_the_manifest() {
    let run = recorded::slow();
    let report = RunReport::from_results(&run.results).expect("a report");
    let whole = super::report(&run);
    assert_eq!(report.verdict(), whole.verdict());
    let page = report.html();
    let message = run
        .object
        .status
        .as_ref()
        .and_then(|status| status.message.clone())
        .expect("a message");
    assert!(page.contains(&message) && page.contains("SlowWorker"));
    assert!(page.contains("the manifest is not in the results"));
    let status = run.object.status.as_ref().expect("a status");
    let digest = environment::digest(status.state.environment.as_ref().expect("an environment"));
    assert!(report.junit().contains(&digest) && page.contains(&digest), "{page}");
    assert!(
        page.contains("No comparison with an earlier run is recorded."),
        "{page}"
    );
    // What the margin says of it: the spec is not there.
    assert!(
        page.contains("≥ 27000") && page.contains("≤ 2000"),
        "signs of the gates"
    );
}

#[test]
fn a_config_map_of_another_run_is_refused_and_a_changed_one_is_noted() {
    let Saved {
        mut object,
        mut results,
    } = recorded::healthy();
    results
        .binary_data
        .as_mut()
        .expect("trials")
        .insert("trial-1.json.gz".to_owned(), ByteString(b"{}".to_vec()));
    let changed = RunReport::new(&object, Some(&results)).expect("a report").html();
    assert!(changed.contains("was changed after it was written"), "noted");
    assert!(changed.contains("Trial 1 left nothing to judge"), "{changed}");
    object
        .status
        .as_mut()
        .and_then(|status| status.run.as_mut())
        .expect("a run")
        .number = 3;
    let error = RunReport::new(&object, Some(&results)).expect_err("another run");
    assert!(
        error.to_string().contains("is of run 1, and the object is at run 3"),
        "{error}"
    );
    // A run that judges the trials of run 1 again.
    object.status.as_mut().expect("a status").state.judged_run = Some(1);
    assert!(RunReport::new(&object, Some(&results)).is_ok());
}

#[test]
fn a_config_map_without_results_is_refused_by_its_name() {
    let mut run = recorded::healthy();
    for (summary, why) in [
        (Some("{"), "summary.json cannot be read"),
        (None, "it has no summary.json"),
    ] {
        let data = summary.map(|text| [("summary.json".to_owned(), text.to_owned())].into());
        run.results.data = data;
        for error in [
            RunReport::from_results(&run.results).err(),
            RunReport::new(&run.object, Some(&run.results)).err(),
        ] {
            let error = error.expect("an error").to_string();
            assert!(error.contains(why) && error.contains("ConfigMap perf/"), "{error}");
        }
    }
    run.results.data = Some([("summary.json".to_owned(), "{}".to_owned())].into());
    let error = RunReport::from_results(&run.results).expect_err("no name");
    assert!(error.to_string().contains("summary.json has no object.name"), "{error}");
}

#[test]
fn a_summary_with_more_trials_than_any_run_is_refused() {
    let mut run = recorded::healthy();
    let data = run.results.data.as_mut().expect("a summary");
    let mut summary: Value = serde_json::from_str(&data["summary.json"]).expect("JSON");
    summary["trials"] = vec![summary["trials"][0].clone(); 101].into();
    data.insert("summary.json".to_owned(), summary.to_string());
    let error = RunReport::from_results(&run.results).expect_err("too many").to_string();
    assert!(
        error.contains("summary.json has 101 trials, more than any run"),
        "{error}"
    );
}

#[test]
fn trials_that_were_thinned_or_left_out_are_noted() {
    let mut run = recorded::healthy();
    let data = run.results.data.as_mut().expect("a summary");
    let thinned = "trial 1: its samples are left out\ntrial 2: each 4 samples are merged into one\n";
    data.insert("thinned.txt".to_owned(), thinned.to_owned());
    data.insert("omitted.txt".to_owned(), "trial 3: 900000 bytes packed\n".to_owned());
    let page = RunReport::from_results(&run.results).expect("a report").html();
    for note in [
        "Not every sample is in the results: trial 1: its samples are left out; trial 2: each 4 samples are merged into one.",
        "Not in the results: trial 3: 900000 bytes packed.",
    ] {
        assert!(page.contains(note), "{page}");
    }
}

#[test]
fn an_older_summary_is_read_as_far_as_it_goes() {
    let mut run = recorded::healthy();
    let old = json!({
        "object": {"namespace": "perf", "name": "old", "uid": "u"},
        "run": null, "verdict": "Passed", "reason": "GatesMet", "message": "fine",
        "environment": null, "placement": null, "metrics": null, "gates": [], "diagnosis": [],
        "trials": [{"number": 1, "outcome": "Pass", "startedAt": "2026-11-01T00:00:00Z"}],
    });
    run.results.data = Some([("summary.json".to_owned(), old.to_string())].into());
    let page = RunReport::from_results(&run.results).expect("a report").html();
    assert!(page.contains("perf/old") && page.contains("No gate was judged"));
}

#[test]
fn without_results_there_are_the_numbers_of_the_status() {
    let mut run = recorded::slow();
    let page = RunReport::new(&run.object, None).expect("a report").html();
    assert!(page.contains("is not here: there are the numbers of the status"));
    assert!(page.contains("no samples of the workers are in the results"));
    let state = &run.object.status.as_ref().expect("a status").state;
    let workers = state.workers.iter().map(|worker| worker.token_ms.as_ref());
    for number in workers.chain([state.trials[0].throughput.as_ref()]) {
        let cell = format!("<td class=\"number\">{}</td>", number.expect("measured"));
        assert!(page.contains(&cell), "{cell}: {page}");
    }
    assert!(page.contains("What each worker did in the last valid trial"), "{page}");
    run.object.status = None;
    let error = RunReport::new(&run.object, None).expect_err("no run");
    assert!(
        error.to_string().contains("perf/h200-slow-gpu has no run yet"),
        "{error}"
    );
}

#[test]
fn a_spec_that_changed_since_is_noted() {
    let mut run = recorded::healthy();
    let page = report(&run).html();
    assert!(
        !page.contains("The spec changed") && page.contains("Rules out"),
        "{page}"
    );
    run.object.metadata.generation = Some(2);
    let page = report(&run).html();
    assert!(
        page.contains("The spec changed") && !page.contains("Rules out"),
        "{page}"
    );
}
