//! One line of a text, read once from its beginning to its end: a log has as many words as its author likes.

use super::name::{ends_with_secret_variable, is_flag, is_secret};

/// Text in place of a secret.
pub const HIDDEN: &str = "[hidden]";
/// A shorter value is a word like any other, and hiding it would hide the log.
pub const SHORTEST: usize = 8;
/// Beginnings of well-known tokens: Hugging Face, NVIDIA, `OpenAI`, GitHub, GitLab, AWS, JSON Web Tokens.
const TOKENS: [&str; 11] = [
    "hf_",
    "nvapi-",
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "AKIA",
    "ASIA",
    "eyJ",
];
/// Words before a secret in a header.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// Appends a line without secrets. Every part that is examined is consumed, so that the time grows with the length.
pub fn redact(line: &str, shown: &mut String) {
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            shown.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (piece, after) = rest.split_at(end_of_piece(rest));
        hide_tokens(piece, shown);
        let name = piece
            .strip_suffix(['=', ':'])
            .map(|name| name.trim_start_matches(quotes));
        rest = match name {
            Some(name) if is_secret(name) => hide_value(after, shown),
            Some(name) if ends_with_secret_variable(name) && !begins_with_number(after) => hide_value(after, shown),
            Some(_) if piece.ends_with(':') && after.starts_with("//") => {
                shown.push_str("//");
                redact_url(&after[2..], shown)
            }
            None if announces(piece, after) => hide_value(after, shown),
            _ => after,
        };
    }
}

/// Returns true if the next value is a number, which `PAD_TOKEN_ID` may have and a secret does not.
fn begins_with_number(rest: &str) -> bool {
    let ends = |letter: char| letter.is_whitespace() || separates(letter);
    let value = rest.trim_start().split(ends).next().unwrap_or_default();
    !value.is_empty() && value.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
}

/// End of a piece, which holds one name or one value as a rule: before white space, or behind a separator of pieces
/// or of a name and its value.
fn end_of_piece(rest: &str) -> usize {
    let ends = |letter: char| letter.is_whitespace() || separates(letter) || letter == '=' || letter == ':';
    let end = rest.char_indices().find(|(_, letter)| ends(*letter));
    end.map_or(rest.len(), |(at, letter)| {
        if letter.is_whitespace() {
            at
        } else {
            at + letter.len_utf8()
        }
    })
}

fn separates(letter: char) -> bool {
    ",;&|{}[]()".contains(letter)
}

/// Returns true if the next word is a secret: `--api-key`, `Bearer`. After a scheme a short word is text, as in "no basic auth
/// credentials".
fn announces(piece: &str, after: &str) -> bool {
    let word = piece.trim_matches(|letter| quotes(letter) || separates(letter));
    let is_scheme = SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
    (is_scheme && begins_with_long_word(after)) || (is_flag(word) && is_secret(word))
}

fn begins_with_long_word(rest: &str) -> bool {
    let ends = |letter: char| letter.is_whitespace() || separates(letter);
    let letters = rest.trim_start_matches(ends).chars();
    letters.take(SHORTEST).take_while(|letter| !ends(*letter)).count() == SHORTEST
}

fn quotes(letter: char) -> bool {
    letter == '"' || letter == '\'' || letter == '\\'
}

/// Hides the value at the beginning, and answers with what follows it.
fn hide_value<'a>(mut rest: &'a str, shown: &mut String) -> &'a str {
    while let Some(first) = rest.chars().next() {
        let opens = "[(".contains(first) && !rest.starts_with(HIDDEN);
        let skipped = match scheme(rest) {
            Some(length) => length,
            None if first.is_whitespace() || opens => first.len_utf8(),
            None => break,
        };
        shown.push_str(&rest[..skipped]);
        rest = &rest[skipped..];
    }
    // An object has names of its own, and another flag shows that this one has no value.
    let end = if rest.starts_with('{') || rest.starts_with("--") {
        0
    } else if rest.starts_with(HIDDEN) {
        HIDDEN.len()
    } else {
        end_of_value(rest)
    };
    if end > 0 {
        shown.push_str(HIDDEN);
    }
    &rest[end..]
}

/// Length of a scheme at the beginning, if white space follows it.
fn scheme(rest: &str) -> Option<usize> {
    let is_scheme = |scheme: &&&str| {
        let word = rest.get(..scheme.len()).unwrap_or_default();
        word.eq_ignore_ascii_case(scheme) && rest[scheme.len()..].starts_with(char::is_whitespace)
    };
    SCHEMES.iter().find(is_scheme).map(|scheme| scheme.len())
}

/// End of a value: behind its closing quote, or before the characters that may follow a bare one. A quote that is
/// never closed ends with the line.
fn end_of_value(rest: &str) -> usize {
    let mut at = 0;
    loop {
        let here = &rest[at..];
        if at > 0 && here.starts_with(separates) {
            return at;
        }
        let escapes = here.len() - here.trim_start_matches('\\').len();
        let Some(quote) = here[escapes..].chars().next().filter(|letter| "\"'".contains(*letter)) else {
            let ends = |letter: char| letter.is_whitespace() || ",}&\"'".contains(letter);
            let bare = here.find(ends).unwrap_or(here.len());
            at += bare;
            if bare > 0 && rest[at..].starts_with(['"', '\'']) {
                continue;
            }
            return at;
        };
        let inside = at + escapes + 1;
        let Some(length) = closing(&rest[inside..], quote, escapes > 0) else {
            return rest.len();
        };
        at = inside + length + 1;
    }
}

/// End of a quoted text; a quote behind a backslash is part of it, unless the first one was behind a backslash too.
fn closing(text: &str, quote: char, escaped: bool) -> Option<usize> {
    let mut behind_backslash = false;
    text.char_indices().find_map(|(at, letter)| {
        let closes = letter == quote && (escaped || !behind_backslash);
        behind_backslash = letter == '\\' && !behind_backslash;
        closes.then_some(at)
    })
}

/// Shows host and path of a URL, and answers with what follows it. `rest` begins behind `://`.
fn redact_url<'a>(rest: &'a str, shown: &mut String) -> &'a str {
    let ends_url = |letter: char| letter.is_whitespace() || "\"'<>`\\".contains(letter);
    let authority = rest.find(|letter| ends_url(letter) || "/?#".contains(letter));
    let authority = &rest[..authority.unwrap_or(rest.len())];
    let rest = &rest[authority.rfind('@').map_or(0, |at| at + 1)..];
    let ends_path = |at: usize, letter: char| {
        ends_url(letter) || separates(letter) || "?#".contains(letter) || rest[at..].starts_with("://")
    };
    let path = rest.char_indices().find(|(at, letter)| ends_path(*at, *letter));
    let (path, rest) = rest.split_at(path.map_or(rest.len(), |(at, _)| at));
    hide_tokens(path, shown);
    let Some(mark) = rest.chars().next().filter(|letter| "?#".contains(*letter)) else {
        return rest;
    };
    shown.push(mark);
    shown.push_str(HIDDEN);
    &rest[rest.find(ends_url).unwrap_or(rest.len())..]
}

/// Appends a text without well-known tokens.
fn hide_tokens(text: &str, shown: &mut String) {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    let (mut kept, mut at) = (0, 0);
    let mut in_word = false;
    while let Some(letter) = text[at..].chars().next() {
        if !in_word && TOKENS.iter().any(|token| text[at..].starts_with(token)) {
            let length = text[at..].find(|letter| !is_part(letter)).unwrap_or(text.len() - at);
            if length >= SHORTEST {
                shown.push_str(&text[kept..at]);
                shown.push_str(HIDDEN);
                at += length;
                kept = at;
                continue;
            }
        }
        in_word = letter.is_ascii_alphanumeric();
        at += letter.len_utf8();
    }
    shown.push_str(&text[kept..]);
}
