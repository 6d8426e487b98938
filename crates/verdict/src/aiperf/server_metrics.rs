use rust_decimal::Decimal;

use super::ReportError;
use super::object::Object;
use crate::dynamo::DISPATCH_WAIT;

/// What AIPerf's `server_metrics_export.json` says of the frontend, which it scrapes three times a second: the mean time
/// from a request's entry to its dispatch to a worker (ms), measured phase only. `None` where Dynamo or AIPerf does not
/// tell.
pub fn dispatch_wait_ms(export: &[u8]) -> Result<Option<Decimal>, ReportError> {
    let json = str::from_utf8(export).map_err(|e| ReportError::Json(e.to_string()))?;
    let export = Object::document(json)?;
    let Some(queue) = export
        .object("metrics")?
        .map(|metrics| metrics.object(DISPATCH_WAIT))
        .transpose()?
        .flatten()
    else {
        return Ok(None);
    };
    let series = queue.objects("series")?;
    let Some(stats) = series
        .first()
        .map(|series| series.object("stats"))
        .transpose()?
        .flatten()
    else {
        return Ok(None);
    };
    let seconds = stats.number("avg")?;
    Ok(seconds
        .filter(|seconds| *seconds >= Decimal::ZERO)
        .map(|seconds| (seconds * Decimal::ONE_THOUSAND).round_dp(3)))
}
