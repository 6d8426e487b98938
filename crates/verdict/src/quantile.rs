//! Quantiles of the distributions that intervals are made of.

/// Bisections: each halves the range, which is below 2⁻³⁰ of it after these.
const STEPS: usize = 48;

/// Quantile of Student's distribution that a value exceeds in 2.5 of 100 cases. Above 30 degrees it is 2.0, within 2 %.
pub(crate) fn student(degrees: usize) -> f64 {
    if degrees > 30 {
        2.0
    } else {
        student_beyond(0.025, degrees)
    }
}

/// Quantile of Student's distribution that a value exceeds with a probability of `tail`.
pub(crate) fn student_beyond(tail: f64, degrees: usize) -> f64 {
    let degrees = degrees.max(1);
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        let within = student_within(middle, degrees);
        *if (1.0 - within) / 2.0 > tail {
            &mut low
        } else {
            &mut high
        } = middle;
    }
    high
}

/// Probability of a value between `-t` and `t` (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn student_within(t: f64, degrees: usize) -> f64 {
    let angle = (t / number(degrees).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = degrees % 2 == 1;
    let (mut term, mut sum) = if odd { (cosine, cosine) } else { (1.0, 1.0) };
    let mut at = if odd { 3 } else { 2 };
    while at < degrees {
        let (over, under) = (number(at - 1), number(at));
        term *= cosine * cosine * over / under;
        sum += term;
        at += 2;
    }
    match (odd, degrees) {
        (true, 1) => angle / std::f64::consts::FRAC_PI_2,
        (true, _) => (angle + sine * sum) / std::f64::consts::FRAC_PI_2,
        (false, _) => sine * sum,
    }
}

/// Quantile of the normal distribution that a value exceeds with a probability of `tail`, below one half (Abramowitz and
/// Stegun, 26.2.23: within 0.0005).
pub(crate) fn normal_beyond(tail: f64) -> f64 {
    let t = (-2.0 * tail.ln()).sqrt();
    let over = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let under = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - over / under
}

#[expect(clippy::cast_precision_loss, reason = "a count of samples")]
fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (tail, degrees, expected) in [
            (0.025, 1, 12.706),
            (0.025, 2, 4.303),
            (0.025, 3, 3.182),
            (0.025, 10, 2.228),
            (0.025, 29, 2.045),
            (0.0125, 2, 6.205),
            (0.0125, 4, 3.495),
            (0.0125, 5, 3.163),
        ] {
            let found = student_beyond(tail, degrees);
            assert!((found - expected).abs() < 0.001, "{tail} {degrees}: {found}");
        }
        assert!((student(31) - 2.0).abs() < 1e-9);
        for (tail, expected) in [(0.025, 1.95996), (0.01, 2.32635), (0.00125, 3.02334), (0.0001, 3.71902)] {
            let found = normal_beyond(tail);
            assert!((found - expected).abs() < 0.001, "{tail}: {found}");
        }
    }
}
