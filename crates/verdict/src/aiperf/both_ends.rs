//! The mean of a request's time at both ends: as AIPerf measured it, and as the frontend's own histogram reports it.

use perfval_api::{Metric, Statistic};
use rust_decimal::Decimal;

use super::Report;
use crate::gate::show;

/// Part of a request's time that passes outside of the frontend, from which the load generator measured itself. Highest of
/// the 227 recorded trials with both numbers (tests/fidelity/recorded.jsonl.gz): 0.03 healthy (91 on lab, rig and H200;
/// from -0.05, because the frontend counts a little longer), 0.23 behind a frontend with 3 % of a CPU, which comes late to
/// a request before it begins to count. The throttled generators of the lab have 0.63 to 0.75, a busy loop beside the demo
/// 0.81.
pub(crate) const LARGE: Decimal = Decimal::from_parts(4, 0, 0, false, 1);
/// Time outside of the frontend (ms) up to which it is ordinary work: 36 at most in the healthy trials of the lab, 231 at
/// least with a throttled generator.
pub(crate) const LEAST_REPORTED: Decimal = Decimal::from_parts(100, 0, 0, false, 0);
/// AIPerf's name for a request that it gave up.
const TIMED_OUT: &str = "TimeoutError";

impl Report {
    /// Mean time of a request at both ends, if the load generator, or the network to the frontend, took much of it. The share is a
    /// lower bound if requests failed: the frontend's histogram covers them too, and AIPerf's mean does not. Most fail at once: a
    /// dead worker made 52,414 of 56,354 fail on two H200s, and the frontend's mean was 161 ms beside 2,065 ms. Its whole time is
    /// counted as that of the successful ones.
    pub fn time_outside(&self) -> Option<String> {
        let aiperf = self.value(Metric::RequestLatency, Statistic::Avg)?;
        let frontend = self.frontend.request_ms?;
        let all = Decimal::from(self.succeeded) + Decimal::from(self.failed);
        let of_successes = frontend.checked_mul(all)?.checked_div(self.succeeded.into())?;
        let outside = Decimal::ONE.checked_sub(of_successes.checked_div(aiperf)?)?;
        if outside < LARGE || outside.saturating_mul(aiperf) < LEAST_REPORTED {
            return None;
        }
        let seconds = |ms: Decimal| show(ms / Decimal::ONE_THOUSAND);
        let percent = outside.saturating_mul(Decimal::ONE_HUNDRED).round_dp(1).normalize();
        let at_least = if self.failed > 0 { "at least " } else { "" };
        Some(format!(
            "a request took {} s as the load generator measured it and {} s in the frontend: {at_least}{percent} % of the time \
             passed in the load generator or the network",
            seconds(aiperf),
            seconds(frontend)
        ))
    }

    /// Requests that AIPerf gave up, if no request failed otherwise; `None` where others did, or may have.
    pub fn only_timed_out(&self) -> Option<i64> {
        let timed_out = self
            .errors
            .iter()
            .filter(|error| error.kind == TIMED_OUT && error.code.is_none());
        let counted = timed_out.fold(0_i64, |sum, error| sum.saturating_add(error.count));
        (counted == self.failed && self.truncated == 0 && counted > 0).then_some(counted)
    }
}
