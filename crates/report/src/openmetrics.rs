//! `OpenMetrics` text, under the names of the operator's own series where they mean the same.

use std::sync::atomic::AtomicU64;

use perfval_api::{GateResult, Verdict};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::facts::Facts;

type Labels = Vec<(&'static str, String)>;
type Series = Family<Labels, Gauge<f64, AtomicU64>>;

pub(crate) fn write(facts: &Facts) -> String {
    let mut registry = Registry::default();
    let object = || -> Labels {
        let namespace = facts.namespace.clone().unwrap_or_default();
        vec![("namespace", namespace), ("name", facts.name.clone())]
    };
    let mut series = |name: &str, help: &str, values: Vec<(Labels, f64)>| {
        if values.is_empty() {
            return;
        }
        let family = Series::default();
        for (more, value) in values {
            let labels = object().into_iter().chain(more).collect();
            family.get_or_create(&labels).set(value);
        }
        registry.register(name, help, family);
    };
    let status = &facts.status;
    let verdicts = [
        Verdict::Passed,
        Verdict::Failed,
        Verdict::Inconclusive,
        Verdict::Skipped,
        Verdict::Error,
    ];
    let verdicts = verdicts.map(|verdict| {
        let is = status.verdict == Some(verdict);
        (vec![("verdict", verdict.as_str().to_owned())], f64::from(u8::from(is)))
    });
    series("perfvalidation_last_verdict", "1 for the verdict", verdicts.to_vec());
    let metrics = status.metrics.clone().unwrap_or_default();
    for (name, help, value, per) in [
        (
            "perfvalidation_last_throughput_tokens_per_second",
            "Output tokens per second of the deciding trial",
            &metrics.output_token_throughput,
            1.0,
        ),
        (
            "perfvalidation_last_time_to_first_token_p99_seconds",
            "Time to first token, 99th percentile, of the deciding trial",
            &metrics.ttft_p99_ms,
            1000.0,
        ),
        (
            "perfvalidation_last_error_ratio",
            "Share of the requests of the deciding trial that failed or came back short, 0 to 1",
            &metrics.request_error_percent,
            100.0,
        ),
        (
            "perfvalidation_last_slowest_worker_ratio",
            "Decode speed of the slowest worker over its peers' median",
            &metrics.slowest_worker_percent,
            100.0,
        ),
    ] {
        let value = number(value.as_deref()).map(|value| (Vec::new(), value / per));
        series(name, help, value.into_iter().collect());
    }
    let of_gates = |value: &dyn Fn(&perfval_api::GateStatus) -> Option<f64>| -> Vec<(Labels, f64)> {
        let gates = status.gates.iter();
        gates
            .filter_map(|gate| Some((vec![("gate", gate.name.clone())], value(gate)?)))
            .collect()
    };
    series(
        "perfvalidation_gate_met",
        "1 if the gate was met, 0 if it was missed; absent if it was not measured",
        of_gates(&|gate| match gate.result {
            GateResult::Met => Some(1.0),
            GateResult::Missed | GateResult::Warned => Some(0.0),
            GateResult::Unmeasured => None,
        }),
    );
    series(
        "perfvalidation_gate_observed",
        "What was observed, in the unit of the gate's metric",
        of_gates(&|gate| number(gate.observed.as_deref())),
    );
    series(
        "perfvalidation_gate_threshold",
        "The threshold after scaling and tolerance, in the same unit",
        of_gates(&|gate| number(Some(&gate.effective))),
    );
    series(
        "perfvalidation_gate_margin_ratio",
        "Distance to that threshold over the threshold, negative for a miss",
        of_gates(&|gate| Some(number(gate.margin_percent.as_deref())? / 100.0)),
    );
    let mut text = String::new();
    // Writing into a String never fails.
    let _ = encode(&mut text, &registry);
    text
}

/// A finite number of a decimal string or a quantity.
fn number(text: Option<&str>) -> Option<f64> {
    let number = perfval_api::quantity::parse(text?)?;
    number.to_string().parse().ok()
}
