//! Keeps secrets out of what is quoted from a log.

use perfval_api::PerfValidationSpec;
use serde_json::Value;

/// What stands where a secret stood.
const HIDDEN: &str = "[hidden]";
/// Beginnings of well-known tokens: Hugging Face, NVIDIA, `OpenAI`, GitHub, AWS, JSON Web Tokens.
const TOKENS: [&str; 7] = ["hf_", "nvapi-", "sk-", "ghp_", "github_pat_", "AKIA", "eyJ"];
/// A shorter value is a word like any other, and hiding it would hide the log.
const SHORTEST: usize = 8;
/// Annotation of `kubectl apply`: the whole object once more, as one text.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
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

/// An object of Kubernetes without what may be a secret: values of variables, fields and flags of secret names, and what
/// [`without_secrets`] hides in every text; also without the copies of it that clients leave in its metadata. References to
/// Secrets stay: they are names.
pub fn hide_in_object(value: &mut Value, spec: &PerfValidationSpec) {
    match value {
        Value::String(text) => *text = without_secrets(text, spec),
        Value::Array(items) => {
            let mut hide_next = false;
            for item in items {
                match item.as_str() {
                    Some(_) if hide_next => *item = HIDDEN.into(),
                    _ => hide_in_object(item, spec),
                }
                let flag = item.as_str().filter(|text| text.starts_with('-'));
                hide_next = flag.is_some_and(is_secret);
            }
        }
        Value::Object(fields) => {
            fields.retain(|name, _| name != "managedFields" && name != LAST_APPLIED);
            let names_secret = fields.get("name").and_then(Value::as_str).is_some_and(is_secret);
            for (name, value) in fields {
                if value.is_string() && (is_secret(name) || (name == "value" && names_secret)) {
                    *value = HIDDEN.into();
                } else {
                    hide_in_object(value, spec);
                }
            }
        }
        _ => {}
    }
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

    #[test]
    fn an_object_keeps_everything_but_secrets() {
        let spec = spec(&json!([{"name": "DB_PASSWORD", "value": "correct horse"}]));
        let mut object = json!({
            "metadata": {"managedFields": [1], "annotations": {(LAST_APPLIED): "hf_abcdefghijklmnop", "kept": "yes"}},
            "env": [
                {"name": "HF_TOKEN", "value": "plain"},
                {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token"}}},
                {"name": "MODE", "value": "eager"},
                {"name": "ODD", "value": "nvapi-0123456789abcdef"},
            ],
            "args": ["--api-key", "abc", "--model", "m", "--password=abc", "says correct horse"],
            "token": "abc",
            "replicas": 2,
        });
        hide_in_object(&mut object, &spec);
        let expected = json!({
            "metadata": {"annotations": {"kept": "yes"}},
            "env": [
                {"name": "HF_TOKEN", "value": "[hidden]"},
                {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token"}}},
                {"name": "MODE", "value": "eager"},
                {"name": "ODD", "value": "[hidden]"},
            ],
            "args": ["--api-key", "[hidden]", "--model", "m", "--password=[hidden]", "says [hidden]"],
            "token": "[hidden]",
            "replicas": 2,
        });
        assert_eq!(object, expected);
    }
}
