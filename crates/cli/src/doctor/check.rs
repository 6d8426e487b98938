use serde::Serialize;

use crate::draw::wrap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum CheckResult {
    /// Available.
    Good,
    /// Optional and missing, or not supported.
    Worse,
    /// Check failed.
    Unknown,
    /// Required and missing.
    Missing,
}

/// One line of the answer.
#[derive(Serialize)]
pub struct Check {
    pub found: CheckResult,
    pub what: String,
    /// Next step: a command, or a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Check {
    pub fn good(what: impl Into<String>) -> Self {
        Self {
            found: CheckResult::Good,
            what: what.into(),
            next: None,
        }
    }

    fn with_next(found: CheckResult, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            found,
            what: what.into(),
            next: Some(next.into()),
        }
    }

    pub fn worse(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::with_next(CheckResult::Worse, what, next)
    }

    /// A check without an answer. `next` is a command that shows the obstacle.
    pub fn unknown(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::with_next(CheckResult::Unknown, what, next)
    }

    pub fn missing(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::with_next(CheckResult::Missing, what, next)
    }

    /// As it is printed.
    pub fn text(&self, unicode: bool, columns: usize) -> String {
        let mark = match (self.found, unicode) {
            (CheckResult::Good, true) => "✓",
            (CheckResult::Worse, true) => "•",
            (CheckResult::Missing, true) => "✗",
            (CheckResult::Good, false) => "ok",
            (CheckResult::Worse, false) => "--",
            (CheckResult::Missing, false) => "NO",
            (CheckResult::Unknown, _) => "?",
        };
        // `wrap` indents by five spaces. The mark replaces them.
        let mut lines = wrap(&self.what, columns, "     ");
        lines.replace_range(..5, &format!("  {mark:<2} "));
        if let Some(next) = &self.next {
            let arrow = if unicode { "→" } else { "->" };
            lines.extend(["       ", arrow, " ", next, "\n"]);
        }
        lines
    }
}
