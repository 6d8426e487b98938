//! Times of any number of requests in bounded memory.

use std::collections::BTreeMap;

/// From one bucket to the next. Within 0.05 % of the true value: pages show three digits. A week has 27,000 buckets.
const STEP: f64 = 1.001;

/// Histogram of requests over their time. The sum of two sketches is the sketch of all their requests.
#[derive(Clone, Debug, Default)]
pub struct Sketch {
    /// By the logarithm of the time.
    buckets: BTreeMap<u16, u32>,
    count: u64,
    /// The shortest and the longest time (µs).
    ends: Option<(f64, f64)>,
}

impl Sketch {
    pub fn add(&mut self, us: f64) {
        let count = self.buckets.entry(bucket(us)).or_default();
        *count = count.saturating_add(1);
        self.count += 1;
        self.reach(us);
    }

    pub fn merge(&mut self, other: Self) {
        for (bucket, count) in other.buckets {
            let all = self.buckets.entry(bucket).or_default();
            *all = all.saturating_add(count);
        }
        self.count += other.count;
        for end in other.ends.into_iter().flat_map(|(least, most)| [least, most]) {
            self.reach(end);
        }
    }

    /// Longest time among the fastest `per_mille` of a thousand requests (µs).
    pub fn at_most(&self, per_mille: i64) -> Option<i64> {
        let (least, most) = self.ends?;
        let share = u64::try_from(per_mille).ok()?;
        let rank = (self.count * share).div_ceil(1000).max(1);
        let mut counted = 0;
        let (bucket, _) = self.buckets.iter().find(|(_, count)| {
            counted += u64::from(**count);
            counted >= rank
        })?;
        let us = STEP.powf(f64::from(*bucket) - 0.5).clamp(least, most);
        #[expect(clippy::cast_possible_truncation, reason = "a week at most")]
        let us = us.round() as i64;
        Some(us)
    }

    fn reach(&mut self, us: f64) {
        let (least, most) = self.ends.unwrap_or((us, us));
        self.ends = Some((least.min(us), most.max(us)));
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a logarithm of at least one; `as` stops at the ends"
)]
fn bucket(us: f64) -> u16 {
    (us.max(1.0).ln() / STEP.ln()).ceil() as u16
}
