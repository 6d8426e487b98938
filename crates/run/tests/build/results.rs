//! The ConfigMap with everything measured.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use perfval_api::{Reason, Verdict, Why, WorkerPod};
use perfval_run::build::PackedTrial;
use perfval_run::{Run, build};
use perfval_testkit::random::random_numbers;
use perfval_verdict::environment;
use perfval_verdict::frame::Payload;

use super::minute::minute;
use super::{settings, typical};

/// Why the run of these tests has its verdict.
pub fn why() -> Why {
    Why::new(Reason::GatesMet, "4/8 GPUs on n1: fast")
}

/// The results of a run with these trials.
fn saved(run: &Run<'_>, payloads: &BTreeMap<i64, String>) -> ConfigMap {
    let pack = |(number, payload): (&i64, &String)| (*number, PackedTrial::new(payload));
    let trials = payloads.iter().map(pack).collect();
    build::results(run, Verdict::Passed, &why(), &trials, &BTreeMap::new())
}

#[test]
fn results_are_the_same_for_the_same_content_and_never_too_big() {
    let mut object = typical();
    let worker = WorkerPod {
        pod: "worker-a".to_owned(),
        ..WorkerPod::default()
    };
    object.status.as_mut().expect("a status").state.worker_pods = vec![worker];
    let run = Run::new(&object, settings());
    // Random hex digits pack to about half, so three of them do not fit.
    let noise = |seed: u64| -> String {
        let mut random = random_numbers(seed);
        let mut digit = || char::from_digit(u32::try_from(random() >> 60).unwrap(), 16).unwrap();
        (0..600 * 1024).map(|_| digit()).collect()
    };
    let payloads: BTreeMap<i64, String> = (1..=3_i64).map(|trial| (trial, noise(trial.unsigned_abs()))).collect();
    let results = saved(&run, &payloads);
    assert_eq!(results, saved(&run, &payloads));
    assert!(bytes(&results) <= 900 * 1024, "{}", bytes(&results));
    let kept: Vec<_> = results.binary_data.as_ref().unwrap().keys().collect();
    assert_eq!(kept, ["trial-1.json.gz", "trial-2.json.gz"]);
    assert!(results.data.as_ref().unwrap()["omitted.txt"].starts_with("trial 3: "));

    let summary = &results.data.as_ref().unwrap()["summary.json"];
    assert!(
        summary.contains(r#""verdict": "Passed""#) && summary.contains("GatesMet"),
        "{summary}"
    );

    let read = build::read_summary(&results).expect("a summary");
    let (object, status) = (read.object, read.status);
    let (of, written) = ((object.namespace.as_deref(), object.name.as_deref()), run.status());
    assert_eq!(of, (Some(run.namespace()), Some(run.name())));
    assert_eq!(
        (status.verdict, status.message),
        (Some(Verdict::Passed), Some(why().message))
    );
    assert_eq!((&status.run, &status.placement), (&written.run, &written.placement));
    assert_eq!(status.state.trials, written.state.trials);
    assert_eq!(status.state.metrics, written.state.metrics);
    let mut environment = written.state.environment.clone().expect("an environment");
    environment.digest = Some(environment::digest(&environment));
    assert_eq!(status.state.environment, Some(environment));
    assert_eq!(status.state.worker_pods, written.state.worker_pods);

    let annotated = &results.metadata.annotations.as_ref().unwrap()["perfvalidation.dev/sha256"];
    assert_eq!(*annotated, build::results_sha256(&results));
    let mut tampered = results.clone();
    tampered
        .data
        .as_mut()
        .unwrap()
        .insert("summary.json".into(), "{}".into());
    assert_ne!(*annotated, build::results_sha256(&tampered));
}

#[test]
fn a_payload_can_be_read_back() {
    let object = typical();
    let payload = "{\"record\":1}".repeat(100);
    let trials = BTreeMap::from([(7, payload.clone())]);
    let results = saved(&Run::new(&object, settings()), &trials);
    let packed = &results.binary_data.unwrap()["trial-7.json.gz"].0;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed.as_slice()), &mut text).unwrap();
    assert_eq!(text, payload);
}

fn bytes(results: &ConfigMap) -> usize {
    let texts = results.data.iter().flatten().map(|(_, text)| text.len());
    let packed = results.binary_data.iter().flatten().map(|(_, bytes)| bytes.0.len());
    texts.sum::<usize>() + packed.sum::<usize>()
}

#[test]
fn twenty_trials_of_a_minute_on_eight_gpus_fit() {
    let object = typical();
    let run = Run::new(&object, settings());
    let payloads: BTreeMap<i64, String> = (1..=20).map(|trial| (trial, minute(trial))).collect();
    let results = saved(&run, &payloads);
    let data = results.data.as_ref().unwrap();
    println!("{} bytes; {:?}", bytes(&results), data.get("thinned.txt"));
    assert!(bytes(&results) <= 900 * 1024, "{}", bytes(&results));
    assert_eq!(
        results.binary_data.as_ref().unwrap().len(),
        20,
        "{:?}",
        data.get("omitted.txt")
    );
    assert_eq!(data.get("omitted.txt"), None);
    // Everything can be judged again, and at least every fourth second of every worker is there.
    let packed = results
        .binary_data
        .iter()
        .flatten()
        .map(|(key, bytes)| (key.as_str(), bytes.0.as_slice()));
    for (key, packed) in packed {
        let payload = perfval_verdict::saved::recorded(packed);
        let whole =
            perfval_verdict::saved::recorded(payloads[&key[6..key.len() - 8].parse::<i64>().unwrap()].as_bytes());
        assert_eq!(payload.record, whole.record, "{key}");
        assert!(payload.workers.iter().all(|worker| worker.samples.len() >= 20), "{key}");
        let last = |payload: &Payload| payload.workers[3].samples.last().map(|sample| sample.0);
        assert_eq!(last(&payload), last(&whole), "{key}: the last counters stay");
    }
}

#[test]
fn samples_are_thinned_before_a_trial_is_left_out() {
    let object = typical();
    let run = Run::new(&object, settings());
    let payloads: BTreeMap<i64, String> = (1..=40).map(|trial| (trial, minute(trial))).collect();
    let results = saved(&run, &payloads);
    let data = results.data.as_ref().unwrap();
    assert_eq!(
        results.binary_data.as_ref().unwrap().len(),
        40,
        "{:?}",
        data.get("omitted.txt")
    );
    assert!(bytes(&results) <= 900 * 1024);
    let thinned = &data["thinned.txt"];
    assert!(
        thinned.contains("trial 40: each ") || thinned.contains("samples are left out"),
        "{thinned}"
    );
}
