//! Texts of bounded size, because etcd and every watcher carry the whole status on each change.

/// Longest message (bytes). It keeps the whole status far under 32 KiB.
const MESSAGE: usize = 1024;
/// Longest text (bytes) that one line of a terminal, an event or a summarizing condition still shows well.
pub const HEADLINE: usize = 200;

/// Cuts a text to the longest message that status holds.
pub fn bounded(text: &str) -> String {
    cut(text, MESSAGE)
}

/// Returns true if a character changes the direction of the text around it, so that a line looks like another one.
pub const fn reorders(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Number with its noun in singular or plural: a node with one GPU does not have "1 GPUs".
pub fn number_of(count: impl Into<i64>, one: &str) -> String {
    match count.into() {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

/// Cuts a text at a character's edge.
pub fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_within_the_limit() {
        assert_eq!(cut("short", 5), "short");
        let kept = cut(&"ä".repeat(600), 1024); // 1,200 bytes
        assert!(kept.len() <= 1024 && kept.len() > 1020, "{}", kept.len());
        assert!(kept.ends_with("ä…"));
    }
}
