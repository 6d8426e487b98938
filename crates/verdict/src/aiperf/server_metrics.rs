use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::ReportError;
use super::object::Object;
use crate::dynamo::{DISPATCH_WAIT, FRONTEND_DURATION};

/// What the frontend's own histograms say of its requests, measured phase only.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct FrontendTimes {
    /// Mean time from a request's entry to its dispatch to a worker (ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatch_wait_ms: Option<Decimal>,
    /// Mean time from a request's entry to the end of its answer (ms).
    #[serde(rename = "frontendRequestMs", skip_serializing_if = "Option::is_none")]
    pub request_ms: Option<Decimal>,
}

impl FrontendTimes {
    /// Reads AIPerf's `server_metrics_export.json`: AIPerf scrapes the frontend three times a second. What Dynamo or AIPerf
    /// does not report is absent.
    pub fn read(export: &[u8]) -> Result<Self, ReportError> {
        let json = str::from_utf8(export).map_err(|e| ReportError::Json(e.to_string()))?;
        let export = Object::document(json)?;
        let Some(metrics) = export.object("metrics")? else {
            return Ok(Self::default());
        };
        Ok(Self {
            dispatch_wait_ms: mean_ms(&metrics, DISPATCH_WAIT)?,
            request_ms: mean_ms(&metrics, FRONTEND_DURATION)?,
        })
    }
}

fn mean_ms(metrics: &Object, histogram: &'static str) -> Result<Option<Decimal>, ReportError> {
    let Some(histogram) = metrics.object(histogram)? else {
        return Ok(None);
    };
    let series = histogram.objects("series")?;
    let Some(first) = series.first() else {
        return Ok(None);
    };
    let Some(stats) = first.object("stats")? else {
        return Ok(None);
    };
    let seconds = stats.number("avg")?.filter(|seconds| *seconds >= Decimal::ZERO);
    Ok(seconds.map(|seconds| (seconds * Decimal::ONE_THOUSAND).round_dp(3)))
}
