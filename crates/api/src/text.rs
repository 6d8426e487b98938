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

/// A word as a shell takes it: in quotes if a character has another meaning there.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@%+=,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
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

    #[test]
    fn a_word_with_a_meaning_for_a_shell_is_quoted() {
        for (word, typed) in [
            ("perf-1.yaml", "perf-1.yaml"),
            ("arn:aws:eks:eu/c@1", "arn:aws:eks:eu/c@1"),
            ("my file", "'my file'"),
            ("it's; rm", r"'it'\''s; rm'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), typed);
        }
    }
}
