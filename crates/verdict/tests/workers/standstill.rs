//! Spans in which a worker had requests and did not move.

use perfval_verdict::workers::{Reading, Scrape, Silence, summarize};
use rust_decimal::Decimal;

use super::{only, reading, series};

/// Sixteen requests in flight, a hundred tokens and two finished requests a second.
fn moving(second: i64) -> Reading {
    Reading {
        tokens: Some(second * 100),
        ..reading(16, second * 2)
    }
}

#[test]
fn a_freeze_is_a_span_without_progress_under_load() {
    let frozen = |s: i64| moving(s.min(5) + (s - 12).max(0));
    let worker = only(series("a", (0..20).map(|s| Some(frozen(s)))));
    assert_eq!((worker.still_seconds, worker.still_in_flight), (7, 16));
    // Idle is not frozen.
    let idle = |_| {
        Some(Reading {
            in_flight: 0,
            ..moving(3)
        })
    };
    assert_eq!(only(series("a", (0..20).map(idle))).still_seconds, 0);
}

#[test]
fn a_worker_that_was_silent_moved_at_both_ends_of_its_silence() {
    // Stopped from 5.5 s to 14.5 s: ten seconds between two answers, one of them at work.
    let stopped = |s: i64| (!(6..15).contains(&s)).then(|| moving(if s < 6 { s } else { s - 9 }));
    let worker = only(series("a", (0..30).map(stopped)));
    assert_eq!((worker.timeouts, worker.still_in_flight), (9, 16));
    assert!((8..=9).contains(&worker.still_seconds), "{worker:?}");
    // Silent but working: its metrics port alone was slow.
    let slow_port = |s: i64| (!(6..15).contains(&s)).then(|| moving(s));
    assert_eq!(only(series("a", (0..30).map(slow_port))).still_seconds, 0);
}

#[test]
fn a_worker_that_was_silent_and_got_nothing_afterwards_stood_still_all_the_same() {
    // A frontend drops what does not answer: under round-robin the worker was idle for the rest of a trial (rig, 2026-11-21).
    let dropped = |s: i64| match s {
        ..6 => Some(moving(s)),
        6..15 => None,
        15 => Some(moving(7)),
        _ => Some(Reading {
            in_flight: 0,
            ..moving(8)
        }),
    };
    let peer = series("peer", (0..30).map(|s| Some(moving(s))));
    let loads = summarize(&[series("a", (0..30).map(dropped)), peer], None);
    assert!((7..=8).contains(&loads[0].still_seconds), "{loads:?}");
    assert_eq!(loads[1].still_seconds, 0);
}

#[test]
fn a_worker_that_never_moves_again_is_frozen_to_the_end() {
    // A peer goes on; the worker answers until 9 s and never again, or answers and does not move.
    let peer = || series("peer", (0..30).map(|s| Some(moving(s))));
    let silent = series("silent", (0..30).map(|s| (s < 10).then(|| moving(s))));
    let still = series("still", (0..30).map(|s| Some(moving(s.min(9)))));
    for frozen in [silent, still] {
        let name = frozen.address.clone();
        let both = summarize(&[frozen, peer()], None);
        let worker = both.iter().find(|worker| worker.address == name).unwrap();
        assert_eq!((worker.frozen_seconds, worker.still_seconds), (20, 0), "{worker:?}");
        assert_eq!(
            both.iter()
                .find(|worker| worker.address == "peer")
                .unwrap()
                .frozen_seconds,
            0
        );
    }
}

#[test]
fn refusals_count_only_after_the_last_answer() {
    // Its page was refused for four seconds and answers again, or it is refused to the end.
    for (refused, at_end) in [(3..7, 0), (10..30, 20)] {
        let mut worker = series("a", (0..30).map(|s| Some(moving(s.min(9)))));
        for sample in &mut worker.samples {
            if refused.contains(&sample.0) {
                sample.1 = Scrape::Nothing(Silence::Failed);
            }
        }
        let peer = series("peer", (0..30).map(|s| Some(moving(s))));
        let worker = summarize(&[worker, peer], None).remove(0);
        assert_eq!(
            (worker.frozen_seconds, worker.refused_at_end),
            (20, Some(at_end)),
            "{worker:?}"
        );
    }
}

#[test]
fn a_frozen_worker_whose_requests_time_out_has_not_gone_on() {
    // An engine on an H100 was stopped for good: its metrics answered, its 256 requests ended at their time-out after 285 s.
    // They end one after the other, as they began.
    let frozen = |s: i64| {
        let left = 16 - (s - 49).clamp(0, 8) * 2;
        Some(Reading {
            in_flight: left,
            finished: moving(s.min(12)).finished + 16 - left,
            ..moving(s.min(12))
        })
    };
    // AIPerf measures until the last answer: the peer's in second 20, or of requests that the frontend gave only to the peer.
    for answered in [20, 59] {
        let peer = |s: i64| {
            Some(Reading {
                in_flight: if s < answered { 16 } else { 0 },
                ..moving(s.min(answered))
            })
        };
        let both = summarize(
            &[series("a", (0..60).map(frozen)), series("peer", (0..60).map(peer))],
            Some(Decimal::from(answered - 5)),
        );
        assert_eq!((both[0].frozen_seconds, both[0].still_seconds), (44, 0), "{both:?}");
        let (served, rate) = (both[1].served, both[1].rate_per_second);
        assert_eq!(
            (served, rate),
            ((answered - 5) * 2, Decimal::TWO),
            "the load counts: {both:?}"
        );
    }
}

#[test]
fn one_request_of_many_that_never_ends_is_no_standstill() {
    let hung = |s: i64| {
        Some(Reading {
            in_flight: if s < 20 { 16 } else { 1 },
            ..moving(s.min(20))
        })
    };
    let loads = summarize(&[series("a", (0..60).map(hung))], Some(Decimal::from(20)));
    assert_eq!((loads[0].frozen_seconds, loads[0].still_seconds), (0, 0), "{loads:?}");
}
