//! Kubernetes quantities as exact decimals.

use rust_decimal::Decimal;

/// Suffixes of a quantity and their factors. Two-letter suffixes come first, so that `Mi` is not read as `M` + `i`.
const SUFFIXES: [(&str, i64, u32); 15] = [
    ("Ki", 1 << 10, 0),
    ("Mi", 1 << 20, 0),
    ("Gi", 1 << 30, 0),
    ("Ti", 1 << 40, 0),
    ("Pi", 1 << 50, 0),
    ("Ei", 1 << 60, 0),
    ("n", 1, 9),
    ("u", 1, 6),
    ("m", 1, 3),
    ("k", 1_000, 0),
    ("M", 1_000_000, 0),
    ("G", 1_000_000_000, 0),
    ("T", 1_000_000_000_000, 0),
    ("P", 1_000_000_000_000_000, 0),
    ("E", 1_000_000_000_000_000_000, 0),
];

/// Value of a quantity such as `50k`, `0.5`, `100m`, `2e3` or `80Gi`, by Kubernetes' grammar: a number, then either one
/// suffix or an exponent (`5E` is five quintillions, `5E3` five thousand). A fraction is rounded to
/// about 28 digits, a tiny one to 0. `None` if the text is not a quantity, or is too large.
pub fn parse(text: &str) -> Option<Decimal> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let value = match SUFFIXES.iter().find(|(suffix, ..)| *suffix == &text[number.len()..]) {
        Some(&(_, factor, scale)) => decimal(number)?.checked_mul(Decimal::new(factor, scale))?,
        None => match text.split_once(['e', 'E']) {
            Some((number, exponent)) => scaled(decimal(number)?, exponent.parse().ok()?)?,
            None => decimal(text)?,
        },
    };
    Some(value.normalize())
}

/// Change from `from` to `to`, in percent of `from`; `None` if 28 digits cannot represent it.
pub fn change_percent(from: Decimal, to: Decimal) -> Option<Decimal> {
    to.checked_sub(from)?
        .checked_mul(Decimal::ONE_HUNDRED)?
        .checked_div(from)
}

/// Parses digits with at most one point, and a sign. Rust's own parser also accepts `1_000`.
fn decimal(text: &str) -> Option<Decimal> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let some = digits.bytes().any(|byte| byte.is_ascii_digit());
    (plain && some).then(|| text.parse().ok()).flatten()
}

fn scaled(number: Decimal, exponent: i32) -> Option<Decimal> {
    let ten = Decimal::TEN;
    (0..exponent.unsigned_abs().min(64)).try_fold(number, |number, _| {
        if exponent < 0 {
            // Exact or not at all.
            let smaller = number.checked_div(ten)?;
            (smaller.checked_mul(ten)? == number).then_some(smaller)
        } else {
            number.checked_mul(ten)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        let cases = [
            ("50000", Some("50000")),
            ("50k", Some("50000")),
            ("0.1", Some("0.1")),
            ("100m", Some("0.1")),
            ("2e3", Some("2000")),
            ("1E3", Some("1000")),
            ("80Gi", Some("85899345920")),
            ("1Ki", Some("1024")),
            ("8Ei", Some("9223372036854775808")),
            ("1.5Gi", Some("1610612736")),
            ("2E", Some("2000000000000000000")),
            ("3P", Some("3000000000000000")),
            ("1E-3", Some("0.001")),
            ("1e+3", Some("1000")),
            ("12e-1", Some("1.2")),
            ("1500u", Some("0.0015")),
            ("7n", Some("0.000000007")),
            ("+5", Some("5")),
            (".5", Some("0.5")),
            ("5.", Some("5")),
            ("-.5Ki", Some("-512")),
            (
                "33.33333333333333333333333333333",
                Some("33.333333333333333333333333333"),
            ),
            ("0", Some("0")),
            ("-3", Some("-3")),
            ("", None),
            ("fast", None),
            ("1.2.3", None),
            ("5 k", None),
            (" 5", None),
            ("5E", Some("5000000000000000000")),
            ("1Ei", Some("1152921504606846976")),
            ("5E3", Some("5000")),
            ("5e-3", Some("0.005")),
            ("5E+3", Some("5000")),
            ("1e", None),
            ("e3", None),
            (".", None),
            ("1_000", None),
            ("5K", None),
            ("5kk", None),
            ("2e3k", None),
            ("1e400", None),
            ("1e-400", None),
            ("NaN", None),
            ("1e3.5", None),
        ];
        for (text, expected) in cases {
            assert_eq!(
                parse(text),
                expected.map(|e| Decimal::from_str_exact(e).unwrap()),
                "{text:?}"
            );
        }
    }
}
