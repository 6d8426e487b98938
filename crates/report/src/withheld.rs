//! Values that may be secrets: a report is handed round, and a spec is not.

use perfval_api::PerfValidationSpec;

/// What stands in their place.
pub(crate) const WITHHELD: &str = "(withheld)";

/// Parts of a variable's name, and last parts of a flag's, whose value is not shown.
const SECRET: [&str; 10] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "key",
    "credential",
    "credentials",
    "authorization",
    "header",
];

/// The spec without the values of variables and flags that may be secrets, such as `HF_TOKEN` or `--api-key`.
pub(crate) fn spec(spec: &PerfValidationSpec) -> PerfValidationSpec {
    let mut spec = spec.clone();
    for variable in &mut spec.workload.env {
        let secret = variable.name.split(['_', '.', '-']).any(is_secret);
        if secret && variable.value.is_some() {
            variable.value = Some(WITHHELD.to_owned());
        }
    }
    let workload = &mut spec.workload;
    for words in [
        &mut workload.command,
        &mut workload.args,
        &mut workload.frontend_args,
        &mut spec.benchmark.extra_args,
    ] {
        *words = self::words(words);
    }
    spec
}

/// A command line as one text.
pub(crate) fn command(line: &str) -> String {
    let mut shown: Vec<String> = Vec::new();
    // A quoted value may hold blanks: everything up to the next flag belongs to the secret one.
    let mut hiding = false;
    for word in line.split(' ') {
        if word.starts_with("--") {
            hiding = false;
        }
        if hiding {
            continue;
        }
        let (word, value_follows) = flag(word);
        shown.push(word);
        if value_follows {
            shown.push(WITHHELD.to_owned());
            hiding = true;
        }
    }
    shown.join(" ")
}

fn words(words: &[String]) -> Vec<String> {
    let mut hide = false;
    let shown = words.iter().map(|word| {
        if std::mem::take(&mut hide) {
            return WITHHELD.to_owned();
        }
        let (shown, value_follows) = flag(word);
        hide = value_follows;
        shown
    });
    shown.collect()
}

/// A word, without the value that it may hold itself, and whether the next one is a secret.
fn flag(word: &str) -> (String, bool) {
    let (name, value) = word
        .split_once('=')
        .map_or((word, None), |(name, value)| (name, Some(value)));
    let last = name.rsplit(['-', '_']).next().unwrap_or_default();
    let secret = name.starts_with("--") && is_secret(last);
    match value {
        Some(_) if secret => (format!("{name}={WITHHELD}"), false),
        _ => (word.to_owned(), secret),
    }
}

fn is_secret(part: &str) -> bool {
    SECRET.contains(&part.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_loses_its_secrets_and_nothing_else() {
        for (line, shown) in [
            (
                "aiperf profile --api-key 'nv api' --tokenizer 'a/b' --prompt-output-tokens-mean 128",
                "aiperf profile --api-key (withheld) --tokenizer 'a/b' --prompt-output-tokens-mean 128",
            ),
            ("x --header 'Authorization: Bearer 1 2'", "x --header (withheld)"),
            ("x --auth-token=abc -v", "x --auth-token=(withheld) -v"),
            (
                "x --use-server-token-count --random-seed 3",
                "x --use-server-token-count --random-seed 3",
            ),
        ] {
            assert_eq!(command(line), shown);
        }
    }
}
