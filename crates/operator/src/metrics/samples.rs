//! Samples of several series.
//!
//! The library's `Family` keeps every label set in a map until it is cleared, and so those of 5,000 objects from one scrape to the
//! next.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, GaugeValueEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::series::Series;

/// Gauges in the order of the page.
#[derive(Debug)]
pub(super) struct Samples(Vec<Gauge>);

/// Samples of one series, in the order in which they were added.
#[derive(Debug)]
struct Gauge {
    series: &'static Series,
    /// Labels of all samples, one sample after the other: a list for each would be an allocation for each.
    labels: Vec<Arc<str>>,
    values: Vec<Value>,
}

/// Value of a sample: 1 and 1.0 are different texts.
#[derive(Debug)]
pub(super) enum Value {
    Whole(i64),
    Real(f64),
}

impl Samples {
    pub(super) fn new(order: &'static [Series]) -> Self {
        let gauges = order.iter().map(|series| Gauge {
            series,
            labels: Vec::new(),
            values: Vec::new(),
        });
        Self(gauges.collect())
    }

    /// Adds a sample, with a value for each label of its series. Its labels differ from those of all others. A series that is not
    /// in the order is left out.
    pub(super) fn add<const N: usize>(&mut self, series: &Series, labels: [&Arc<str>; N], value: impl Into<Value>) {
        let Some(gauge) = self.0.iter_mut().find(|gauge| gauge.series == series) else {
            return;
        };
        gauge.labels.extend(labels.into_iter().cloned());
        gauge.values.push(value.into());
    }

    /// Writes the samples. A series without any is left out.
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut gauges = self.0.iter().filter(|gauge| !gauge.values.is_empty());
        gauges.try_for_each(|gauge| gauge.encode(encoder))
    }
}

impl Gauge {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let series = self.series;
        let unit = series.unit.map(|unit| Unit::Other(unit.into()));
        // As a registry does it.
        let help = format!("{}.", series.help);
        let mut of_series = encoder.encode_descriptor(series.base, &help, unit.as_ref(), MetricType::Gauge)?;
        let mut rest = self.labels.iter().map(|label| &**label);
        for value in &self.values {
            let labels: Vec<(&str, &str)> = series.labels.iter().copied().zip(rest.by_ref()).collect();
            if labels.is_empty() {
                // The library would write empty braces.
                of_series.encode_gauge(value)?;
            } else {
                of_series.encode_family(&labels)?.encode_gauge(value)?;
            }
        }
        Ok(())
    }
}

impl EncodeGaugeValue for Value {
    fn encode(&self, encoder: &mut GaugeValueEncoder<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.encode(encoder),
            Self::Real(value) => value.encode(encoder),
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Whole(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}
