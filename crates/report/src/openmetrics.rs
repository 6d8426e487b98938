//! `OpenMetrics` text, under the names of the operator's own series where they mean the same.

use std::fmt;

use perfval_api::{GateResult, GateStatus, Verdict};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::facts::Facts;

type SeriesLabels = Vec<(&'static str, String)>;

/// A series with its values. The library's own `Family` is a hash map, whose order is another one in each process.
#[derive(Debug)]
struct MetricSeries {
    name: &'static str,
    help: &'static str,
    values: Vec<(SeriesLabels, f64)>,
}

#[derive(Debug)]
struct All(Vec<MetricSeries>);

impl Collector for All {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for MetricSeries { name, help, values } in self.0.iter().filter(|series| !series.values.is_empty()) {
            let mut series = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (labels, value) in values {
                ConstGauge::new(*value).encode(series.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

pub(crate) fn write(facts: &Facts) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(All(all(facts))));
    let mut text = String::new();
    // Writing into a String never fails.
    let _ = encode(&mut text, &registry);
    text
}

fn all(facts: &Facts) -> Vec<MetricSeries> {
    let object = || -> SeriesLabels {
        let namespace = facts.namespace.clone().unwrap_or_default();
        vec![("namespace", namespace), ("name", facts.name.clone())]
    };
    let mut all = Vec::new();
    let mut series = |name, help, values: Vec<(SeriesLabels, f64)>| {
        let labelled = |(more, value): (SeriesLabels, f64)| (object().into_iter().chain(more).collect(), value);
        let values = values.into_iter().map(labelled).collect();
        all.push(MetricSeries { name, help, values });
    };
    let status = &facts.status;
    let verdicts = Verdict::ALL.iter().map(|verdict| {
        let is = status.verdict == Some(*verdict);
        (vec![("verdict", verdict.as_str().to_owned())], f64::from(u8::from(is)))
    });
    series("perfvalidation_last_verdict", "1 for the verdict", verdicts.collect());
    let metrics = status.state.metrics.clone().unwrap_or_default();
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
    let of_gates = |value: &dyn Fn(&GateStatus) -> Option<f64>| -> Vec<(SeriesLabels, f64)> {
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
        "Observed value, in the unit of the gate's metric",
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
    all
}

/// A finite number of a decimal string or a quantity.
fn number(text: Option<&str>) -> Option<f64> {
    let number = perfval_api::quantity::parse(text?)?;
    number.to_string().parse().ok()
}
