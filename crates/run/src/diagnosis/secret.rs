//! Keeps secrets out of what is quoted from a log.

use perfval_api::PerfValidationSpec;

/// What stands where a secret stood.
const HIDDEN: &str = "[hidden]";
/// Beginnings of well-known tokens: Hugging Face, NVIDIA, `OpenAI`, GitHub, AWS, JSON Web Tokens.
const TOKENS: [&str; 7] = ["hf_", "nvapi-", "sk-", "ghp_", "github_pat_", "AKIA", "eyJ"];
/// A shorter value is a word like any other, and hiding it would hide the log.
const SHORTEST: usize = 8;
/// Ends of names whose value may be a secret.
const SECRET_NAMES: [&str; 8] = [
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "accesskey",
    "authorization",
    "credentials",
];

/// A log without what may be a secret: values that the spec gives to variables of secret names, well-known tokens,
/// values after such names, and whatever a URL carries in addition to its host and path.
pub fn without_secrets(log: &str, spec: &PerfValidationSpec) -> String {
    let given = spec.workload.env.iter().filter(|var| is_secret(&var.name));
    let known = given.filter_map(|var| var.value.as_deref());
    let log = known
        .filter(|value| value.len() >= SHORTEST)
        .fold(log.to_owned(), |log, value| log.replace(value, HIDDEN));
    log.lines().map(line_without_secrets).collect::<Vec<_>>().join("\n")
}

fn line_without_secrets(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut hide_next = false;
    for word in line.split_inclusive(char::is_whitespace) {
        let text = word.trim_end();
        let space = &word[text.len()..];
        if hide_next && !text.is_empty() && !is_scheme(text) {
            kept.push_str(HIDDEN);
            hide_next = false;
        } else {
            hide_next = hide_next || announces(text);
            kept.push_str(&word_without_secrets(text));
        }
        kept.push_str(space);
    }
    kept
}

/// Whether the next word is a secret: `token:`, `"password":`, `Bearer`.
fn announces(word: &str) -> bool {
    is_scheme(word) || word.strip_suffix([':', '=']).is_some_and(is_secret)
}

fn is_scheme(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_ascii_alphabetic());
    ["bearer", "basic"].contains(&bare.to_ascii_lowercase().as_str())
}

fn is_secret(name: &str) -> bool {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let letters = letters.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|end| letters.ends_with(end))
}

fn word_without_secrets(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://") {
        return format!("{scheme}://{}", location(rest));
    }
    // `name=value` and `"name":"value"`, any number of them in one word.
    if let Some(at) = word.find(['=', ':'])
        && is_secret(&word[..at])
        && word.len() > at + 1
    {
        let end = word[at..]
            .find([',', '}', '&'])
            .map_or(word.len(), |length| at + length);
        return format!("{}{HIDDEN}{}", &word[..=at], word_without_secrets(&word[end..]));
    }
    match TOKENS.iter().filter_map(|token| word.find(token)).min() {
        Some(at) if begins_a_word(word, at) => {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            let end = word[at..]
                .find(|c| !is_part(c))
                .map_or(word.len(), |length| at + length);
            if end - at < SHORTEST {
                return word.to_owned();
            }
            format!("{}{HIDDEN}{}", &word[..at], word_without_secrets(&word[end..]))
        }
        _ => match word.find([',', '{', '[']) {
            Some(at) if at + 1 < word.len() => {
                format!("{}{}", &word[..=at], word_without_secrets(&word[at + 1..]))
            }
            _ => word.to_owned(),
        },
    }
}

fn begins_a_word(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric())
}

/// Host and path of a URL.
fn location(rest: &str) -> String {
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let rest = match host.rfind('@') {
        Some(at) => &rest[at + 1..],
        None => rest,
    };
    match rest.split_once('?') {
        Some((path, _)) => format!("{path}?{HIDDEN}"),
        None => rest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(env: &serde_json::Value) -> PerfValidationSpec {
        let workload = json!({"image": "i", "env": env});
        serde_json::from_value(json!({"model": {"name": "m"}, "workload": workload})).expect("well-formed")
    }

    #[test]
    fn what_may_be_a_secret_is_hidden_and_nothing_else() {
        let spec = spec(&json!([
            {"name": "CACHE_PASSWORD", "value": "correct horse"},
            {"name": "MODE", "value": "eager mode"},
        ]));
        let cases = [
            ("401 for hf_abcdefghijklmnop: denied", "401 for [hidden]: denied"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer [hidden]"),
            ("HF_TOKEN=abc next", "HF_TOKEN=[hidden] next"),
            (r#"{"api_key":"abc","n":1}"#, r#"{"api_key":[hidden],"n":1}"#),
            (r#"{"n": 1, "password": "abc"}"#, r#"{"n": 1, "password": [hidden]"#),
            (
                "GET https://user:pw@host/path?X-Amz-Signature=abc failed",
                "GET https://host/path?[hidden] failed",
            ),
            ("login with correct horse failed", "login with [hidden] failed"),
            // What is no secret stays.
            ("max_tokens=16 tokenizer: lab/x", "max_tokens=16 tokenizer: lab/x"),
            ("running in eager mode", "running in eager mode"),
            (
                "RuntimeError: Failed to infer device type",
                "RuntimeError: Failed to infer device type",
            ),
            ("task-1 risk-averse hf_x", "task-1 risk-averse hf_x"),
        ];
        for (line, shown) in cases {
            assert_eq!(without_secrets(line, &spec), shown, "{line}");
        }
    }
}
