use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How trials make a verdict.
///
/// The rule on `max` is Wald's: between pass rates of 0.6 and 0.05, ⌈ln((1-e)/e) / ln(0.95/0.4)⌉ straight misses are
/// needed before a deployment may fail with error bound e.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.rule != 'Sequential' || self.max >= (self.errorPercent >= 16 ? 2 : self.errorPercent >= 7 ? 3 : self.errorPercent >= 4 ? 4 : self.errorPercent >= 2 ? 5 : 6)")
    .message("so few trials could not fail a deployment that misses its gates narrowly: with rule Sequential write a max of at least 6 for errorPercent 1, 5 for 2 and 3, 4 from 4, 3 from 7, 2 from 16; or write rule All or Single"))]
pub struct TrialsSpec {
    /// Rule that turns trials into a verdict. `Sequential`: repeats until the error bounds are kept. `All`: `max` passes
    /// needed, the first miss fails. `Single`: one trial decides, `max` and `errorPercent` are ignored.
    #[serde(default)]
    pub rule: TrialRule,
    /// Bound on wrong passes and on wrong fails (percent, 1 to 20; Sequential only).
    #[serde(default = "default_error_percent")]
    #[schemars(range(min = 1, max = 20))]
    pub error_percent: i32,
    /// Most trials of a run (1 to 20); for All the number of passes needed.
    #[serde(default = "default_max_trials")]
    #[schemars(range(min = 1, max = 20))]
    pub max: i32,
}

/// Rule that turns trials into a verdict.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrialRule {
    /// Wald's sequential probability ratio test between a healthy and a degraded deployment.
    #[default]
    Sequential,
    /// `max` passes needed; the first miss fails.
    All,
    /// The one trial decides.
    Single,
}

impl Default for TrialsSpec {
    fn default() -> Self {
        Self {
            rule: TrialRule::default(),
            error_percent: default_error_percent(),
            max: default_max_trials(),
        }
    }
}

fn default_error_percent() -> i32 {
    5
}

fn default_max_trials() -> i32 {
    8
}
