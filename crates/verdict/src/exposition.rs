//! Lines of Prometheus' text format.

use rust_decimal::prelude::ToPrimitive as _;

use crate::number::MOST;

/// Name of the series of a line. It costs little, and most lines of a page are of series that are not read.
pub fn name(line: &str) -> &str {
    line.split(['{', ' ']).next().unwrap_or_default()
}

/// Labels and value of a line.
pub struct ExpositionLine<'a> {
    labels: Vec<(&'a str, String)>,
    /// Its value as it is written.
    pub value: &'a str,
}

impl<'a> ExpositionLine<'a> {
    /// Reads a line from behind its name; a time stamp may follow the value.
    pub fn read(rest: &'a str) -> Option<Self> {
        let mut labels = Vec::new();
        let mut rest = rest;
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside.trim_start();
            while !rest.starts_with('}') {
                let (name, after) = rest.split_once("=\"")?;
                let name = name.trim();
                if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                    return None;
                }
                let (value, after) = quoted(after)?;
                labels.push((name, value));
                let after = after.trim_start();
                rest = after.strip_prefix(',').unwrap_or(after).trim_start();
                if rest == after && !rest.starts_with('}') {
                    return None;
                }
            }
            rest = &rest[1..];
        }
        let value = rest.split_whitespace().next()?;
        Some(Self { labels, value })
    }

    /// Value of a label; an empty one counts as absent.
    pub fn label(&self, wanted: &str) -> Option<&str> {
        let value = self.labels.iter().find(|(name, _)| *name == wanted);
        value.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The value times `factor` as a whole number; `None` for a negative value, NaN, or more than [`MOST`].
    pub fn number(&self, factor: f64) -> Option<i64> {
        let number = self.value.parse::<f64>().ok().filter(|number| *number >= 0.0)? * factor;
        number.round().to_i64().filter(|number| *number <= MOST)
    }
}

/// A text up to its closing quote, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped @ ('\\' | '"') => value.push(escaped),
                _ => return None,
            },
            _ => value.push(character),
        }
    }
    None
}
