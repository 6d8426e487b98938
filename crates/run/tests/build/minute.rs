//! Payloads of real size.

use std::io::{BufRead as _, BufReader};
use std::sync::OnceLock;

use perfval_testkit::random::random_numbers;
use perfval_verdict::gpus::{Field, GpuReading, GpuSample, GpuSeries};
use serde_json::{Value, json};

/// The payload of a trial of a minute on eight GPUs, made of a recorded one: real AIPerf on real H200s, with the engines'
/// counters. Each copy has numbers of its own, so that they do not pack as one.
pub fn minute(number: i64) -> String {
    let trial = recorded();
    let mut random = random_numbers(u64::try_from(number).expect("a number of a trial"));
    let mut noise = move || i64::try_from(random() >> 54).expect("ten bits");
    let series: Vec<Value> = (0..8)
        .map(|worker| longer(&trial["series"][worker % 2], worker, &mut noise))
        .collect();
    let gpus: Vec<Value> = (0..8).map(|gpu| busy_gpu(gpu, &mut noise)).collect();
    let mut record = trial["record"].clone();
    let of_worker = |worker: usize| record["workers"][worker % 2].clone();
    record["workers"] = (0..8).map(of_worker).collect();
    let export: Value =
        serde_json::from_str(include_str!("../../../verdict/tests/fixtures/aiperf-success.json")).expect("JSON");
    let requests = requests(&mut noise);
    json!({"record": record, "aiperf": export, "workers": series, "gpus": gpus, "requests": requests}).to_string()
}

/// What the runner keeps of single requests: as many points over time as there may be.
fn requests(noise: &mut impl FnMut() -> i64) -> Value {
    let mut distribution = |usual: i64| {
        let mut quantiles = |from| json!([from, usual + noise(), 2 * usual + noise(), 4 * usual + 31 * noise()]);
        let over_time: Vec<Value> = (0..120).map(&mut quantiles).collect();
        let cdf: Vec<Value> = (0..27).map(|share| json!([37 * share, share * usual / 9])).collect();
        json!({"overTime": over_time, "cdf": cdf})
    };
    json!({
        "count": 24_000, "seconds": 119, "every": 1, "timeToFirstToken": distribution(80_000),
        "interTokenLatency": distribution(9_000), "requestLatency": distribution(1_500_000),
    })
}

/// 80 s of a worker: 60 measured, the rest is AIPerf's start, its warm-up and its end.
fn longer(series: &Value, worker: usize, noise: &mut impl FnMut() -> i64) -> Value {
    let recorded = series["samples"].as_array().expect("samples");
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
    json!({"address": format!("10.244.0.{worker}"), "samples": samples})
}

fn busy_gpu(gpu: usize, noise: &mut impl FnMut() -> i64) -> Value {
    let mut series: GpuSeries =
        serde_json::from_value(json!({"uuid": format!("GPU-{gpu:032x}"), "index": gpu, "samples": []})).expect("JSON");
    for second in 0..80 {
        let mut sample = GpuSample(second, GpuReading::default());
        for field in Field::ALL {
            // What moved on busy H200s: 1,864 to 1,947 MHz, 600 to 690 W, 53 to 61 °C.
            let value = match field {
                Field::SmClock => 1864 + 15 * (noise() % 6),
                Field::Power => 600_000 + 90 * noise(),
                Field::Temperature => 53 + noise() % 9,
                Field::Utilisation => 94 + noise() % 7,
                Field::Reasons => 4,
                Field::MemoryUsed => 115_000,
                _ => 0,
            };
            sample.1.set(field, value);
        }
        series.samples.push(sample);
    }
    serde_json::to_value(series).expect("JSON")
}

/// The last trial on two H200s that was recorded with its samples.
fn recorded() -> &'static Value {
    static TRIAL: OnceLock<Value> = OnceLock::new();
    TRIAL.get_or_init(|| {
        let packed = include_bytes!("../../../../tests/fidelity/recorded.jsonl.gz").as_slice();
        let runs = BufReader::new(flate2::read::GzDecoder::new(packed)).lines();
        let on_gpus = runs
            .map(Result::unwrap)
            .filter(|run| run.contains(r#""place":"silicon""#));
        let trials =
            on_gpus.map(|run| -> Value { serde_json::from_str::<Value>(&run).expect("JSON")["trials"][0].clone() });
        let long = |trial: &Value| {
            trial["series"][0]["samples"]
                .as_array()
                .is_some_and(|samples| samples.len() >= 40)
        };
        trials.filter(long).last().expect("a recorded trial on GPUs")
    })
}
