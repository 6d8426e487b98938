//! Knee of a deployment: the least load with nearly all of its throughput. Pure.

/// Share of the full throughput at the knee. Trials of one deployment differ by 2 to 5 %.
const NEARLY_ALL: f64 = 0.95;
/// Share of the largest throughput from which a load counts as full. One lucky trial may have the largest one, so the mean of all near it is used.
const FULL: f64 = 0.90;
/// Largest ratio between the two loads beside the knee, after which the search ends.
const CLOSE: f64 = 1.15;
/// Least growth of the throughput for a doubled load, below which a larger load gives nothing.
const GROWTH: f64 = 1.10;

/// Measurement of one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadPoint {
    /// Requests in flight per GPU.
    pub load: i32,
    /// Output tokens per second and GPU.
    pub throughput: f64,
}

/// Result of the points so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchStep {
    /// Load to measure next.
    Measure(i32),
    /// Knee (requests in flight per GPU).
    Knee(i32),
    /// The throughput still grows at the largest load.
    StillGrowing,
    /// The least load is already above the knee.
    AlreadyPast,
}

/// Decides the next step: double the load until the throughput stops growing, then halve the interval around the knee.
/// `points` has different loads, in any order.
pub fn next_step(points: &[LoadPoint], from: i32, to: i32) -> SearchStep {
    let mut points = points.to_vec();
    points.sort_by_key(|point| point.load);
    let [.., last] = &points[..] else {
        return SearchStep::Measure(from);
    };
    let peak = points.iter().map(|point| point.throughput).fold(0.0, f64::max);
    let half = points.iter().rev().find(|point| point.load * 2 <= last.load);
    let flat = half.is_some_and(|half| peak < half.throughput * GROWTH);
    let wanted = mean_at_least(&points, peak * FULL) * NEARLY_ALL;
    let at = points.iter().position(|point| point.throughput >= wanted);
    if !flat && last.load < to && !is_searching(&points) {
        return SearchStep::Measure(last.load.saturating_mul(2).min(to));
    }
    match at {
        Some(0) => SearchStep::AlreadyPast,
        // Every smaller load has less: the end of the range is no knee.
        Some(at) if at + 1 == points.len() && !flat && last.load >= to => SearchStep::StillGrowing,
        Some(at) => between(&points[at - 1], &points[at], wanted),
        None => SearchStep::Measure(from),
    }
}

/// Mean of the throughputs of at least a limit.
fn mean_at_least(points: &[LoadPoint], limit: f64) -> f64 {
    let full = points
        .iter()
        .map(|point| point.throughput)
        .filter(|throughput| *throughput >= limit);
    let (sum, count) = full.fold((0.0, 0.0), |(sum, count), throughput| (sum + throughput, count + 1.0));
    sum / f64::max(count, 1.0)
}

/// Returns true if two loads are closer than a doubling: the search around the knee has begun.
fn is_searching(points: &[LoadPoint]) -> bool {
    points.windows(2).any(|pair| pair[1].load < pair[0].load * 2)
}

/// The middle of two loads beside the knee, or the knee between them.
fn between(below: &LoadPoint, above: &LoadPoint, wanted: f64) -> SearchStep {
    let (low, high) = (f64::from(below.load), f64::from(above.load));
    if high <= low * CLOSE || above.load - below.load < 2 {
        let part = (wanted - below.throughput) / (above.throughput - below.throughput);
        return SearchStep::Knee(whole(low + part.clamp(0.0, 1.0) * (high - low)));
    }
    SearchStep::Measure(whole((low * high).sqrt()))
}

/// The nearest whole number.
#[expect(clippy::cast_possible_truncation, reason = "loads, tokens and milliseconds")]
pub fn whole(number: f64) -> i32 {
    number.round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures an engine until the search ends. Returns the step, and the loads in their order.
    fn search(throughput: impl Fn(f64) -> f64, from: i32, to: i32) -> (SearchStep, Vec<i32>) {
        let mut points = Vec::new();
        loop {
            match next_step(&points, from, to) {
                SearchStep::Measure(load) => {
                    assert!(
                        points.iter().all(|point: &LoadPoint| point.load != load),
                        "{load} again"
                    );
                    assert!((from..=to).contains(&load), "{load}");
                    let throughput = throughput(f64::from(load));
                    points.push(LoadPoint { load, throughput });
                }
                end => return (end, points.iter().map(|point| point.load).collect()),
            }
            assert!(points.len() < 20, "{points:?}");
        }
    }

    #[test]
    fn the_knee_of_an_engine_with_a_largest_batch_is_found_within_ten_percent() {
        for knee in [20, 33, 64, 100, 150, 256, 300] {
            // Noise of 3 %, the same for each load.
            for noise in [0.0, 0.03] {
                let engine = |load: f64| {
                    let sign = if load % 2.0 < 1.0 { 1.0 } else { -1.0 };
                    load.min(f64::from(knee)) * 90.0 * (1.0 + sign * noise)
                };
                let (step, loads) = search(engine, 8, 1024);
                let SearchStep::Knee(found) = step else {
                    panic!("{knee}: {step:?} after {loads:?}")
                };
                let off = f64::from(found) / f64::from(knee) - 1.0;
                assert!(off.abs() <= 0.10, "{knee}: found {found} by {loads:?}");
                assert!(loads.len() <= 12, "{loads:?}");
            }
        }
    }

    #[test]
    fn the_knee_of_an_engine_that_saturates_softly_has_nearly_all_of_its_throughput() {
        let engine = |load: f64| 20_000.0 * (1.0 - (-load / 60.0).exp());
        let (step, _) = search(engine, 8, 1024);
        let SearchStep::Knee(found) = step else {
            panic!("{step:?}")
        };
        let share = engine(f64::from(found)) / engine(1024.0);
        assert!((0.90..0.97).contains(&share), "{found}: {share}");
    }

    #[test]
    fn a_range_without_the_knee_is_reported() {
        assert_eq!(search(|load| load, 8, 64).0, SearchStep::StillGrowing);
        assert_eq!(search(|_| 100.0, 8, 64).0, SearchStep::AlreadyPast);
        assert_eq!(search(|load| 1000.0 / load, 8, 64).0, SearchStep::AlreadyPast);
    }
}
