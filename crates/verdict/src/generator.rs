//! CPU of the load generator from its own cgroup: the kernel's account, not AIPerf's.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde::{Deserialize, Serialize};

use crate::gate::show;
use crate::number::bounded;

/// AIPerf ends this long after its last request (s): it flushes its records and the frontend's metrics first.
const FLUSH: i64 = 2;
/// Part of the periods of its CPU limit in which a container was stopped, above which the limit is too low. Without a
/// limit, and with a limit that is never reached, it is 0.
const THROTTLED: Decimal = Decimal::TEN;
/// Part of the time in which some of its threads waited for a CPU, above which the node is too busy for it. 0.0 to 1.5 on
/// the published healthy nodes of eight H100.
const PRESSED: Decimal = Decimal::from_parts(50, 0, 0, false, 0);

/// The counters of a cgroup at one moment. What the kernel does not count is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuReading {
    used_us: Option<i64>,
    periods: Option<i64>,
    throttled: Option<i64>,
    pressed_us: Option<i64>,
}

impl CpuReading {
    /// Reads `cpu.stat`, and `cpu.pressure` where the kernel has it.
    pub fn read(stat: &str, pressure: Option<&str>) -> Self {
        let counter = |name: &str| {
            let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
        };
        Self {
            used_us: counter("usage_usec"),
            periods: counter("nr_periods"),
            throttled: counter("nr_throttled"),
            pressed_us: pressure.and_then(waited_us),
        }
    }
}

/// The limit (CPUs) in `cpu.max`; none where there is no limit.
pub fn cpu_limit(max: &str) -> Option<Decimal> {
    let (quota, period) = max.trim().split_once(' ')?;
    let (quota, period): (Decimal, Decimal) = (quota.parse().ok()?, period.parse().ok()?);
    Some(quota.checked_div(period)?.round_dp(2).normalize())
}

/// CPU of the load generator in the measured phase.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct GeneratorCpu {
    /// Seconds between the readings that this is from.
    #[serde(deserialize_with = "bounded")]
    pub seconds: i64,
    /// CPUs that it used, mean.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub used: Option<Decimal>,
    /// CPUs that it may use; absent: as many as there are.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub limit: Option<Decimal>,
    /// Periods of its limit in which it was stopped (percent).
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub throttled_percent: Option<Decimal>,
    /// Time in which some of its threads waited for a CPU (percent; Linux calls it pressure).
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub waiting_percent: Option<Decimal>,
}

impl GeneratorCpu {
    /// Use between the readings of the measured phase, each with its second since the start of AIPerf, which was over at the
    /// second `over`. `None` with fewer than two.
    pub fn new(
        readings: &[(i64, CpuReading)],
        limit: Option<Decimal>,
        measured: Option<Decimal>,
        over: i64,
    ) -> Option<Self> {
        let [(begin, first), (end, last)] = measured_phase(readings, measured, over)?;
        let seconds = end - begin;
        let micros = Decimal::from(seconds) * Decimal::from(1_000_000);
        let used = grown(first.used_us, last.used_us).map(|used| (used / micros).round_dp(2).normalize());
        let periods = grown(first.periods, last.periods);
        let throttled = grown(first.throttled, last.throttled);
        Some(Self {
            seconds,
            used,
            limit,
            // No period is no limit.
            throttled_percent: throttled.zip(periods).and_then(|(part, all)| percent(part, all)),
            waiting_percent: grown(first.pressed_us, last.pressed_us).and_then(|part| percent(part, micros)),
        })
    }

    /// Returns true if the kernel held it up for much of the time.
    pub fn is_short(&self) -> bool {
        self.throttled_percent.is_some_and(|percent| percent >= THROTTLED)
            || self.waiting_percent.is_some_and(|percent| percent >= PRESSED)
    }

    /// `it used 0.5 CPUs, its limit is 0.5, the limit stopped it in 97 % of its periods`.
    pub fn in_words(&self) -> String {
        let used = self.used.map(|used| format!("it used {} CPUs", show(used)));
        let limit = self.limit.map(|limit| format!("its limit is {}", show(limit)));
        let throttled = self.throttled_percent;
        let throttled = throttled.map(|percent| format!("the limit stopped it in {} % of its periods", show(percent)));
        let waiting = self.waiting_percent;
        let waiting =
            waiting.map(|percent| format!("threads of it waited for a CPU in {} % of the time", show(percent)));
        let known: Vec<String> = [used, limit, throttled, waiting].into_iter().flatten().collect();
        known.join(", ")
    }
}

/// First and last reading of the measured phase, which ended shortly before AIPerf was over. `None` with fewer than two.
pub(crate) fn measured_phase<T: Copy>(
    readings: &[(i64, T)],
    measured: Option<Decimal>,
    over: i64,
) -> Option<[(i64, T); 2]> {
    let end = over.saturating_sub(FLUSH);
    let length = measured.and_then(|seconds| seconds.ceil().to_i64());
    let begin = length.map_or(i64::MIN, |length| end.saturating_sub(length));
    let within = |(second, _): &&(i64, T)| (begin..=end).contains(second);
    let (first, last) = (readings.iter().find(within)?, readings.iter().rfind(within)?);
    (last.0 > first.0).then_some([*first, *last])
}

/// Time (µs) in which some threads waited for a CPU, from a `cpu.pressure` or `/proc/pressure/cpu`.
pub(crate) fn waited_us(pressure: &str) -> Option<i64> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    let mut fields = some.split_whitespace();
    fields.find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

/// Growth of a counter; `None` if it went backwards.
pub(crate) fn grown(first: Option<i64>, last: Option<i64>) -> Option<Decimal> {
    let more = last?.checked_sub(first?)?;
    (more >= 0).then(|| more.into())
}

pub(crate) fn percent(part: Decimal, whole: Decimal) -> Option<Decimal> {
    let percent = (part * Decimal::ONE_HUNDRED).checked_div(whole)?;
    Some(percent.min(Decimal::ONE_HUNDRED).round_dp(1).normalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRESSURE: &str =
        "some avg10=1.00 avg60=0.50 avg300=0.10 total=2000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";

    fn stat(used: i64, periods: i64, throttled: i64) -> String {
        format!(
            "usage_usec {used}\nuser_usec 1\nsystem_usec 2\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec 5\n"
        )
    }

    fn cpu(last: &str, pressure: Option<&str>, measured: Option<i64>) -> Option<GeneratorCpu> {
        // Making prompts takes 9 s, the measured phase 60 s, the flush 2 s.
        let readings = [
            (0, CpuReading::read(&stat(0, 0, 0), Some("some total=0"))),
            (9, CpuReading::read(&stat(9_000_000, 90, 0), Some("some total=0"))),
            (69, CpuReading::read(last, pressure)),
            (
                71,
                CpuReading::read(&stat(90_000_000, 800, 700), Some("some total=99000000")),
            ),
        ];
        GeneratorCpu::new(&readings, cpu_limit("50000 100000"), measured.map(Decimal::from), 71)
    }

    #[test]
    fn the_measured_phase_counts_and_nothing_else() {
        let throttled = cpu(&stat(39_000_000, 690, 582), Some(PRESSURE), Some(60)).unwrap();
        assert_eq!(
            throttled.in_words(),
            "it used 0.5 CPUs, its limit is 0.5, the limit stopped it in 97 % of its periods, threads of it waited for a CPU in 3.3 % of the time"
        );
        assert!(throttled.is_short());
        let free = cpu(&stat(39_000_000, 690, 6), Some("some avg10=0 total=900000"), Some(60)).unwrap();
        assert!(!free.is_short(), "{free:?}");
        let pressed = cpu(&stat(39_000_000, 690, 6), Some("some avg10=0 total=40000000"), Some(60)).unwrap();
        assert!(pressed.is_short(), "{pressed:?}");
    }

    #[test]
    fn seconds_after_the_measured_phase_are_left_out() {
        let readings: Vec<(i64, ())> = (0..40).map(|second| (second, ())).collect();
        let phase = |measured: Option<i64>, over| {
            let ends = measured_phase(&readings, measured.map(Decimal::from), over)?;
            Some(ends.map(|(second, ())| second))
        };
        assert_eq!(phase(None, 39), Some([0, 37]));
        assert_eq!(phase(Some(5), 39), Some([32, 37]));
        assert_eq!(phase(None, 9), Some([0, 7]), "requests waited for their time-out");
        assert_eq!(phase(None, -260), None);
    }

    #[test]
    fn counters_that_the_kernel_lacks_are_absent() {
        // cgroup v1 counts periods only, in other words.
        let old = cpu("nr_periods 690\nnr_throttled 6\nthrottled_time 5\n", None, Some(60)).unwrap();
        assert_eq!((old.used, old.waiting_percent), (None, None));
        assert_eq!(old.throttled_percent, Some(Decimal::ONE));
        let broken = cpu("usage_usec -3\nnr_periods x\n\u{0}", Some("some total=-1"), Some(60)).unwrap();
        assert_eq!(
            (broken.used, broken.throttled_percent, broken.waiting_percent),
            (None, None, None)
        );
        assert!(!broken.is_short());
        assert_eq!(cpu(&stat(0, 0, 0), None, Some(0)), None, "no two readings");
        for (max, limit) in [
            ("max 100000", None),
            ("200000 100000\n", Some(2.into())),
            ("1 0", None),
            ("", None),
        ] {
            assert_eq!(cpu_limit(max), limit, "{max}");
        }
    }
}
