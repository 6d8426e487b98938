//! Tails of Student's, the normal and the binomial distribution.

/// Probability that Student's t with `degrees` of freedom (> 0, may be fractional) exceeds `t`.
/// Source: Abramowitz and Stegun 26.7.1, by the continued fraction of the incomplete beta function.
pub fn student(t: f64, degrees: f64) -> f64 {
    if !t.is_finite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    let half = 0.5 * beta(degrees / 2.0, 0.5, degrees / (degrees + t * t));
    if t >= 0.0 { half } else { 1.0 - half }
}

/// Value that Student's t exceeds with probability `tail` (0 to 0.5).
pub fn student_beyond(tail: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if student(middle, degrees) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Density of the standard normal distribution.
pub fn normal_density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt()
}

/// Value that a standard normal variable exceeds with probability `tail` (0 to 0.5).
pub fn normal_beyond(tail: f64) -> f64 {
    // Student's t with 10 million degrees differs from it by less than 1e-6.
    student_beyond(tail, 1e7)
}

/// Logarithm of the density of Student's t.
pub fn student_log_density(t: f64, degrees: f64) -> f64 {
    student_constant(degrees) - 0.5 * (degrees + 1.0) * (t * t / degrees).ln_1p()
}

/// Part of [`student_log_density`] that does not depend on `t`.
pub(crate) fn student_constant(degrees: f64) -> f64 {
    log_gamma(0.5 * (degrees + 1.0)) - log_gamma(degrees / 2.0) - 0.5 * (degrees * std::f64::consts::PI).ln()
}

/// Probability of `hits` or more of `of` independent cases with probability `rate` each.
pub fn binomial(hits: usize, of: usize, rate: f64) -> f64 {
    use crate::numbers::count;
    if hits == 0 {
        return 1.0;
    }
    if hits > of {
        return 0.0;
    }
    beta(count(hits), count(of - hits) + 1.0, rate)
}

/// Regularised incomplete beta function.
fn beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

/// Continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let held = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut above = 1.0;
    let mut below = 1.0 / held(1.0 - (a + b) * x / (a + 1.0));
    let mut result = below;
    for step in 1..400 {
        let step = f64::from(step);
        let even = step * (b - step) * x / ((a + 2.0 * step - 1.0) * (a + 2.0 * step));
        below = 1.0 / held(1.0 + even * below);
        above = held(1.0 + even / above);
        result *= below * above;
        let odd = -(a + step) * (a + b + step) * x / ((a + 2.0 * step) * (a + 2.0 * step + 1.0));
        below = 1.0 / held(1.0 + odd * below);
        above = held(1.0 + odd / above);
        result *= below * above;
        if (below * above - 1.0).abs() < 1e-14 {
            break;
        }
    }
    result
}

/// Logarithm of the gamma function, by Stirling's series (Abramowitz and Stegun 6.1.41); 1e-12 for x > 0.
fn log_gamma(x: f64) -> f64 {
    let mut shift = 0.0;
    let mut x = x;
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables() {
        for (t, degrees, expected) in [
            (12.706, 1.0, 0.025),
            (2.228, 10.0, 0.025),
            (4.541, 3.0, 0.01),
            (2.947, 15.0, 0.005),
            (1.960, 1e6, 0.025),
        ] {
            assert!(
                (student(t, degrees) - expected).abs() < 2e-5,
                "{t} {degrees}: {}",
                student(t, degrees)
            );
            assert!(
                (student_beyond(expected, degrees) - t).abs() < 2e-3,
                "{expected} {degrees}"
            );
            assert!((student(-t, degrees) - 1.0 + expected).abs() < 2e-5);
        }
        // Far out the probability keeps its digits: 4.8e-7 with 20 degrees.
        let far = student(7.0, 20.0);
        assert!((far / 4.3e-7 - 1.0).abs() < 0.1, "{far}");
        assert!((normal_beyond(0.001) - 3.0902).abs() < 1e-3);
    }

    #[test]
    fn binomial_tails_are_sums_of_their_terms() {
        // 1 - 0.9^10, and 0.1^2.
        assert!((binomial(1, 10, 0.1) - 0.651_321_6).abs() < 1e-6);
        assert!((binomial(2, 2, 0.1) - 0.01).abs() < 1e-9);
        assert!((binomial(0, 3, 0.1) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn log_density_integrates_to_one() {
        let sum: f64 = (-4000..4000)
            .map(|at| (student_log_density(f64::from(at) / 50.0, 4.0)).exp() / 50.0)
            .sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    }
}
