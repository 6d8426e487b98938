//! Common Test Report Format: JSON, as its published schema has it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cases::{Case, CaseState};
use crate::environment;
use crate::facts::Facts;

/// The version of the specification whose schema the tests hold.
const SPEC: &str = "0.0.0";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Test<'a> {
    name: &'a str,
    status: &'static str,
    duration: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<i64>,
    suite: [&'a str; 2],
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    trace: &'a str,
    raw_status: &'a str,
    r#type: &'static str,
}

pub(crate) fn write(facts: &Facts, cases: &[Case]) -> String {
    let title = facts.title();
    let count = |status| cases.iter().filter(|case| self::status(case.state) == status).count();
    let start = millis(cases.iter().filter_map(|case| case.started).min()).unwrap_or(0);
    let stop = millis(cases.iter().filter_map(|case| case.ended).max()).unwrap_or(start);
    let environment: Map<String, Value> = environment::known(facts)
        .into_iter()
        .map(|fact| (fact.key.to_owned(), Value::String(fact.value)))
        .collect();
    let report = json!({
        "reportFormat": "CTRF",
        "specVersion": SPEC,
        "generatedBy": "perfvalidation",
        "results": {
            "tool": {"name": "perfvalidation", "version": env!("CARGO_PKG_VERSION")},
            "summary": {
                "tests": cases.len(),
                "passed": count("passed"),
                "failed": count("failed"),
                "skipped": count("skipped"),
                "pending": count("pending"),
                "other": count("other"),
                "start": start,
                "stop": stop,
            },
            "tests": cases.iter().map(|case| test(&title, case)).collect::<Vec<_>>(),
            "environment": {"appName": title, "extra": environment},
        },
    });
    format!("{report:#}\n")
}

fn test<'a>(title: &'a str, case: &'a Case) -> Test<'a> {
    let (start, stop) = (millis(case.started), millis(case.ended));
    Test {
        name: &case.name,
        status: status(case.state),
        duration: start.zip(stop).map_or(0, |(start, stop)| (stop - start).max(0)),
        start,
        stop,
        suite: [title, case.suite],
        message: &case.message,
        trace: if case.state == CaseState::Passed {
            ""
        } else {
            &case.details
        },
        raw_status: &case.word,
        r#type: "performance",
    }
}

fn millis(time: Option<DateTime<Utc>>) -> Option<i64> {
    time.map(|time| time.timestamp_millis())
}

/// CTRF has no word for an error: what could not be measured has not passed.
fn status(state: CaseState) -> &'static str {
    match state {
        CaseState::Passed => "passed",
        CaseState::Failed | CaseState::Error => "failed",
        CaseState::Skipped => "skipped",
        CaseState::Pending => "pending",
    }
}
