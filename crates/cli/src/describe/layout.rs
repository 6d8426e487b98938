use chrono::{DateTime, Utc};

use crate::draw::{Ink, wrap};

/// Indent of the lines below a title.
pub const INDENT: &str = "  ";

/// Settings of the page's text.
pub struct PageLayout {
    pub ink: Ink,
    pub columns: usize,
    pub now: DateTime<Utc>,
    /// Flags of the cluster and the user, for commands to type next.
    pub flags: String,
}

impl PageLayout {
    /// A line above a part of the page.
    pub fn title(&self, text: &str) -> String {
        wrap(text, self.columns, "")
    }

    /// A text below a title.
    pub fn below(&self, text: &str) -> String {
        wrap(text, self.columns, INDENT)
    }
}
