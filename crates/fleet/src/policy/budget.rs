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
    use_of_gpus: GpuUse,
}

impl<'a> Meter<'a> {
    /// Budgets that apply now, for this many selected nodes.
    pub(super) fn new(budgets: Vec<&'a Budget>, selected: i64, use_of_gpus: GpuUse) -> Self {
        Self {
            budgets,
            selected,
            active: Vec::new(),
            use_of_gpus,
        }
    }

    /// Counts a validation that starts.
    pub(super) fn start(&mut self, reason: DueReason) {
        self.use_of_gpus.reserve();
        self.add(Some(reason));
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
                has_room
                    && budget
                        .gpu_minutes_per_day
                        .is_none_or(|most| self.use_of_gpus.is_below(most))
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

    /// Day (UTC) on which the GPU minutes suffice for the last of these validations; `None` if it is today or unknown. `due` are
    /// the reasons of those that have not begun.
    pub(super) fn last_day(&self, validations: i64, due: &[DueReason], now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let budgets = self.budgets.iter();
        let concerned = budgets.filter(|budget| due.iter().any(|reason| applies(budget, *reason)));
        let minutes = concerned.filter_map(|budget| budget.gpu_minutes_per_day);
        let tightest = minutes.filter(|minutes| *minutes > 0).min()?;
        self.use_of_gpus.last_day(validations, tightest, now)
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

/// Use of GPUs by the validations of a policy (GPU seconds).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GpuUse {
    /// Since midnight (UTC).
    today: i64,
    /// Expected of the active validations until their end.
    expected: i64,
    /// Median of the validations that measured their node; `None` while there is none.
    usual: Option<i64>,
}

impl GpuUse {
    /// Reads what validations have used, and what the active ones will use.
    pub(super) fn new(validations: &[&ValidationFacts], now: DateTime<Utc>) -> Self {
        // An Error may have held the GPUs for seconds.
        let measured = validations.iter().filter(|validation| validation.measured().is_some());
        let mut measured: Vec<i64> = measured
            .filter_map(|one| used(one, DateTime::UNIX_EPOCH, now))
            .collect();
        measured.sort_unstable();
        let usual = measured.get(measured.len() / 2).copied();
        let midnight = midnight(now);
        let mut gpu_use = Self {
            today: validations
                .iter()
                .map(|one| used(one, midnight, now).unwrap_or_default() + used_earlier(one, midnight))
                .sum(),
            expected: 0,
            usual,
        };
        for active in validations.iter().filter(|validation| validation.is_active()) {
            let already = used(active, DateTime::UNIX_EPOCH, now).unwrap_or_default();
            gpu_use.reserve();
            gpu_use.expected -= already.min(usual.unwrap_or_default());
        }
        gpu_use
    }

    /// GPU minutes since midnight (UTC).
    pub(super) fn minutes_today(&self) -> i64 {
        self.today / 60
    }

    /// Expects a whole validation. The use of the first one is unknown, so it is the only one.
    fn reserve(&mut self) {
        self.expected = self.expected.saturating_add(self.usual.unwrap_or(i64::MAX));
    }

    /// Returns true if a validation may start with this budget. The last one of a day may end beyond it.
    fn is_below(&self, minutes: i64) -> bool {
        self.today.saturating_add(self.expected) < 60 * minutes
    }

    fn last_day(&self, validations: i64, minutes: i64, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let left = (60 * minutes - self.today).max(0);
        let beyond = validations.saturating_mul(self.usual?) - left;
        let days = (beyond > 0).then(|| 1 + (beyond - 1) / (60 * minutes))?;
        midnight(now).checked_add_signed(TimeDelta::try_days(days)?)
    }
}

/// GPU seconds since midnight of a validation's earlier runs.
fn used_earlier(validation: &ValidationFacts, midnight: DateTime<Utc>) -> i64 {
    let earlier = validation.outline.earlier;
    let today = earlier.filter(|earlier| earlier.until >= midnight);
    today.map(|earlier| earlier.seconds).unwrap_or_default()
}

/// GPU seconds that the present or last run of a validation has used since a time.
fn used(validation: &ValidationFacts, from: DateTime<Utc>, now: DateTime<Utc>) -> Option<i64> {
    let since = validation.outline.gpus_since?.max(from);
    let ended = validation.ended().map(|(at, _)| at);
    let until = validation.outline.gpus_until.or(ended).unwrap_or(now);
    Some(validation.outline.gpus * (until - since).max(TimeDelta::zero()).num_seconds())
}

/// Begin of the day (UTC).
pub(super) fn midnight(now: DateTime<Utc>) -> DateTime<Utc> {
    let second = now.timestamp();
    DateTime::from_timestamp(second - second.rem_euclid(86_400), 0).unwrap_or(now)
}
