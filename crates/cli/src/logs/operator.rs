//! Lines of the operator's log about one validation.

/// Returns true if a line of the operator's log is about this validation: it carries the namespace and the name as
/// fields, or the reference that the controller's runtime adds. A name inside a message may be anyone's.
///
/// The line is not parsed: in JSON a span has two fields `name`, the validation's and its own, and a parser keeps
/// one.
pub fn is_about(line: &str, namespace: &str, name: &str) -> bool {
    let reference = format!("/{name}.{namespace}");
    has(line, "object.ref", |value| value.ends_with(&reference))
        || (has(line, "namespace", |value| value == namespace) && has(line, "name", |value| value == name))
}

/// Returns true if a field has such a value: `"key":"value"` in JSON, `key="value"` or `key=value` in text.
fn has(line: &str, key: &str, wanted: impl Fn(&str) -> bool) -> bool {
    line.match_indices(key).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let value = match (before, &line[at + key.len()..]) {
            // In a message that is quoted in JSON there is a backslash before the second quote.
            (Some('"'), after) => after.strip_prefix("\":\""),
            (Some(letter), _) if letter.is_alphanumeric() || "._-\\".contains(letter) => None,
            (_, after) => after.strip_prefix('=').map(|after| after.trim_start_matches('"')),
        };
        let end = |letter: char| !(letter.is_ascii_alphanumeric() || "./-".contains(letter));
        value.is_some_and(|value| wanted(value.split(end).next().unwrap_or_default()))
    })
}
