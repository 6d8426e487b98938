//! Messages of refusals.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use strsim::jaro_winkler;

/// Similarity from which a known name is offered for an unknown one: `gate` and `gates` have 0.96, `image` and `gates` 0.47.
const ALIKE: f64 = 0.85;

/// Parts of the path of fields whose values may be secrets: environment variables, and a token in place of its reference.
const SECRET: [&str; 2] = ["/env", "Secret"];

/// The validator's text, usually with the value to write instead. Values that may have secrets are left out: also maps and lists.
pub fn explain(error: &ValidationError<'_>) -> String {
    let wrong: &Value = error.instance();
    let path = error.instance_path().to_string();
    let may_be_secret = SECRET.iter().any(|part| path.contains(part));
    let text = if may_be_secret || wrong.is_object() || wrong.is_array() {
        error.masked_with("the value").to_string()
    } else {
        error.to_string()
    };
    let wants = |name: &str| text.ends_with(&format!("is not of type \"{name}\""));
    let is_quoted = |wrong: &str| {
        (wants("integer") && wrong.parse::<i64>().is_ok()) || (wants("boolean") && wrong.parse::<bool>().is_ok())
    };
    match error.kind() {
        ValidationErrorKind::Enum { options } if wrong.is_string() => not_one_of(wrong, options),
        // A CRD has all bounds as floating-point numbers.
        ValidationErrorKind::Maximum { .. } | ValidationErrorKind::Minimum { .. } => {
            text.trim_end_matches(".0").to_owned()
        }
        _ if (wrong.is_number() || wrong.is_boolean()) && wants("string") => format!("{text}: write it in quotes"),
        // A fraction as a quantity.
        _ if wrong.is_number() && text.ends_with(r#""integer", "string""#) => format!("{text}: write it in quotes"),
        _ if wrong.as_str().is_some_and(is_quoted) => format!("{text}: write it without quotes"),
        _ => text,
    }
}

fn not_one_of(wrong: &Value, options: &Value) -> String {
    let words = options.as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<&str> = words.collect();
    let meant = wrong.as_str().and_then(|wrong| nearest(wrong, words.iter().copied()));
    let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    format!("{wrong} is not one of {}{hint}", words.join(", "))
}

/// The known name that a misspelt one most likely stands for.
pub fn nearest<'a>(field: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let field = field.to_lowercase();
    let scored = known.map(|name| (jaro_winkler(&field, &name.to_lowercase()), name));
    let (score, name) = scored.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (score > ALIKE).then_some(name)
}
