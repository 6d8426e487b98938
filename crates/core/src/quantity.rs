//! Kubernetes quantities as exact decimals.

use rust_decimal::Decimal;

/// Suffixes of a quantity and what they multiply by; two-letter ones first, so that `Mi` is not read as `M` + `i`.
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

/// The value of a quantity such as `50k`, `0.5`, `100m`, `2e3` or `80Gi`; `None` if it is none, or not exactly
/// representable in 28 digits.
pub fn parse(text: &str) -> Option<Decimal> {
    let text = text.trim();
    // Separators are digits to the decimal parser and none to Kubernetes.
    if text.contains('_') {
        return None;
    }
    let suffixed = SUFFIXES.iter().find_map(|&(suffix, factor, scale)| {
        let number = text.strip_suffix(suffix)?;
        Decimal::from_str_exact(number)
            .ok()?
            .checked_mul(Decimal::new(factor, scale))
    });
    suffixed
        .or_else(|| Decimal::from_str_exact(text).ok())
        .or_else(|| Decimal::from_scientific(&text.replace('E', "e")).ok())
        .map(|value| value.normalize())
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
            ("0", Some("0")),
            ("-3", Some("-3")),
            ("", None),
            ("fast", None),
            ("1.2.3", None),
            ("5 k", None),
            ("1_000", None),
            ("Gi", None),
            ("E", None),
            ("1ki", None),
            ("1KiB", None),
            ("1e", None),
            ("1e30", None),
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
