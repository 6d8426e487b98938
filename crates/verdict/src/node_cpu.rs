//! CPUs of the node under test: the kernel's account of the whole machine, which every container may read.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::gate::show;
use crate::generator::{grown, measured_phase, percent, waited_us};
use crate::node_facts::name;
use crate::number::bounded;

/// Busy part of all CPUs from which they are full.
pub(crate) const BUSY: Decimal = Decimal::from_parts(90, 0, 0, false, 0);
/// Part of the time in which threads waited for a CPU, from which the node has too few of them. A node can be busy without:
/// one thread on each CPU waits for none. It does not suffice alone: a container that its own limit stops waits, too, and on
/// a node of a hundred CPUs some thread nearly always does.
pub(crate) const WAITING: Decimal = Decimal::from_parts(50, 0, 0, false, 0);

/// Counters of a node at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeReading {
    cpus: Option<i64>,
    /// Time of all CPUs, and the part of it in which they worked (ticks).
    all: Option<i64>,
    busy: Option<i64>,
    waited_us: Option<i64>,
}

impl NodeReading {
    /// Reads `/proc/stat` and `/proc/pressure/cpu`; older kernels have no pressure.
    pub fn read(stat: Option<&str>, pressure: Option<&str>) -> Self {
        let ticks = stat.and_then(ticks);
        let cpus = |stat: &str| {
            let of_one = |line: &&str| {
                line.strip_prefix("cpu")
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            };
            i64::try_from(stat.lines().filter(of_one).count())
                .ok()
                .filter(|cpus| *cpus > 0)
        };
        Self {
            cpus: stat.and_then(cpus),
            all: ticks.map(|(all, _)| all),
            busy: ticks.map(|(_, busy)| busy),
            waited_us: pressure.and_then(waited_us),
        }
    }
}

/// All ticks of the line `cpu  user nice system idle iowait irq softirq steal …`, and those in which a CPU worked. Stolen ones
/// count: what the machine below took was not free either. Those of guests are in `user` already.
fn ticks(stat: &str) -> Option<(i64, i64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<i64> = line
        .split_whitespace()
        .take(8)
        .map_while(|field| field.parse().ok())
        .collect();
    let idle = ticks.get(3)?.checked_add(ticks.get(4).copied().unwrap_or_default())?;
    let all = ticks.iter().try_fold(0_i64, |sum, ticks| sum.checked_add(*ticks))?;
    Some((all, all - idle))
}

/// CPUs of the node under test in the measured phase; unknown parts are absent.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeCpu {
    /// Name of the node.
    #[serde(deserialize_with = "name")]
    pub node: String,
    /// Seconds between the readings that this is from.
    #[serde(deserialize_with = "bounded")]
    pub seconds: i64,
    /// Number of its CPUs.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub cpus: Option<i64>,
    /// Part of their time in which they worked (percent).
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub busy_percent: Option<Decimal>,
    /// Time in which some threads waited for a CPU (percent; Linux calls it pressure).
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Option::is_none")]
    pub waiting_percent: Option<Decimal>,
}

impl NodeCpu {
    /// Summary of the readings in the measured phase, as in [`crate::generator::GeneratorCpu::new`]; `None` if nothing could be
    /// read.
    pub fn new(node: &str, readings: &[(i64, NodeReading)], measured: Option<Decimal>, over: i64) -> Option<Self> {
        let [(begin, first), (end, last)] = measured_phase(readings, measured, over)?;
        let seconds = end - begin;
        let micros = Decimal::from(seconds) * Decimal::from(1_000_000);
        let busy = grown(first.busy, last.busy).zip(grown(first.all, last.all));
        let busy_percent = busy.and_then(|(busy, all)| percent(busy, all));
        let waiting_percent = grown(first.waited_us, last.waited_us).and_then(|waited| percent(waited, micros));
        (busy_percent.is_some() || waiting_percent.is_some()).then(|| Self {
            node: node.to_owned(),
            seconds,
            cpus: last.cpus,
            busy_percent,
            waiting_percent,
        })
    }

    /// Returns true if threads waited because all CPUs were busy. Unknown is not full.
    pub fn is_full(&self) -> bool {
        self.busy_percent.is_some_and(|busy| busy >= BUSY)
            && self.waiting_percent.is_none_or(|waiting| waiting >= WAITING)
    }

    /// `the 2 CPUs of node n1 were 99 % busy, and threads waited for one in 97 % of the time`, where they are full.
    pub fn in_words(&self) -> String {
        let cpus = self
            .cpus
            .map_or_else(|| "CPUs".to_owned(), |cpus| format!("{cpus} CPUs"));
        let busy = self.busy_percent.map(show).unwrap_or_default();
        let waiting = self
            .waiting_percent
            .map(|percent| format!(", and threads waited for one in {} % of the time", show(percent)));
        format!(
            "the {cpus} of node {} were {busy} % busy{}",
            self.node,
            waiting.unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(busy: i64, idle: i64) -> String {
        format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 0 0 1 0 0 0 0 0 0\ncpu1 1 0 0 1 0 0 0 0 0 0\nintr 5\n")
    }

    fn cpu(busy: i64, idle: i64, waited: Option<i64>) -> Option<NodeCpu> {
        let at = |second, busy, idle, waited: Option<i64>| {
            let pressure = waited
                .map(|us| format!("some avg10=1.00 avg60=0.50 avg300=0.10 total={us}\nfull avg10=0.00 total=7\n"));
            (second, NodeReading::read(Some(&stat(busy, idle)), pressure.as_deref()))
        };
        // Making prompts takes 9 s, the measured phase 60 s, the flush 2 s.
        let readings = [
            at(0, 0, 0, waited.map(|_| 0)),
            at(9, 1_800, 0, waited.map(|_| 9_000_000)),
            at(69, 1_800 + busy, idle, waited.map(|us| 9_000_000 + us)),
            at(71, 1_800 + busy, idle + 400, waited.map(|us| 9_000_000 + us)),
        ];
        NodeCpu::new("n1", &readings, Some(60.into()), 71)
    }

    #[test]
    fn a_node_is_full_where_all_cpus_are_busy_and_threads_wait() {
        let full = cpu(11_880, 120, Some(58_200_000)).expect("counters");
        assert_eq!(
            full.in_words(),
            "the 2 CPUs of node n1 were 99 % busy, and threads waited for one in 97 % of the time"
        );
        assert!(full.is_full());
        for (busy, idle, waited, is_full, why) in [
            (11_880, 120, Some(6_000_000), false, "a thread for each CPU"),
            (
                6_000,
                6_000,
                Some(58_200_000),
                false,
                "containers that their own limits stop, beside idle CPUs",
            ),
            (11_880, 120, None, true, "a kernel without pressure"),
            (6_000, 6_000, None, false, "an idle half"),
        ] {
            assert_eq!(cpu(busy, idle, waited).expect("counters").is_full(), is_full, "{why}");
        }
    }

    #[test]
    fn a_node_whose_counters_cannot_be_read_is_unknown() {
        let without = |stat: Option<&str>, pressure: Option<&str>| {
            let readings = [0, 60, 62].map(|second| (second, NodeReading::read(stat, pressure)));
            NodeCpu::new("n1", &readings, Some(60.into()), 62)
        };
        assert_eq!(without(None, None), None);
        assert_eq!(without(Some("cpu  a b\n"), Some("none")), None);
        assert_eq!(
            without(Some("cpu  9223372036854775807 1 0 0 0 0 0 0\n"), None),
            None,
            "too large"
        );
        let waiting = without(None, Some("some total=5\n")).expect("pressure alone");
        assert!(!waiting.is_full(), "{waiting:?}");
    }
}
