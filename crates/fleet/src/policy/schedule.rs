//! Times that a policy names: its schedule, and the windows of its budgets.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use perfval_api::fleet::{Budget, PerfValidationPolicy, PerfValidationPolicySpec};

/// Times of one policy at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PolicyTimes {
    /// Last time of `spec.schedule`, while its deadline has not passed.
    pub(super) last: Option<DateTime<Utc>>,
    /// True for a budget that applies now, in the order of the spec.
    pub(super) budgets: Vec<bool>,
    /// Fields that cannot be used, each with the reason.
    pub(super) errors: Vec<String>,
}

impl PolicyTimes {
    /// Reads all times of a spec. A budget whose window cannot be read applies always, so that an error never starts more.
    pub(super) fn new(spec: &PerfValidationPolicySpec, now: DateTime<Utc>) -> Self {
        let mut times = Self::default();
        let zone: Tz = spec.time_zone.parse().unwrap_or_else(|_| {
            times.errors.push(format!(
                "spec.timeZone: {:?} is no IANA time zone, such as Europe/Berlin",
                spec.time_zone
            ));
            Tz::UTC
        });
        if !times.errors.is_empty() {
            times.budgets = vec![true; spec.budgets.len()];
            return times;
        }
        if let Some(schedule) = &spec.schedule {
            match last(&schedule.cron, zone, now) {
                Ok(last) => times.last = last.filter(|last| now - *last < duration(&schedule.starting_deadline)),
                Err(error) => times.errors.push(format!("spec.schedule.cron: {error}")),
            }
        }
        for (at, budget) in spec.budgets.iter().enumerate() {
            let applies = is_open(budget, zone, now).unwrap_or_else(|error| {
                times.errors.push(format!("spec.budgets[{at}].window.cron: {error}"));
                true
            });
            times.budgets.push(applies);
        }
        times
    }
}

/// Age at which the verdicts of a policy are stale.
pub fn max_age(policy: &PerfValidationPolicy) -> TimeDelta {
    duration(&policy.spec.freshness.max_age)
}

/// Duration of a spec. Admission has checked it; the longest one stands for a text that cannot be read.
pub(super) fn duration(text: &str) -> TimeDelta {
    let parsed = text.parse::<kube::core::Duration>().map(std::time::Duration::from);
    let parsed = parsed.ok().and_then(|duration| TimeDelta::from_std(duration).ok());
    parsed.unwrap_or_else(|| TimeDelta::hours(8760))
}

fn is_open(budget: &Budget, zone: Tz, now: DateTime<Utc>) -> Result<bool, String> {
    let Some(window) = &budget.window else { return Ok(true) };
    let opened = last(&window.cron, zone, now)?;
    Ok(opened.is_some_and(|opened| now - opened < duration(&window.duration)))
}

/// Last time at or before `now`. Fails if the text cannot be read, or names no time at all.
fn last(cron: &str, zone: Tz, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, String> {
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    let parsed: Cron = parser.parse(cron).map_err(|error| format!("{cron:?}: {error}"))?;
    let local = now.with_timezone(&zone);
    if let Ok(last) = parsed.find_previous_occurrence(&local, true) {
        return Ok(Some(last.with_timezone(&Utc)));
    }
    match parsed.find_next_occurrence(&local, false) {
        Ok(_) => Ok(None),
        Err(_) => Err(format!("{cron:?} names no time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    #[test]
    fn the_last_time_is_found_in_the_time_zone() {
        let last =
            |cron: &str, zone: Tz, now: &str| last(cron, zone, at(now)).map(|last| last.map(|last| last.to_rfc3339()));
        let berlin = chrono_tz::Europe::Berlin;
        for (now, expected) in [
            ("2026-07-01T23:00:00Z", "2026-07-01T23:00:00+00:00"),
            ("2026-07-01T22:59:59Z", "2026-06-30T23:00:00+00:00"),
            // One hour later by the clock of the winter.
            ("2026-12-01T12:00:00Z", "2026-12-01T00:00:00+00:00"),
        ] {
            assert_eq!(last("0 1 * * *", berlin, now), Ok(Some(expected.to_owned())), "{now}");
        }
        assert_eq!(
            last("30 2 * * MON-FRI", Tz::UTC, "2026-11-22T12:00:00Z"),
            Ok(Some("2026-11-20T02:30:00+00:00".to_owned()))
        );
    }

    #[test]
    fn a_text_that_names_no_time_is_an_error() {
        let error = |cron: &str| last(cron, Tz::UTC, at("2026-11-22T12:00:00Z")).expect_err("no time");
        assert_eq!(error("0 0 31 2 *"), "\"0 0 31 2 *\" names no time");
        for wrong in ["0 0 31 2", "61 * * * *", "0 0 0 1 * *", "every night"] {
            assert!(error(wrong).starts_with(&format!("{wrong:?}: ")), "{}", error(wrong));
        }
    }
}
