//! Rows under each other, as kubectl prints them.

use std::fmt;

/// Spaces between columns.
const PADDING: usize = 3;

/// A table; the first row is its head.
#[derive(Debug, Default)]
pub struct Table(Vec<Vec<String>>);

impl Table {
    /// A table with a head.
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self(vec![head.map(str::to_owned).into()])
    }

    /// One without rows, head included.
    pub fn bare() -> Self {
        Self::default()
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.push(cells.into_iter().collect());
    }

    /// Its lines, each behind this.
    pub fn indented(&self, by: &str) -> String {
        let text = self.to_string();
        let lines = text.lines().map(|line| format!("{by}{line}\n"));
        lines.collect::<Vec<_>>().concat()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.0.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.0 {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(
                    ' ',
                    width.saturating_sub(cell.chars().count()) + PADDING,
                ));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
