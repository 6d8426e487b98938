//! Writes what fuzzing begins with into a folder for each target: `seeds FOLDER`.

use std::fs;
use std::path::{Path, PathBuf};

use perfval_testkit::inventory::{ClaimBuilder, Cluster, NodeBuilder, PodBuilder, SliceBuilder, gpu};
use perfval_verdict::aiperf::parse;
use perfval_verdict::frame::{Outcome, Payload, TrialRecord, frame, message};
use serde_json::{Value, json};

const NONCE: &str = "fuzz-1";
/// Of an export's hundred metrics; small inputs are tried more often.
const KEPT: [&str; 17] = [
    "schema_version",
    "aiperf_version",
    "completed_request_count",
    "request_count",
    "error_request_count",
    "request_latency",
    "time_to_first_token",
    "inter_token_latency",
    "output_token_throughput",
    "output_sequence_length",
    "effective_concurrency",
    "credit_to_start_latency",
    "benchmark_duration",
    "was_cancelled",
    "is_complete",
    "error_summary",
    "input_config",
];

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder"));
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/verdict/tests/fixtures");
    let exports = exports(&fixtures);
    write(
        &folder,
        "export",
        exports.iter().map(|export| export.to_string().into_bytes()),
    );
    let records = fs::read(fixtures.join("aiperf-records.jsonl")).expect("records");
    write(&folder, "export-records", [records]);
    write(&folder, "frame", exports.iter().flat_map(frames));
    write(&folder, "exposition", pages(&fixtures));
    let quantities = [
        "50k", "0.5", "100m", "2e3", "80Gi", "5E", "-1.5e-3", "8Ei", "7n", "1e", "1.2.3",
    ];
    write(&folder, "quantity", quantities.map(|text| text.as_bytes().to_vec()));
    write(&folder, "saved", saved());
    write(&folder, "log", logs());
    write(&folder, "trial", exports.iter().flat_map(trials));
    write(&folder, "trial-nested", nested());
}

fn write(folder: &Path, target: &str, inputs: impl IntoIterator<Item = Vec<u8>>) {
    let (target, name) = target.split_once('-').unwrap_or((target, "seed"));
    let folder = folder.join(target);
    fs::create_dir_all(&folder).expect("a folder");
    let mut written = 0;
    for (number, input) in inputs.into_iter().enumerate() {
        fs::write(folder.join(format!("{name}-{number}")), input).expect("a seed");
        written += 1;
    }
    assert!(written > 0, "{} has no seeds", folder.display());
}

fn exports(fixtures: &Path) -> Vec<Value> {
    let files = fs::read_dir(fixtures)
        .expect("fixtures")
        .map(|entry| entry.expect("a fixture").path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    let read = |path: &PathBuf| serde_json::from_slice::<Value>(&fs::read(path).expect("a fixture")).expect("JSON");
    files.iter().map(read).map(small).collect()
}

fn small(mut export: Value) -> Value {
    if let Some(fields) = export.as_object_mut() {
        fields.retain(|name, _| KEPT.contains(&name.as_str()));
    }
    if let Some(config) = export["input_config"].as_object_mut() {
        config.retain(|name, _| name == "phases" || name == "endpoint");
    }
    export
}

fn frames(export: &Value) -> Vec<Vec<u8>> {
    let text = export.to_string();
    let Ok(report) = parse(text.as_bytes()) else {
        return Vec::new();
    };
    let record = TrialRecord {
        nonce: NONCE.to_owned(),
        ..TrialRecord::new(Outcome::Report(Box::new(report)))
    };
    let short = message(&record, &[]).into_bytes();
    let series = json!([{"address": "10.0.0.1", "samples": [[0, [1, 2, 1]], [1, "TimedOut"],
        [2, [3, 9, 6, 500, 900, 40, 1, 12, [1, 2, 3]]], [70, [3, 90, 86, 5000, 9000, 400, 0, 12]]]}]);
    let of_requests = json!({"overTime": [[0, 20, 30, 40], [2, 20, 30, 90]], "cdf": [[500, 20], [1000, 90]]});
    let requests = json!({"count": 9, "unread": 1, "seconds": 3, "every": 1, "timeToFirstToken": of_requests,
        "interTokenLatency": of_requests, "requestLatency": of_requests});
    let payload = json!({"record": record, "workers": series, "requests": requests});
    let payload: Payload = serde_json::from_value(payload).expect("a payload");
    let whole = frame(&payload.with_export("{}").expect("JSON")).expect("a frame");
    vec![
        short,
        format!(
            "12:00:00 INFO a line\nperfval-progress {NONCE} {{\"requests\":7,\"errors\":0,\"seconds\":3}}\n{whole}"
        )
        .into_bytes(),
    ]
}

/// Pages of all kinds, each twice so that counters can grow.
fn pages(fixtures: &Path) -> Vec<Vec<u8>> {
    let files = [
        "dynamo-worker-metrics.txt",
        "dynamo-worker-metrics-1.6.1.txt",
        "vllm-0.26.0-worker-metrics.txt",
        "telemetry/dcgm-exporter.txt",
    ];
    let read = |file: &str| {
        let text = fs::read_to_string(fixtures.join(file)).expect("a page");
        let told = |line: &&str| !line.starts_with('#') && !line.contains("_bucket");
        let page: Vec<&str> = text.lines().filter(told).take(60).collect();
        let page = page.join("\n") + "\n";
        format!("{page}\0{page}").into_bytes()
    };
    files.map(read).into()
}

fn objects() -> Vec<Value> {
    let cluster = Cluster::empty()
        .node(NodeBuilder::named("n1"))
        .node(NodeBuilder::named("n2").taint("key", "NoSchedule"))
        .slice(
            SliceBuilder::of("n1")
                .counter_set("set-0", "memory", "80Gi")
                .device(gpu(0).consumes("set-0", "memory", "80Gi"))
                .device(gpu(1).shareable())
                .device(gpu(2).taint("gpu.nvidia.com/xid", "NoSchedule")),
        )
        .pod(PodBuilder::on("n1", "p").requests("cpu", "2"))
        .claim(ClaimBuilder::named("c").holds("n1", "gpu-1"));
    cluster.objects()
}

/// What containers print, and what one may print to hide something or to take the reader's time.
fn logs() -> Vec<Vec<u8>> {
    let traceback =
        "Traceback (most recent call last):\n  File \"a.py\", line 1\nRuntimeError: \u{1b}[31mCUDA out of memory\n";
    let request = "POST https://u:p@host/v1?sig=a#b Authorization: Bearer abc.def token=x {\"api_key\": [\"a\\\"b\"], \"n\": 1}\n";
    let flags = "args: ['--api-key', 'abc', '--header', 'X: y z'] hf_0123456789abcdef s3cr3t-of-the-spec\n";
    let key = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n\u{202e}abc\n";
    let numbers = format!("{{\"level\":\"ERROR\",\"token_ids\":[{}]}}", "1,".repeat(8000));
    let nested = "[".repeat(4000) + "token=" + &"]".repeat(4000);
    let quotes = "'--key', \"".repeat(1500);
    [traceback, request, flags, key, &numbers, &nested, &quotes]
        .map(|text| text.as_bytes().to_vec())
        .into()
}

/// Payloads with everything that is judged: as they are, with absurd numbers, and at the bounds.
fn trials(export: &Value) -> Vec<Vec<u8>> {
    let text = export.to_string();
    let Ok(report) = parse(text.as_bytes()) else {
        return Vec::new();
    };
    let worker = |address: &str, served: i64| {
        json!({"address": address, "seconds": 60, "samples": 60, "served": served,
        "peakInFlight": 8, "meanInFlight": "4.5", "ratePerSecond": "1.5", "secondsPerRequest": "2.25", "stillSeconds": 7,
        "stillInFlight": 4, "pace": {"unit": "tokens", "mean": "900", "best": "1200"},
        "speed": {"tokenMs": "9.5", "batch": "4", "peers": {"percent": "100", "within": "1.5"}},
        "engine": {"gbPerSecond": "2100", "tflops": "300"}, "drift": {"first": "900", "last": "850"}})
    };
    let gpu = json!({"uuid": "GPU-1", "readings": 9, "smMhz": 1980, "watts": 600, "slowed": {"value": 3, "at": 5}});
    let payload = json!({"record": {
        "nonce": NONCE, "exitCode": 0, "outcome": {"report": report},
        "workers": [worker("10.0.0.1", 90), worker("10.0.0.2", 80)],
        "gpus": {"pages": 9, "gpus": [gpu]},
        "nodeCpu": {"node": "n1", "seconds": 60, "cpus": 8, "busyPercent": "99"},
    }});
    let text = payload.to_string();
    let edge = |number: &str| text.replace("\"2.25\"", number).replace(":4,", ":1000000000000000,");
    let (absurd, bound) = (edge("\"79228162514264337593543950335\""), edge("\"1000000000000000\""));
    [text.clone(), absurd, bound].map(String::into_bytes).into()
}

/// Deeper than anyone nests.
fn nested() -> [Vec<u8>; 2] {
    ["[", "{\"record\":"].map(|open| open.repeat(4000 / open.len()).into_bytes())
}

fn saved() -> Vec<Vec<u8>> {
    let list = json!({"kind": "List", "items": objects()}).to_string().into_bytes();
    let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/operator/tests/fixtures/dump.yaml");
    let anchors = "kind: Node\nmetadata: &a {name: n}\n---\nkind: Pod\nmetadata: *a\nspec: {containers: []}\n";
    vec![list, fs::read(dump).expect("a dump"), anchors.as_bytes().to_vec()]
}
