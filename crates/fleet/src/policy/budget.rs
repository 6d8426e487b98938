//! Budgets of a policy, and their use.

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use perfval_api::fleet::{Budget, DueReason};

use super::facts::ValidationFacts;

/// Budgets with the validations that use them.
pub(super) struct Meter<'a> {
    budgets: Vec<&'a Budget>,
    selected: i64,
    /// Active validations by the reason of their node; `None` counts in every budget.
    active: Vec<(Option<DueReason>, i64)>,
    minutes: i64,
}

impl<'a> Meter<'a> {
    /// Budgets that apply now, for this many selected nodes. Today's validations have used `minutes` GPU minutes.
    pub(super) fn new(budgets: Vec<&'a Budget>, selected: i64, minutes: i64) -> Self {
        Self {
            budgets,
            selected,
            active: Vec::new(),
            minutes,
        }
    }

    /// Counts an active validation.
    pub(super) fn add(&mut self, reason: Option<DueReason>) {
        match self.active.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => self.active.push((reason, 1)),
        }
    }

    /// Returns true if every budget for this reason has room for one more validation.
    pub(super) fn allows(&self, reason: DueReason) -> bool {
        self.budgets
            .iter()
            .filter(|budget| applies(budget, reason))
            .all(|budget| {
                let counts = self.active.iter();
                let counts = counts.filter(|(active, _)| active.is_none_or(|active| applies(budget, active)));
                let used: i64 = counts.map(|(_, count)| count).sum();
                let has_room = self.most(budget).is_none_or(|most| used < most);
                has_room && budget.gpu_minutes_per_day.is_none_or(|most| self.minutes < most)
            })
    }

    /// Most validations at once for this reason; `None` if no budget limits the nodes.
    pub(super) fn limit(&self, reason: DueReason) -> Option<i64> {
        let budgets = self.budgets.iter().filter(|budget| applies(budget, reason));
        let limits = budgets.filter_map(|budget| match budget.gpu_minutes_per_day {
            Some(0) => Some(0),
            _ => self.most(budget),
        });
        limits.min()
    }

    /// A percentage above zero allows at least one node.
    fn most(&self, budget: &Budget) -> Option<i64> {
        Some(match budget.nodes.as_ref()? {
            IntOrString::Int(count) => i64::from(*count),
            IntOrString::String(text) => match text.strip_suffix('%') {
                Some(percent) => {
                    let hundredths = self.selected * percent.parse::<i64>().unwrap_or_default();
                    // Rounded up.
                    (hundredths + 99) / 100
                }
                None => text.parse().unwrap_or_default(),
            },
        })
    }
}

fn applies(budget: &Budget, reason: DueReason) -> bool {
    budget.reasons.is_empty() || budget.reasons.contains(&reason)
}

/// GPU minutes that validations have used since midnight (UTC).
pub(super) fn count_minutes(validations: &[&ValidationFacts], now: DateTime<Utc>) -> i64 {
    let midnight = midnight(now);
    let seconds: i64 = validations
        .iter()
        .filter_map(|validation| {
            let since = validation.outline.gpus_since?.max(midnight);
            let ended = validation.ended().map(|(at, _)| at);
            let until = validation.outline.gpus_until.or(ended).unwrap_or(now);
            Some(validation.outline.gpus * (until - since).max(TimeDelta::zero()).num_seconds())
        })
        .sum();
    seconds / 60
}

/// Begin of the day (UTC).
pub(super) fn midnight(now: DateTime<Utc>) -> DateTime<Utc> {
    let second = now.timestamp();
    DateTime::from_timestamp(second - second.rem_euclid(86_400), 0).unwrap_or(now)
}
