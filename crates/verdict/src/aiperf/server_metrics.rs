use rust_decimal::Decimal;

use super::object::JsonObject;
use super::{FrontendTimes, ReportError};
use crate::dynamo::{DISPATCH_WAIT, FRONTEND_DURATION, LOOP_DELAY};

/// Reads the frontend's times from AIPerf's `server_metrics_export.json`. AIPerf scrapes the frontend three times a
/// second.
pub fn frontend_times(export: &[u8]) -> Result<FrontendTimes, ReportError> {
    let json = str::from_utf8(export).map_err(|e| ReportError::Json(e.to_string()))?;
    let export = JsonObject::document(json)?;
    let Some(metrics) = export.object("metrics")? else {
        return Ok(FrontendTimes::default());
    };
    Ok(FrontendTimes {
        dispatch_wait_ms: mean_ms(&metrics, DISPATCH_WAIT)?,
        request_ms: mean_ms(&metrics, FRONTEND_DURATION)?,
        loop_delay_ms: mean_ms(&metrics, LOOP_DELAY)?,
    })
}

fn mean_ms(metrics: &JsonObject, histogram: &'static str) -> Result<Option<Decimal>, ReportError> {
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
