//! Statistics of a few numbers.

use rust_decimal::Decimal;
use rust_decimal::prelude::FromPrimitive as _;

use crate::number::Bounded as _;

/// A count to calculate with.
#[expect(clippy::cast_precision_loss, reason = "counts of one run are far below 2^53")]
pub(crate) fn count(length: usize) -> f64 {
    length as f64
}

/// Mean; not a number without values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len())
}

/// Sum of the squared distances from the mean.
pub(crate) fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The middle value, between two the mean of both.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    middle(&values, f64::midpoint)
}

/// The same of decimals.
pub(crate) fn decimal_median(values: impl IntoIterator<Item = Decimal>) -> Option<Decimal> {
    let mut values: Vec<Decimal> = values.into_iter().collect();
    values.sort();
    middle(&values, |lower, upper| lower.saturating_add(upper) / Decimal::TWO)
}

fn middle<T: Copy>(sorted: &[T], between: impl Fn(T, T) -> T) -> Option<T> {
    let at = sorted.len() / 2;
    let upper = *sorted.get(at)?;
    Some(if sorted.len() % 2 == 1 {
        upper
    } else {
        between(sorted[at - 1], upper)
    })
}

/// A decimal with this many digits behind the point; `None` for what no measurement can be.
pub(crate) fn rounded(value: f64, digits: u32) -> Option<Decimal> {
    Decimal::from_f64(value)
        .filter(Decimal::is_bounded)
        .map(|value| value.round_dp(digits))
}
