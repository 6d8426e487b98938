//! docs/metrics.md: the table of series that the registry is filled from.

use perfval_operator::metrics::series::{self, SeriesKind};

use crate::page::section;

/// The whole page.
pub fn metrics() -> String {
    let mut page = String::from(
        "<!-- Generated from the code: run `just generate`. -->\n# Metrics\n\n\
         The operator serves `/metrics` (OpenMetrics) on port 8080, or on port 8443 with [`secureMetrics`](install.md#secure-metrics). Only the leader serves \
         series of objects.\n",
    );
    section(
        &mut page,
        "Series",
        "A series without a type is a gauge. Labels have fixed values, except `namespace`, `name`, `node`, `gpu_uuid` and `policy`. Series with these labels disappear when the object is \
         deleted. `PERFVAL_OBJECT_METRICS=false` leaves them out, except `perfvalidation_policy_*`.",
        &["series", "type", "labels", "meaning"],
        series::ALL.iter().map(|series| {
            let labels: Vec<String> = series.labels.iter().map(|label| format!("`{label}`")).collect();
            [
                format!("`{}`", series.name()),
                kind(series.kind).to_owned(),
                labels.join(", "),
                series.help.to_owned(),
            ]
        }),
    );
    page
}

fn kind(kind: SeriesKind) -> &'static str {
    match kind {
        SeriesKind::Counter => "counter",
        SeriesKind::Gauge => "",
        SeriesKind::Histogram => "histogram",
        SeriesKind::Info => "info",
    }
}
