//! Summary of a worker from a series of readings.

mod page;
mod standstill;

use perfval_verdict::workers::{Reading, Sample, Scrape, Silence, Unit, WorkerSeries, WorkerSummary, summarize};
use proptest::prelude::*;
use rust_decimal::Decimal;

fn reading(in_flight: i64, finished: i64) -> Reading {
    Reading {
        in_flight,
        started: finished + 200,
        finished,
        ..Reading::default()
    }
}

/// One sample per second; `None` is a time-out.
fn series(address: &str, readings: impl IntoIterator<Item = Option<Reading>>) -> WorkerSeries {
    let sample = |(second, reading): (usize, Option<Reading>)| {
        let scrape = reading.map_or(Scrape::Nothing(Silence::TimedOut), Scrape::Reading);
        Sample(i64::try_from(second).expect("few seconds"), scrape)
    };
    WorkerSeries {
        address: address.to_owned(),
        samples: readings.into_iter().enumerate().map(sample).collect(),
    }
}

fn only(series: WorkerSeries) -> WorkerSummary {
    summarize(&[series], None).remove(0)
}

#[test]
fn a_slow_worker_shows_in_its_rate_where_the_queue_is_equal() {
    // Least-loaded routing equalises the queue: 32 in flight on each, one of them ten times slower.
    let fast = series("10.0.0.1", (0..=10).map(|s| Some(reading(32, s * 20))));
    let slow = series("10.0.0.2", (0..=10).map(|s| Some(reading(32, s * 2))));
    let summaries = summarize(&[slow, fast], None);
    assert_eq!(summaries[0].address, "10.0.0.1");
    let numbers: Vec<_> = summaries
        .iter()
        .map(|w| (w.peak_in_flight, w.served, w.rate_per_second.to_string()))
        .collect();
    assert_eq!(numbers, [(32, 200, "20".to_owned()), (32, 20, "2".to_owned())]);
}

#[test]
fn rates_are_over_the_span_in_which_any_worker_was_busy() {
    let idle_at_both_ends = |s: i64| reading(if (6..16).contains(&s) { 8 } else { 0 }, (s - 6).clamp(0, 10) * 5);
    let worker = only(series("10.0.0.1", (0..30).map(|s| Some(idle_at_both_ends(s)))));
    assert_eq!((worker.samples, worker.served), (30, 50));
    assert_eq!(worker.rate_per_second.to_string(), "5");
    assert_eq!(
        worker.mean_in_flight.round_dp(1).to_string(),
        "7.3",
        "80 over the eleven busy seconds"
    );
}

#[test]
fn bytes_show_progress_where_tokens_are_not_counted_and_finished_requests_do_not() {
    let long = |s: i64| Reading {
        bytes: Some(s * 7_000),
        ..reading(4, 0)
    };
    let worker = only(series("a", (0..20).map(|s| Some(long(s)))));
    assert_eq!(
        (worker.still_seconds, worker.pace.map(|pace| pace.unit)),
        (0, Some(Unit::Bytes))
    );
    // Without either, one long answer looks like a freeze: that is no evidence.
    let worker = only(series("a", (0..20).map(|_| Some(reading(4, 0)))));
    assert_eq!((worker.still_seconds, worker.frozen_seconds), (0, 0));
}

#[test]
fn the_warm_up_is_not_judged() {
    // Ten seconds in which the first kernels are compiled, then twenty at work.
    let cold = |s: i64| Reading {
        tokens: Some((s - 10).max(0) * 100),
        ..reading(16, (s - 10).max(0) * 2)
    };
    let series = series("a", (0..=30).map(|s| Some(cold(s))));
    let measured = |seconds: i64| summarize(std::slice::from_ref(&series), Some(Decimal::from(seconds))).remove(0);
    let worker = measured(20);
    assert_eq!((worker.seconds, worker.served, worker.still_seconds), (20, 40, 0));
    assert_eq!(worker.pace.map(|pace| pace.mean), Some(Decimal::ONE_HUNDRED));
    assert_eq!(measured(30).still_seconds, 10);
}

#[test]
fn the_time_of_a_request_in_a_worker_is_exact_between_samples() {
    let busy = |s: i64| Reading {
        busy_ms: Some(s * 2 * 850),
        ..reading(0, s * 2)
    };
    let worker = only(series("a", (0..20).map(|s| Some(busy(s)))));
    assert_eq!(worker.seconds_per_request, Some(Decimal::new(85, 2)));
}

#[test]
fn a_restart_is_counted_and_loses_no_requests() {
    let readings = [(4, 100), (4, 110), (0, 0), (4, 6)];
    let worker = only(series(
        "a",
        readings.map(|(in_flight, finished)| Some(reading(in_flight, finished))),
    ));
    assert_eq!((worker.resets, worker.served), (1, 16));
}

#[test]
fn a_worker_that_never_answered_served_an_unknown_number() {
    let worker = only(series("a", [None, None, None]));
    assert_eq!((worker.samples, worker.timeouts, worker.served), (0, 3, 0));
    assert!(summarize(&[], None).is_empty());
}

#[test]
fn samples_are_short_in_the_log() {
    let json = serde_json::to_string(&series("a", [Some(reading(3, 9)), None]).samples).unwrap();
    assert_eq!(json, r#"[[0,[3,209,9,null,null,null,null,null]],[1,"TimedOut"]]"#);
    assert_eq!(serde_json::from_str::<Vec<Sample>>(&json).unwrap().len(), 2);
    // What an earlier version wrote.
    let older: Sample = serde_json::from_str("[0,[3,209,9,null]]").unwrap();
    assert_eq!(older, Sample(0, Scrape::Reading(reading(3, 9))));
}

#[test]
fn a_sample_of_a_second_that_no_trial_has_is_refused() {
    let read = |second: i64| serde_json::from_str::<Sample>(&format!(r#"[{second},"TimedOut"]"#));
    assert!(read(0).is_ok() && read(604_800).is_ok());
    for second in [-1, 604_801, 1_000_000_000_000_000_000, i64::MIN, i64::MAX] {
        let refused = read(second).unwrap_err().to_string();
        assert!(refused.contains("a trial has 0 to 604800"), "{refused}");
    }
}

proptest! {
    #[test]
    fn thinning_keeps_the_peak_the_end_and_silences(
        readings in proptest::collection::vec(proptest::option::weighted(0.9995, (0..200_i64, 0..9_i64)), 1..3000),
        limit in 1..400_usize,
    ) {
        let mut finished = 0;
        let whole = series("a", readings.into_iter().map(|r| r.map(|(in_flight, more)| {
            finished += more;
            reading(in_flight, finished)
        })));
        let mut thin = whole.clone();
        thin.thin(limit);
        prop_assert!(thin.samples.len() <= limit);
        let silent = |s: &WorkerSeries| s.samples.iter().any(|s| matches!(s.1, Scrape::Nothing(_)));
        prop_assert_eq!(silent(&thin), silent(&whole));
        if !silent(&whole) {
            prop_assert_eq!(only(thin.clone()).peak_in_flight, only(whole.clone()).peak_in_flight);
            prop_assert_eq!(thin.samples.last().map(|s| s.0), whole.samples.last().map(|s| s.0));
        }
    }
}

/// A worker that works for `seconds` at a pace (tokens per second) that depends on the second, then drains without new work.
fn paced(address: &str, seconds: i64, drain: i64, tokens_a_second: impl Fn(i64) -> i64) -> WorkerSeries {
    let mut tokens = 0;
    let readings = (0..=seconds + drain).map(|second| {
        let sends = second.min(seconds);
        tokens += if second <= seconds { tokens_a_second(second) } else { 10 };
        Some(Reading {
            in_flight: if second < seconds + drain { 8 } else { 0 },
            started: 100 + 10 * sends,
            finished: 10 * second,
            tokens: Some(tokens),
            ..Reading::default()
        })
    });
    series(address, readings)
}

#[test]
fn the_last_two_minutes_of_a_long_trial_are_compared_with_its_first() {
    let drift = |series: WorkerSeries| {
        let drift = only(series).drift?;
        Some((drift.first, drift.last_but_one?, drift.last))
    };
    let number = Decimal::from;
    // The drain at the end, in which nothing new is sent, belongs to no minute.
    let decaying = paced("a", 600, 20, |second| match second {
        ..300 => 1000,
        300..=540 => 950,
        _ => 900,
    });
    assert_eq!(drift(decaying), Some((number(1000), number(950), number(900))));
    // Every slot begins with a prefill at once: the first seconds are slow for every worker.
    let steady = paced("a", 600, 0, |second| if second < 8 { 100 } else { 1000 });
    assert_eq!(drift(steady), Some((number(1000), number(1000), number(1000))));
    assert_eq!(drift(paced("a", 120, 0, |_| 1000)), None, "too short for heat");
    // A worker that gave no answer for most of a minute has no pace there, unless it answered at both ends.
    for (seconds, is_known) in [(500..=540, false), (561..=599, true)] {
        let mut silent = paced("a", 600, 0, |_| 1000);
        for sample in silent.samples.iter_mut().filter(|sample| seconds.contains(&sample.0)) {
            sample.1 = Scrape::Nothing(Silence::TimedOut);
        }
        assert_eq!(drift(silent).is_some(), is_known, "{seconds:?}");
    }
    let mut restarted = paced("a", 600, 0, |_| 1000);
    for sample in &mut restarted.samples {
        if let Scrape::Reading(reading) = &mut sample.1
            && sample.0 > 570
        {
            reading.tokens = reading.tokens.map(|tokens| tokens - 500_000);
        }
    }
    assert_eq!(drift(restarted), None, "its counter fell");
}
