//! The ConfigMap with everything measured.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use perfval_api::{Reason, Verdict, Why};
use perfval_run::{Run, build};
use perfval_verdict::gpus::{Field, GpuSample, GpuSeries, Reading};
use serde_json::{Value, json};

use super::{settings, typical};

/// Why the run of these tests has its verdict.
pub fn why() -> Why {
    Why::new(Reason::GatesMet, "4/8 GPUs on n1: fast")
}

#[test]
fn results_are_the_same_for_the_same_content_and_never_too_big() {
    let object = typical();
    let settings = settings();
    let run = Run::new(&object, &settings);
    // Hex of a hash chain: it packs to about half, so three of them do not fit.
    let noise = |seed: u64| -> String {
        let mut state = seed;
        (0..600 * 1024)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                char::from_digit(u32::try_from(state >> 60).unwrap(), 16).unwrap()
            })
            .collect()
    };
    let payloads: BTreeMap<i64, String> = (1..=3_i64).map(|trial| (trial, noise(trial.unsigned_abs()))).collect();
    let results = build::results(&run, Verdict::Passed, &why(), &payloads);
    assert_eq!(results, build::results(&run, Verdict::Passed, &why(), &payloads));
    let size: usize = results.data.iter().flatten().map(|(_, text)| text.len()).sum::<usize>()
        + results
            .binary_data
            .iter()
            .flatten()
            .map(|(_, bytes)| bytes.0.len())
            .sum::<usize>();
    assert!(size <= 900 * 1024, "{size}");
    let kept: Vec<_> = results.binary_data.as_ref().unwrap().keys().collect();
    assert_eq!(kept, ["trial-1.json.gz", "trial-2.json.gz"]);
    assert!(results.data.as_ref().unwrap()["omitted.txt"].starts_with("trial 3: "));

    let summary = &results.data.as_ref().unwrap()["summary.json"];
    assert!(
        summary.contains(r#""verdict": "Passed""#) && summary.contains("GatesMet"),
        "{summary}"
    );

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
    let results = build::results(
        &Run::new(&object, &settings()),
        Verdict::Passed,
        &why(),
        &BTreeMap::from([(7, payload.clone())]),
    );
    let packed = &results.binary_data.unwrap()["trial-7.json.gz"].0;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed.as_slice()), &mut text).unwrap();
    assert_eq!(text, payload);
}

/// The payload of a trial of a minute on eight GPUs, made of a recorded one: real AIPerf on real H200s, with the engines'
/// counters. Each copy has numbers of its own, so that they do not pack as one.
fn minute(number: i64) -> String {
    let packed = include_bytes!("../../../../tests/fidelity/recorded.jsonl.gz").as_slice();
    let lines = std::io::BufReader::new(flate2::read::GzDecoder::new(packed));
    let recorded = std::io::BufRead::lines(lines).map(|line| -> Value { serde_json::from_str(&line.unwrap()).unwrap() });
    let trial = recorded
        .filter(|run| run["place"] == "silicon")
        .map(|run| run["trials"][0].clone())
        .filter(|trial| trial["series"][0]["samples"].as_array().is_some_and(|samples| samples.len() >= 40))
        .last()
        .expect("a recorded trial on GPUs");
    let mut random = u64::try_from(number).unwrap();
    let mut noise = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(random >> 54).unwrap()
    };
    let series: Vec<Value> = (0..8).map(|worker| longer(&trial["series"][worker % 2], worker, &mut noise)).collect();
    let gpus: Vec<Value> = (0..8).map(|gpu| busy_gpu(gpu, &mut noise)).collect();
    let mut record = trial["record"].clone();
    let of_worker = |worker: usize| record["workers"][worker % 2].clone();
    record["workers"] = (0..8).map(of_worker).collect();
    let export: Value = serde_json::from_str(include_str!("../../../verdict/tests/fixtures/aiperf-success.json")).unwrap();
    json!({"record": record, "aiperf": export, "workers": series, "gpus": gpus}).to_string()
}

/// 80 s of a worker: 60 measured, the rest is AIPerf's start, its warm-up and its end.
fn longer(series: &Value, worker: usize, noise: &mut impl FnMut() -> i64) -> Value {
    let recorded = series["samples"].as_array().unwrap();
    let mut samples = Vec::new();
    for second in 0..80_usize {
        let mut sample = recorded[second * recorded.len() / 80].clone();
        sample[0] = second.into();
        for number in sample[1].as_array_mut().into_iter().flatten() {
            if let Some(counter) = number.as_i64().filter(|counter| *counter > 1000) {
                *number = (counter + noise()).into();
            }
        }
        samples.push(sample);
    }
    json!({"address": format!("10.244.0.{worker}"), "workerId": format!("{worker:016x}"), "samples": samples})
}

fn busy_gpu(gpu: usize, noise: &mut impl FnMut() -> i64) -> Value {
    let mut series: GpuSeries = serde_json::from_value(json!({"uuid": format!("GPU-{gpu:032x}"), "index": gpu, "samples": []})).unwrap();
    for second in 0..80 {
        let mut sample = GpuSample(second, Reading::default());
        for field in Field::ALL {
            // What moved on busy H200s: 1,864 to 1,947 MHz, 600 to 690 W, 53 to 61 °C.
            let value = match field {
                Field::SmClock => 1864 + 15 * (noise() % 6),
                Field::Power => 600_000 + 90 * noise(),
                Field::Temperature | Field::MemoryTemperature => 53 + noise() % 9,
                Field::Utilisation => 94 + noise() % 7,
                Field::Reasons => 4,
                Field::MemoryUsed => 115_000,
                _ => 0,
            };
            sample.1.set(field, value);
        }
        series.samples.push(sample);
    }
    serde_json::to_value(series).unwrap()
}

fn bytes(results: &ConfigMap) -> usize {
    let texts = results.data.iter().flatten().map(|(_, text)| text.len());
    let packed = results.binary_data.iter().flatten().map(|(_, bytes)| bytes.0.len());
    texts.sum::<usize>() + packed.sum::<usize>()
}

#[test]
fn twenty_trials_of_a_minute_on_eight_gpus_fit() {
    let object = typical();
    let settings = settings();
    let run = Run::new(&object, &settings);
    let payloads: BTreeMap<i64, String> = (1..=20).map(|trial| (trial, minute(trial))).collect();
    let results = build::results(&run, Verdict::Passed, &why(), &payloads);
    let data = results.data.as_ref().unwrap();
    println!("{} bytes; {:?}", bytes(&results), data.get("thinned.txt"));
    assert!(bytes(&results) <= 900 * 1024, "{}", bytes(&results));
    assert_eq!(results.binary_data.as_ref().unwrap().len(), 20, "{:?}", data.get("omitted.txt"));
    assert_eq!(data.get("omitted.txt"), None);
    // Everything can be judged again, and at least every fourth second of every worker is there.
    let packed = results.binary_data.iter().flatten().map(|(key, bytes)| (key.as_str(), bytes.0.as_slice()));
    for (key, packed) in packed {
        let payload = perfval_verdict::saved::recorded(packed);
        let whole = perfval_verdict::saved::recorded(payloads[&key[6..key.len() - 8].parse::<i64>().unwrap()].as_bytes());
        assert_eq!(payload.record, whole.record, "{key}");
        assert!(payload.workers.iter().all(|worker| worker.samples.len() >= 20), "{key}");
        assert_eq!(
            payload.workers[3].samples.last(),
            whole.workers[3].samples.last(),
            "{key}: the last counters stay"
        );
    }
}

#[test]
fn samples_are_thinned_before_a_trial_is_left_out() {
    let object = typical();
    let settings = settings();
    let run = Run::new(&object, &settings);
    let payloads: BTreeMap<i64, String> = (1..=60).map(|trial| (trial, minute(trial))).collect();
    let results = build::results(&run, Verdict::Passed, &why(), &payloads);
    let data = results.data.as_ref().unwrap();
    assert_eq!(results.binary_data.as_ref().unwrap().len(), 60, "{:?}", data.get("omitted.txt"));
    assert!(bytes(&results) <= 900 * 1024);
    let thinned = &data["thinned.txt"];
    assert!(thinned.contains("trial 60: each ") || thinned.contains("samples are left out"), "{thinned}");
}
