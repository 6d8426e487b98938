//! Requests of the operator, by verb and resource.

use std::collections::BTreeMap;
use std::time::Duration;

use perfval_testkit::api_server::Call;

/// Verbs that write.
const WRITES: [&str; 4] = ["create", "update", "patch", "delete"];
/// Length of the busiest span (s).
const SPAN: u64 = 10;

/// Requests until now.
#[derive(Clone, Default)]
pub struct Calls(BTreeMap<(&'static str, String), usize>);

impl Calls {
    pub fn add(&mut self, calls: Vec<Call>) {
        for call in calls {
            *self.0.entry((call.verb, call.resource)).or_default() += 1;
        }
    }

    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// Requests of a verb.
    pub fn of_verb(&self, verb: &str) -> usize {
        self.sum(|known, _| known == verb)
    }

    /// Requests for a resource with a verb.
    pub fn of(&self, verb: &str, resource: &str) -> usize {
        self.sum(|known, of| known == verb && of == resource)
    }

    /// Writes of runs: without leases, baselines and the status of the policy.
    pub fn writes(&self) -> usize {
        self.sum(|verb, resource| {
            let is_other =
                matches!(resource, "leases" | "perfvalidationpolicies/status") || resource.starts_with("perfbaselines");
            WRITES.contains(&verb) && !is_other
        })
    }

    /// Writes by verb and resource, the most frequent first.
    pub fn most_writes(&self) -> Vec<(String, usize)> {
        let writes = self.0.iter().filter(|((verb, _), _)| WRITES.contains(verb));
        let mut writes: Vec<(String, usize)> = writes
            .map(|((verb, resource), count)| (format!("{verb} {resource}"), *count))
            .collect();
        writes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        writes
    }

    /// Reads by verb and resource, the most frequent first.
    pub fn most_reads(&self) -> Vec<(String, usize)> {
        let reads = self.0.iter().filter(|((verb, _), _)| !WRITES.contains(verb));
        let mut reads: Vec<(String, usize)> = reads
            .map(|((verb, resource), count)| (format!("{verb} {resource}"), *count))
            .collect();
        reads.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        reads
    }

    fn sum(&self, is: impl Fn(&str, &str) -> bool) -> usize {
        let fit = self.0.iter().filter(|((verb, resource), _)| is(verb, resource));
        fit.map(|(_, count)| count).sum()
    }
}

/// Requests over time.
#[derive(Default)]
pub struct Load(Vec<(Duration, usize)>);

impl Load {
    /// Notes the requests until a time since the start.
    pub fn sample(&mut self, at: Duration, requests: usize) {
        self.0.push((at, requests));
    }

    /// Most requests a second over ten seconds.
    #[expect(clippy::cast_precision_loss, reason = "requests")]
    pub fn peak(&self) -> f64 {
        let span = Duration::from_secs(SPAN);
        let rate = |(place, (at, count)): (usize, &(Duration, usize))| {
            let since = |earlier: &(Duration, usize)| Some((at.checked_sub(earlier.0)?, earlier.1));
            let mut earlier = self.0[..place].iter().rev().filter_map(since);
            let (time, before) = earlier.find(|(time, _)| *time >= span)?;
            Some((count - before) as f64 / time.as_secs_f64())
        };
        self.0.iter().enumerate().filter_map(rate).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_leave_out_the_lease_and_the_policy() {
        let call = |verb, resource: &str| Call {
            verb,
            group: String::new(),
            resource: resource.into(),
            namespace: None,
            name: None,
        };
        let mut calls = Calls::default();
        let patch = call("patch", "perfvalidations/status");
        calls.add(vec![
            call("update", "leases"),
            patch.clone(),
            patch,
            call("list", "pods"),
        ]);
        assert_eq!((calls.writes(), calls.total()), (2, 4));
        assert_eq!(calls.most_writes()[0], ("patch perfvalidations/status".to_owned(), 2));
    }

    #[test]
    fn the_busiest_ten_seconds_are_found() {
        let mut load = Load::default();
        for second in 0..30 {
            load.sample(
                Duration::from_secs(second),
                usize::try_from(second.min(20)).unwrap_or(0) * 5,
            );
        }
        assert!((load.peak() - 5.0).abs() < 1e-9, "{}", load.peak());
    }
}
