//! When a sample was taken.

use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

/// No trial is longer.
const WEEK: i64 = 7 * 24 * 3600;

/// Seconds since the runner started. What is judged grows with them, so a result that lies is refused here: one that said
/// 10^18 asked for as many windows of two seconds (found by fuzzing).
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<i64, D::Error> {
    let second = i64::deserialize(input)?;
    if (0..=WEEK).contains(&second) {
        Ok(second)
    } else {
        Err(D::Error::custom(format!(
            "a sample of second {second}, and a trial has 0 to {WEEK}"
        )))
    }
}
