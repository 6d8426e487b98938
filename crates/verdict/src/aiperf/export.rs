use std::collections::BTreeMap;

use perfval_api::text::cut;
use perfval_api::{Metric, MetricSource, Statistic};
use rust_decimal::Decimal;

use super::object::JsonObject;
use super::{ErrorKind, FrontendTimes, Generator, Report, ReportError, VERSION_BYTES, most_frequent};

/// Versions of AIPerf whose exports were recorded and are read here: 0.11 writes schema 1.3, 0.12 and 0.13 write 1.4.
const VERSIONS: [&str; 3] = ["0.11", "0.12", "0.13"];

/// Unit of `credit_to_start_latency` and of every other time.
const MILLISECONDS: &str = "ms";

/// Reads `profile_export_aiperf.json`.
///
/// Only fields that 0.11 already wrote are required; newer ones are used if present. An unknown version is refused,
/// because the same words may mean other things there.
pub fn parse(export: &[u8]) -> Result<Report, ReportError> {
    let json = str::from_utf8(export).map_err(|e| ReportError::Json(e.to_string()))?;
    let export = JsonObject::document(json)?;
    let version = version(&export)?;

    let (requested, concurrency) = asked(&export)?;
    let failed = total(&export, "error_request_count")?.unwrap_or(0);
    let succeeded = succeeded(&export, failed)?;
    let cancelled = export.required("was_cancelled", JsonObject::flag)?;
    let ended = !cancelled && export.flag("is_complete")?.unwrap_or(true);

    Ok(Report {
        aiperf_version: Some(version),
        requested,
        concurrency,
        succeeded,
        failed,
        truncated: truncated(&export, succeeded)?,
        cancelled,
        incomplete_reason: export.text("incomplete_reason")?.map(|reason| cut(&reason, 200)),
        // In a trial of a fixed time every request that was sent has ended, in one way or the other.
        complete: ended && requested.is_none_or(|requested| succeeded + failed == requested),
        duration_seconds: statistic(&export, "benchmark_duration", "sec", Statistic::Avg)?,
        generator: Generator {
            effective_concurrency_p50: statistic(&export, "effective_concurrency", "requests", Statistic::P50)?,
            credit_to_start_p50_ms: statistic(&export, "credit_to_start_latency", MILLISECONDS, Statistic::P50)?,
            request_latency_p50_ms: statistic(&export, "request_latency", MILLISECONDS, Statistic::P50)?,
            cpu: None,
        },
        frontend: FrontendTimes::default(),
        metrics: metrics(&export)?,
        errors: errors(&export)?,
    })
}

/// The version, if it is one of [`VERSIONS`]; patch releases and pre-releases of them count.
fn version(export: &JsonObject) -> Result<String, ReportError> {
    let version = cut(&export.required("aiperf_version", JsonObject::text)?, VERSION_BYTES);
    let known = VERSIONS.iter().any(|minor| {
        let patch = version.strip_prefix(minor);
        patch.is_some_and(|patch| !patch.starts_with(|c: char| c.is_ascii_digit()))
    });
    if known {
        return Ok(version);
    }
    Err(ReportError::Version(version))
}

/// Requests and concurrency in the options, from the one phase that is measured. A phase of a fixed time has no
/// number of requests.
fn asked(export: &JsonObject) -> Result<(Option<i64>, i64), ReportError> {
    let config = export.required("input_config", JsonObject::object)?;
    let mut measured = Vec::new();
    for phase in config.objects("phases")? {
        if phase.text("name")?.as_deref() == Some("profiling") {
            measured.push(phase);
        }
    }
    match measured.as_slice() {
        [phase] => {
            let requests = phase.count("requests")?;
            if phase.number("duration")?.is_none() {
                phase.required("requests", JsonObject::count)?;
            }
            Ok((requests, phase.required("concurrency", JsonObject::count)?))
        }
        [] => Err(ReportError::Missing {
            path: "input_config.phases[name=profiling]".to_owned(),
        }),
        _ => Err(ReportError::Contradiction(format!(
            "{} phases are named profiling",
            measured.len()
        ))),
    }
}

fn succeeded(export: &JsonObject, failed: i64) -> Result<i64, ReportError> {
    let succeeded = export.required("request_count", total)?;
    // 0.13 counts both kinds once more.
    if let Some(all) = total(export, "completed_request_count")?
        && all != succeeded + failed
    {
        let text = format!("{succeeded} requests succeeded and {failed} failed, but {all} ended");
        return Err(ReportError::Contradiction(text));
    }
    if succeeded + failed == 0 {
        return Err(ReportError::Contradiction(
            "no request succeeded and none failed".to_owned(),
        ));
    }
    Ok(succeeded)
}

/// A stream cut by a dying worker counts as a success, but the server's token count, its last chunk, never came.
fn truncated(export: &JsonObject, succeeded: i64) -> Result<i64, ReportError> {
    let config = export.required("input_config", JsonObject::object)?;
    let by_server = match config.object("endpoint")? {
        Some(endpoint) => endpoint.flag("use_server_token_count")?.unwrap_or(false),
        None => false,
    };
    if !by_server || succeeded == 0 {
        return Ok(0);
    }
    let lengths = export.required("output_sequence_length", JsonObject::object)?;
    let counted = lengths.required("count", JsonObject::count)?;
    if counted > succeeded {
        let text = format!("{counted} answers have a length, but {succeeded} requests succeeded");
        return Err(ReportError::Contradiction(text));
    }
    Ok(succeeded - counted)
}

/// A count over the whole run; `None` if AIPerf left it out. An object without its number is an error, not a zero.
fn total(export: &JsonObject, tag: &str) -> Result<Option<i64>, ReportError> {
    let Some(metric) = export.object(tag)? else {
        return Ok(None);
    };
    metric.required("avg", JsonObject::count).map(Some)
}

fn statistic(
    export: &JsonObject,
    tag: &str,
    unit: &'static str,
    statistic: Statistic,
) -> Result<Option<Decimal>, ReportError> {
    match export.object(tag)? {
        Some(metric) => {
            check_unit(&metric, unit)?;
            measured(&metric, statistic)
        }
        None => Ok(None),
    }
}

/// A number in another unit would be judged as if it were in this one.
fn check_unit(metric: &JsonObject, wanted: &'static str) -> Result<(), ReportError> {
    let found = metric.required("unit", JsonObject::text)?;
    if found == wanted {
        return Ok(());
    }
    Err(ReportError::Wrong {
        path: metric.path("unit"),
        wanted,
        found: cut(&found, 40),
    })
}

fn metrics(export: &JsonObject) -> Result<BTreeMap<Metric, BTreeMap<Statistic, Decimal>>, ReportError> {
    let mut metrics = BTreeMap::new();
    for &metric in Metric::ALL {
        let MetricSource::AIPerf(tag, unit) = metric.source() else {
            continue;
        };
        let Some(found) = export.object(tag)? else {
            continue;
        };
        check_unit(&found, unit)?;
        let mut statistics = BTreeMap::new();
        for &statistic in Statistic::ALL {
            if metric.is_rate() && statistic != Statistic::Avg {
                continue;
            }
            if let Some(value) = measured(&found, statistic)? {
                statistics.insert(statistic, value);
            }
        }
        metrics.insert(metric, statistics);
    }
    Ok(metrics)
}

/// No quantity that is judged can be negative.
fn measured(metric: &JsonObject, statistic: Statistic) -> Result<Option<Decimal>, ReportError> {
    let key = statistic.aiperf_key();
    match metric.number(key)? {
        Some(value) if value.is_sign_negative() && !value.is_zero() => Err(ReportError::Wrong {
            path: metric.path(key),
            wanted: "a number ≥ 0",
            found: value.to_string(),
        }),
        value => Ok(value),
    }
}

fn errors(export: &JsonObject) -> Result<Vec<ErrorKind>, ReportError> {
    let mut kinds = Vec::new();
    for entry in export.objects("error_summary")? {
        let count = entry.required("count", JsonObject::count)?;
        let details = entry.required("error_details", JsonObject::object)?;
        kinds.push(error_kind(&details, count)?);
    }
    Ok(most_frequent(kinds))
}

/// One error as `error_summary` and `profile_export.jsonl` write it.
pub(super) fn error_kind(details: &JsonObject, count: i64) -> Result<ErrorKind, ReportError> {
    Ok(ErrorKind {
        code: details.count("code")?,
        kind: cut(&details.text("type")?.unwrap_or_default(), 60),
        message: cut(&details.text("message")?.unwrap_or_default(), 200),
        count,
    })
}
