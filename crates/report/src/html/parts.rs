//! Parts that several sections use.

use maud::{Markup, Render, html};

/// A table that scrolls within its own frame on a narrow screen, also by keyboard.
pub(crate) fn scrolling(label: &str, table: &Markup) -> Markup {
    html! { div.scroll role="region" aria-label=(label) tabindex="0" { (table) } }
}

/// Head of a table. A column that begins with `#` has numbers.
pub(crate) fn head(columns: &[&str]) -> Markup {
    html! {
        thead { tr { @for column in columns { @match column.strip_prefix('#') {
            Some(name) => th.number scope="col" { (name) },
            None => th scope="col" { (column) },
        } } } }
    }
}

/// A value, or that there is none.
pub(crate) fn or_dash(value: Option<impl Render>) -> Markup {
    html! {
        @match value {
            Some(value) => (value),
            None => span.none { span aria-hidden="true" { "–" } span.hidden { "not recorded" } },
        }
    }
}
