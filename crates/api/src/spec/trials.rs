use kube::KubeSchema;
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::defaults::number;
use crate::{quantity, rules};

/// Number of trials and the rule for the verdict.
///
/// The rule on `max` is Wald's: between pass rates of 0.6 and 0.05, ⌈ln((1-e)/e) / ln(0.95/0.4)⌉ consecutive misses are
/// needed before a deployment may fail with error bound e.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.rule != 'Sequential' || self.max >= (self.errorBoundPercent >= 16 ? 2 : self.errorBoundPercent >= 7 ? 3 : self.errorBoundPercent >= 4 ? 4 : self.errorBoundPercent >= 2 ? 5 : 6)")
    .message("so few trials could not fail a deployment that misses its gates narrowly: with rule Sequential write a max of at least 6 for errorBoundPercent 1, 5 for 2 and 3, 4 from 4, 3 from 7, 2 from 16; or write rule All or Single"))]
#[x_kube(validation = Rule::new("!has(self.min) || self.rule == 'Single' || self.min <= self.max")
    .message("min is above max: write a min of at most max"))]
pub struct TrialsSpec {
    /// Rule for the verdict. `Sequential`: trials repeat until the error bounds are kept. `All`: `max` passes are
    /// needed, and the first miss fails. `Single`: one trial decides, or most of `min` trials, without `max` and
    /// `errorBoundPercent`.
    #[serde(default)]
    pub rule: TrialRule,
    /// Bound on wrong passes and wrong fails (percent, 1–20; Sequential only).
    #[serde(default = "number::<5>")]
    #[schemars(range(min = 1, max = 20))]
    pub error_bound_percent: i32,
    /// Maximum number of trials (1–20).
    #[serde(default = "number::<8>")]
    #[schemars(range(min = 1, max = 20))]
    pub max: i32,
    /// Minimum number of valid trials (1–20, at most `max` unless the rule is Single). Absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub min: Option<i32>,
    /// Failed or short requests of a trial above which it is a miss (quantity, percent, 0–100).
    #[serde(default = "default_max_failed_requests_percent")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = rules::percent())]
    pub max_failed_requests_percent: String,
}

impl TrialsSpec {
    /// Share of requests that may fail (percent). A text that is not a number allows none; admission refuses it.
    pub fn allowed_percent(&self) -> Decimal {
        quantity::parse(&self.max_failed_requests_percent).unwrap_or_default()
    }

    /// Returns true if more of `all` requests failed than a trial allows.
    pub fn exceeds_allowed(&self, failed: i64, all: i64) -> bool {
        Decimal::from(failed) * Decimal::ONE_HUNDRED > Decimal::from(all) * self.allowed_percent()
    }
}

/// Rule that turns trials into a verdict.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrialRule {
    /// Wald's sequential probability ratio test between a healthy and a degraded deployment.
    #[default]
    Sequential,
    /// `max` passes are needed; the first miss fails.
    All,
    /// One trial decides, or most of the minimum.
    Single,
}

fn default_max_failed_requests_percent() -> String {
    "1".into()
}
