//! Samples of one series.
//!
//! The library's `Family` keeps every label set in a map until it is cleared, and so those of 5,000 objects from one scrape to the
//! next.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::series::Series;

/// Samples of a gauge, in the order in which they were added.
#[derive(Debug)]
pub(super) struct Samples<L, V> {
    series: &'static Series,
    all: Vec<(L, V)>,
}

impl<L: EncodeLabelSet, V: EncodeGaugeValue> Samples<L, V> {
    pub(super) fn new(series: &'static Series) -> Self {
        Self {
            series,
            all: Vec::new(),
        }
    }

    /// Adds a sample. Its labels differ from those of all others.
    pub(super) fn add(&mut self, labels: L, value: V) {
        self.all.push((labels, value));
    }

    /// Writes the samples. A series without any is left out.
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.all.is_empty() {
            return Ok(());
        }
        describe(self.series, encoder, |mut of_series| {
            for (labels, value) in &self.all {
                of_series.encode_family(labels)?.encode_gauge(value)?;
            }
            Ok(())
        })
    }
}

/// Writes the description of a gauge, and then what `encode` writes.
pub(super) fn describe(
    series: &Series,
    encoder: &mut DescriptorEncoder<'_>,
    encode: impl FnOnce(MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    let unit = series.unit.map(|unit| Unit::Other(unit.into()));
    // As a registry does it.
    let help = format!("{}.", series.help);
    encode(encoder.encode_descriptor(series.base, &help, unit.as_ref(), MetricType::Gauge)?)
}
