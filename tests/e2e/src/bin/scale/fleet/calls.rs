//! Requests of the operator, by verb and resource.

use std::collections::BTreeMap;
use std::time::Duration;

use perfval_testkit::api_server::Call;

/// Length of the busiest span (s).
const SPAN: u64 = 10;

/// Requests until now.
#[derive(Clone, Default)]
pub struct Calls(BTreeMap<Kind, usize>);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    verb: &'static str,
    resource: String,
    writes: bool,
}

impl Calls {
    pub fn add(&mut self, calls: Vec<Call>) {
        for call in calls {
            let kind = Kind {
                writes: call.writes(),
                verb: call.verb,
                resource: call.resource,
            };
            *self.0.entry(kind).or_default() += 1;
        }
    }

    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// Requests of a verb.
    pub fn of_verb(&self, verb: &str) -> usize {
        self.sum(|kind| kind.verb == verb)
    }

    /// Requests for a resource with a verb.
    pub fn of(&self, verb: &str, resource: &str) -> usize {
        self.sum(|kind| kind.verb == verb && kind.resource == resource)
    }

    /// Writes of runs: without leases, baselines and the status of the policy.
    pub fn writes(&self) -> usize {
        self.sum(|kind| {
            let resource = kind.resource.as_str();
            let is_other =
                matches!(resource, "leases" | "perfvalidationpolicies/status") || resource.starts_with("perfbaselines");
            kind.writes && !is_other
        })
    }

    /// Requests that write, or all others, by verb and resource, the most frequent first.
    pub fn most(&self, writes: bool) -> Vec<(String, usize)> {
        let found = self.0.iter().filter(|(kind, _)| kind.writes == writes);
        let mut found: Vec<(String, usize)> = found
            .map(|(kind, count)| (format!("{} {}", kind.verb, kind.resource), *count))
            .collect();
        found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        found
    }

    fn sum(&self, is: impl Fn(&Kind) -> bool) -> usize {
        let fit = self.0.iter().filter(|(kind, _)| is(kind));
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
    fn writes_leave_out_the_lease_the_policy_and_what_stores_nothing() {
        let call = |verb, resource: &str| Call {
            verb,
            group: String::new(),
            resource: resource.into(),
            namespace: None,
            name: None,
            dry_run: false,
        };
        let mut calls = Calls::default();
        let patch = call("patch", "perfvalidations/status");
        calls.add(vec![
            call("update", "leases"),
            patch.clone(),
            patch,
            call("list", "pods"),
            call("create", "selfsubjectaccessreviews"),
            Call {
                dry_run: true,
                ..call("create", "dynamographdeployments")
            },
        ]);
        assert_eq!((calls.writes(), calls.total()), (2, 6));
        assert_eq!(calls.most(true)[0], ("patch perfvalidations/status".to_owned(), 2));
    }

    #[test]
    fn the_busiest_ten_seconds_are_found() {
        let mut load = Load::default();
        // 100 requests within five seconds.
        for second in 0..30_u64 {
            let burst = second.clamp(12, 17) - 12;
            load.sample(Duration::from_secs(second), usize::try_from(burst).unwrap_or(0) * 20);
        }
        assert!((load.peak() - 10.0).abs() < 1e-9, "{}", load.peak());
    }
}
