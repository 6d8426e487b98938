//! Rows under each other, as kubectl prints them.

use crate::draw::{flow, wrap};

/// Spaces between columns.
const PADDING: usize = 3;
/// The last column may be broken into lines of this much.
const BROKEN: usize = 20;
/// On fewer columns words are broken, and become unreadable.
const NARROWEST: usize = 20;

/// A table; by default without a head.
#[derive(Debug, Default)]
pub struct Table {
    /// True if the first row contains the names of the columns.
    headed: bool,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a head.
    pub fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            headed: true,
            rows: vec![head.into_iter().map(Into::into).collect()],
        }
    }

    /// Adds a row. A cell with a line break would break it.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let in_line = |cell: String| cell.replace(char::is_control, " ");
        self.rows.push(cells.into_iter().map(in_line).collect());
    }

    /// Its lines: on a terminal within its columns; elsewhere as long as they are, one for each row, for what reads them.
    pub fn on(&self, columns: Option<usize>) -> String {
        match columns {
            Some(columns) => self.within(columns.max(NARROWEST), ""),
            None => self.lines(PADDING, "").concat(),
        }
    }

    /// Returns true if its lines, behind this indent, fit into the columns.
    pub fn fits(&self, columns: usize, indent: &str) -> bool {
        is_within(&self.lines(PADDING, indent), columns)
    }

    /// Its lines, each behind this and at most so long: the last column in several lines, columns closer to each other, or
    /// paragraphs. Nothing is cut off.
    pub fn within(&self, columns: usize, indent: &str) -> String {
        let tries = [
            self.lines(PADDING, indent),
            self.with_last_broken(columns, indent).unwrap_or_default(),
            self.lines(1, indent),
        ];
        let fits = |lines: &Vec<String>| !lines.is_empty() && is_within(lines, columns);
        match tries.into_iter().find(fits) {
            Some(lines) => lines.concat(),
            None => self.paragraphs(columns, indent),
        }
    }

    /// Each row as a paragraph: its first cell, and below it the others behind the names of their columns.
    pub fn paragraphs(&self, columns: usize, indent: &str) -> String {
        let head = self.rows.first().filter(|_| self.headed);
        let named = |row: &[String]| -> Vec<String> {
            let cells = row.iter().enumerate().filter(|(_, cell)| !cell.is_empty());
            let name = |at: usize| head.and_then(|head| head.get(at));
            cells
                .map(|(at, cell)| name(at).map_or_else(|| cell.clone(), |name| format!("{name} {cell}")))
                .collect()
        };
        let paragraph = |row: &Vec<String>| {
            let cells = named(row);
            let (first, others) = cells.split_first()?;
            let others = others.iter().map(String::as_str);
            Some(wrap(first, columns, indent) + &flow(others, "  ", columns, &format!("{indent}  ")))
        };
        let rows = self.rows.iter().skip(usize::from(self.headed));
        rows.filter_map(paragraph).collect::<Vec<_>>().concat()
    }

    /// With the last column in several lines, where there is room for it.
    fn with_last_broken(&self, columns: usize, indent: &str) -> Option<Vec<String>> {
        let widths = self.widths();
        let (_, others) = widths.split_last()?;
        let before = indent.chars().count() + others.iter().map(|width| width + PADDING).sum::<usize>();
        let room = columns.checked_sub(before).filter(|room| *room >= BROKEN)?;
        let row = |row: &Vec<String>| {
            let (last, others) = row.split_last()?;
            let broken = wrap(last, room, "");
            let mut lines = broken.lines();
            let first = others.iter().map(String::as_str).chain(lines.next());
            let mut text = line(first, &widths, PADDING, indent);
            for more in lines {
                text.extend([&" ".repeat(before), more, "\n"]);
            }
            Some(text.lines().map(|line| format!("{line}\n")).collect::<Vec<_>>())
        };
        Some(self.rows.iter().filter_map(row).flatten().collect())
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        (0..columns).map(width).collect()
    }

    fn lines(&self, padding: usize, indent: &str) -> Vec<String> {
        let widths = self.widths();
        let rows = self.rows.iter();
        rows.map(|row| line(row.iter().map(String::as_str), &widths, padding, indent))
            .collect()
    }
}

/// Text of a cell; a dash if it has no value.
pub fn dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn line<'a>(cells: impl Iterator<Item = &'a str>, widths: &[usize], padding: usize, indent: &str) -> String {
    let mut line = indent.to_owned();
    for (cell, width) in cells.zip(widths) {
        line.push_str(cell);
        line.extend(std::iter::repeat_n(
            ' ',
            width.saturating_sub(cell.chars().count()) + padding,
        ));
    }
    line.truncate(line.trim_end().len());
    line + "\n"
}

fn is_within(lines: &[String], columns: usize) -> bool {
    lines.iter().all(|line| line.trim_end().chars().count() <= columns)
}
