//! The operators that are compared: their programs, and the objects that they look after.

use std::path::{Path, PathBuf};

use perfval_e2e::quick;
use serde_json::{Value, json};
use walkdir::WalkDir;

use crate::measure::Measured;

/// Address at which each reports that it is ready.
const READY: &str = "127.0.0.1:18099";

/// An operator.
pub struct Subject {
    /// Its column.
    pub title: &'static str,
    /// Its account, and the namespace of its objects.
    pub name: &'static str,
    /// Plural of its kind.
    pub plural: &'static str,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Variables of its environment.
    pub environment: Vec<(&'static str, String)>,
    /// Answers 200 once it is ready.
    pub ready: String,
    /// An object without a name.
    pub object: Value,
    /// Files that have to be shipped to run it.
    pub files: Vec<PathBuf>,
}

/// Writes of an operator for each new object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Of its status.
    pub statuses: usize,
    /// Of events.
    pub events: usize,
}

impl Writes {
    /// As many as this operator was measured to make, rounded.
    pub fn of(ours: &Measured) -> Self {
        let each = |kind: &str| {
            let all = ours.creation.writes.get(kind).copied().unwrap_or_default();
            (all + ours.objects / 2) / ours.objects.max(1)
        };
        Self {
            statuses: each("perfvalidations/status"),
            events: each("events"),
        }
    }
}

impl Subject {
    /// This operator; its objects want all GPUs of the node.
    pub fn ours(program: &Path, gpus: usize) -> Self {
        let mut object = quick("", "");
        object["spec"]["placement"] = json!({"minGPUs": gpus, "maxGPUs": gpus});
        object["spec"]["timeouts"]["sizing"] = json!("12h");
        let flags = [
            "run",
            "--leader-elect=false",
            "--endpoint-access=service-proxy",
            "--runner-image=localhost/perfvalidation-operator:lab",
            "--benchmark-images=localhost",
        ];
        Self {
            title: "this operator",
            name: "peers-ours",
            plural: "perfvalidations",
            command: words(program, &flags, &[format!("--metrics-addr={READY}")]),
            environment: Vec::new(),
            ready: format!("http://{READY}/readyz"),
            object,
            files: vec![program.to_owned(), program.with_file_name("perfval-runner")],
        }
    }

    /// The bare one.
    pub fn bare(program: &Path, writes: Writes) -> Self {
        let own = [
            format!("-health-addr={READY}"),
            format!("-statuses={}", writes.statuses),
            format!("-events={}", writes.events),
        ];
        Self {
            title: "bare, controller-runtime",
            name: "peers-bare",
            plural: "bares",
            command: words(program, &[], &own),
            environment: Vec::new(),
            ready: format!("http://{READY}/readyz"),
            object: json!({"apiVersion": "peers.perfvalidation.dev/v1", "kind": "Bare", "metadata": {}, "spec": {}}),
            files: vec![program.to_owned()],
        }
    }

    /// AIPerf's, with the arguments of its chart.
    pub fn aiperf(environment: &Path) -> Self {
        let flags = ["run", "-m", "aiperf.operator.main", "--verbose", "--all-namespaces"];
        let own = [format!("--liveness=http://{READY}/healthz")];
        let phase = |name: &str, requests: i64| {
            json!({"name": name, "kind": name, "type": "concurrency",
            "requests": requests, "concurrency": 8})
        };
        let benchmark = json!({
            "models": {"items": [{"name": "lab/tiny-qwen3"}]},
            "endpoint": {"urls": ["http://frontend.peers.svc:8000"], "streaming": true},
            "datasets": [{"name": "main", "type": "synthetic", "entries": 100,
                "prompts": {"isl": {"mean": 64}, "osl": {"mean": 16}}}],
            "phases": [phase("profiling", 64)],
            "tokenizer": {"name": "builtin"},
        });
        Self {
            title: "AIPerf 0.13 (kopf)",
            name: "peers-aiperf",
            plural: "aiperfjobs",
            command: words(&environment.join("bin/kopf"), &flags, &own),
            environment: vec![
                ("AIPERF_METRICS_PORT", "0".to_owned()),
                ("PYTHONUNBUFFERED", "1".to_owned()),
            ],
            ready: format!("http://{READY}/healthz"),
            object: json!({"apiVersion": "aiperf.nvidia.com/v1alpha1", "kind": "AIPerfJob", "metadata": {},
                "spec": {"image": "localhost/no-such-aiperf:0.13.0", "skipEndpointCheck": true, "benchmark": benchmark}}),
            files: vec![environment.to_owned()],
        }
    }

    /// Its object of this name.
    pub fn named(&self, name: &str) -> Value {
        let mut object = self.object.clone();
        object["metadata"] = json!({"name": name, "namespace": self.name});
        object
    }

    /// Size of these files (MiB).
    pub fn mebibytes(&self) -> u64 {
        let files = self.files.iter().flat_map(WalkDir::new).filter_map(Result::ok);
        let bytes: u64 = files
            .filter(|entry| entry.file_type().is_file())
            .filter_map(|entry| entry.metadata().ok())
            .map(|file| file.len())
            .sum();
        bytes.div_ceil(1 << 20)
    }
}

fn words(program: &Path, flags: &[&str], own: &[String]) -> Vec<String> {
    std::iter::once(program.to_string_lossy().into_owned())
        .chain(flags.iter().map(|flag| (*flag).to_owned()))
        .chain(own.iter().cloned())
        .collect()
}
