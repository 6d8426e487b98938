//! Parts of a page.

use std::fmt::Write as _;

/// Adds a section with a table.
pub fn section<const N: usize>(
    page: &mut String,
    title: &str,
    about: &str,
    head: &[&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) {
    let _ = write!(
        page,
        "\n## {title}\n\n{about}\n\n| {} |\n|{}\n",
        head.join(" | "),
        "---|".repeat(N)
    );
    for row in rows {
        let _ = writeln!(page, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
}

/// A text without its line breaks.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
