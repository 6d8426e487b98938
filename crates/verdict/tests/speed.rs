//! Decoding speed of each worker next to its peers, from its engine's own counters.

use perfval_verdict::workers::{AgainstPeers, Engine, Reading, Sample, Scrape, Silence, WorkerSeries, summarize};
use proptest::prelude::*;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

/// A worker that decodes `batch` requests at once, with `token_ms` from token to token in each second.
fn worker(address: &str, seconds: i64, batch: impl Fn(i64) -> i64, token_ms: impl Fn(i64) -> f64) -> WorkerSeries {
    let (mut engine, mut finished) = ((0_i64, 0_i64, 0_i64), 0);
    let sample = |second: i64| {
        let (now, ms) = (batch(second), token_ms(second));
        let reading = Reading {
            in_flight: now,
            started: finished + now,
            finished,
            tokens: Some(engine.0),
            engine: Engine {
                gaps: Some(engine.0),
                gap_us: Some(engine.1),
                steps: Some(engine.2),
                ..Engine::default()
            },
            ..Reading::default()
        };
        // Without requests an engine makes no steps.
        let steps = (1000.0 / ms).round().to_i64().filter(|_| now > 0).unwrap_or(0);
        engine.0 += steps * now;
        engine.1 += (ms * 1000.0 * (steps * now).to_f64().unwrap_or(0.0))
            .round()
            .to_i64()
            .unwrap_or(0);
        engine.2 += steps;
        finished += 10;
        Sample(second, Scrape::Reading(reading))
    };
    WorkerSeries {
        address: address.to_owned(),
        samples: (0..seconds).map(sample).collect(),
    }
}

fn edit(series: &mut WorkerSeries, change: impl Fn(i64, &mut Reading)) {
    for Sample(second, scrape) in &mut series.samples {
        if let Scrape::Reading(reading) = scrape {
            change(*second, reading);
        }
    }
}

fn peers(series: &[WorkerSeries]) -> Vec<Option<AgainstPeers>> {
    let workers = summarize(series, None);
    workers.into_iter().map(|worker| worker.speed?.peers).collect()
}

fn percent(peers: Option<AgainstPeers>) -> f64 {
    let peers = peers.expect("compared with its peers");
    peers.percent.to_f64().expect("a number")
}

/// A little unrest, different for each worker and second.
fn unrest(worker: i64, second: i64) -> f64 {
    let wave = f64::from(i32::try_from((second * 7 + worker * 13) % 11).unwrap_or(0));
    1.0 + (wave - 5.0) * 0.004
}

#[test]
fn a_gpu_that_is_slow_is_seen_among_two_to_sixteen_workers() {
    for count in [2, 3, 4, 8, 16] {
        let series: Vec<WorkerSeries> = (0..count)
            .map(|n| {
                let slow = if n == count - 1 { 1.0 / 0.85 } else { 1.0 };
                worker(
                    &format!("10.0.0.{n:02}"),
                    30,
                    |_| 200,
                    move |s| 10.5 * slow * unrest(n, s),
                )
            })
            .collect();
        let found = peers(&series);
        let (slow, others) = found.split_last().expect("workers");
        let slow = slow.expect("compared");
        assert!((percent(Some(slow)) - 85.0).abs() < 1.0, "{count}: {slow:?}");
        assert!(slow.within < Decimal::from(2), "{count}: {slow:?}");
        // Of two workers each is the other's only peer.
        let least = if count == 2 { 116.0 } else { 99.0 };
        assert!(
            others.iter().all(|other| percent(*other) > least),
            "{count}: {others:?}"
        );
    }
}

/// Four H100s of one host decoded the same batches for 40 s, and again six seconds later. The first one overheated.
#[test]
fn a_real_gpu_that_overheats_is_slower_the_longer_it_works() {
    let text = std::fs::read_to_string("tests/fixtures/telemetry/h100-overheating-token-ms.csv").expect("a recording");
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|value| value.parse().expect("a number")).collect())
        .collect();
    for (trial, expected) in [(1.0, 92.6), (2.0, 82.6)] {
        let rows: Vec<&Vec<f64>> = rows.iter().filter(|row| (row[0] - trial).abs() < 0.1).collect();
        let token_ms = |gpu: usize, second: i64| rows[usize::try_from(second).expect("a second").min(39)][gpu + 2];
        let series: Vec<WorkerSeries> = (0..4)
            .map(|gpu| worker(&format!("10.0.0.{gpu}"), 41, |_| 64, |second| token_ms(gpu, second)))
            .collect();
        let found = peers(&series);
        assert!((percent(found[0]) - expected).abs() < 0.5, "{found:?}");
        assert!(found[1..].iter().all(|peer| percent(*peer) > 99.0), "{found:?}");
    }
}

#[test]
fn a_longer_queue_is_no_slower_gpu() {
    // Round-robin: the second worker decodes more at once, and each step takes it longer, as it would take anyone.
    let step = |batch: i64| 2.0 * f64::from(i32::try_from(batch).unwrap_or(0)).powf(0.5);
    let batch = |base: i64| move |second: i64| base + (second % 5) * 20;
    let series = [
        worker("10.0.0.1", 40, batch(100), |s| step(batch(100)(s)) * unrest(1, s)),
        worker("10.0.0.2", 40, batch(200), |s| step(batch(200)(s)) * unrest(2, s)),
    ];
    for found in peers(&series) {
        let found = found.expect("compared");
        let (percent, within) = (percent(Some(found)), found.within.to_f64().expect("a number"));
        assert!(percent + within > 96.0 && percent - within < 104.0, "{found:?}");
    }
}

#[test]
fn short_trials_single_workers_and_other_engines_are_no_evidence() {
    let steady = |address: &str, seconds| worker(address, seconds, |_| 100, |_| 10.0);
    assert_eq!(peers(&[steady("a", 60)]), [None]);
    assert_eq!(peers(&[steady("a", 6), steady("b", 6)]), [None, None]);
    let mut silent = steady("b", 60);
    edit(&mut silent, |_, reading| reading.engine = Engine::default());
    assert_eq!(peers(&[steady("a", 60), silent]), [None, None]);
}

#[test]
fn a_standstill_of_an_engine_is_no_part_of_its_speed() {
    // Stopped with a hundred requests, whose next tokens have waited as long.
    for (stopped, is_silent) in [(20..30, false), (21..24, false), (20..31, true)] {
        let batch = |second| if stopped.contains(&second) { 0 } else { 100 };
        let mut frozen = worker("b", 60, batch, |_| 10.0);
        let seconds = stopped.end - stopped.start;
        edit(&mut frozen, |second, reading| {
            reading.in_flight = 100;
            let waited_us = if second > stopped.end { 100_000_000 * seconds } else { 0 };
            reading.engine.gap_us = reading.engine.gap_us.map(|us| us + waited_us);
        });
        if is_silent {
            // It answers again with its first tokens, which include the wait.
            for sample in &mut frozen.samples[20..32] {
                sample.1 = Scrape::Nothing(Silence::TimedOut);
            }
        }
        let found = peers(&[worker("a", 60, |_| 100, |_| 10.0), frozen]);
        let alike = found.iter().all(|found| (percent(*found) - 100.0).abs() < 0.5);
        assert!(alike, "{stopped:?}: {found:?}");
    }
}

#[test]
fn counters_of_an_engine_become_rates() {
    let mut series = worker("a", 20, |_| 100, |_| 10.0);
    edit(&mut series, |second, reading| {
        reading.engine.moved_mb = Some(second * 1_850_000);
        reading.engine.gflop = Some(0);
    });
    let work = summarize(&[series], None).remove(0).engine.expect("counted");
    assert_eq!(work.gb_per_second, Some(Decimal::from(1850)));
    assert_eq!(
        work.tflops, None,
        "vLLM has the counter and moves it only when it is asked to"
    );
}

proptest! {
    /// A page that lies, repeats itself or goes backwards is no evidence, and never a panic.
    #[test]
    fn counters_of_any_kind_are_survived(
        numbers in proptest::collection::vec((any::<i64>(), any::<i64>(), any::<i64>(), 0_i64..1000), 2..40),
    ) {
        let sample = |(second, (gaps, gap_us, steps, in_flight)): (i64, (i64, i64, i64, i64))| {
            let engine = Engine { gaps: Some(gaps), gap_us: Some(gap_us), steps: Some(steps), ..Engine::default() };
            Sample(second, Scrape::Reading(Reading { in_flight, finished: second, engine, ..Reading::default() }))
        };
        let wild = WorkerSeries {
            address: "b".to_owned(),
            samples: (0..).zip(numbers).map(sample).collect(),
        };
        let found = summarize(&[worker("a", 40, |_| 100, |_| 10.0), wild], None);
        prop_assert_eq!(found.len(), 2);
    }
}
