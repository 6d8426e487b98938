//! Label and field selectors, as far as the project uses them: `a=b`, `a!=b`, `a`, `a in (b,c)`.

use std::collections::BTreeMap;

use serde_json::Value;

/// Whether an object matches the selectors of a query.
pub(super) fn selected(query: &BTreeMap<String, String>, object: &Value) -> bool {
    let labels = |key: &str| object["metadata"]["labels"][key].as_str().map(str::to_owned);
    let fields = |key: &str| {
        let pointer = format!("/{}", key.replace('.', "/"));
        Some(match object.pointer(&pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            _ => String::new(),
        })
    };
    matches(query.get("labelSelector"), labels) && matches(query.get("fieldSelector"), fields)
}

/// The first field that a query selects by and that is neither the name, nor the namespace, nor one of these.
pub(super) fn unselectable<'a>(query: &'a BTreeMap<String, String>, fields: &[String]) -> Option<&'a str> {
    let mut selected = terms(query.get("fieldSelector")).map(|term| term.split(['!', '=']).next().unwrap_or_default());
    selected.find(|name| {
        let is_always = matches!(*name, "metadata.name" | "metadata.namespace");
        !is_always && !fields.iter().any(|field| field == name)
    })
}

fn terms(selector: Option<&String>) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let is_end = move |letter: char| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    };
    selector
        .into_iter()
        .flat_map(move |text| text.split(is_end))
        .filter(|term| !term.is_empty())
}

fn matches(selector: Option<&String>, value: impl Fn(&str) -> Option<String>) -> bool {
    terms(selector).all(|term| match term.split_once("!=") {
        _ if term.ends_with(')') => {
            let (key, wanted) = term.trim_end_matches(')').split_once(" in (").expect("a set");
            value(key).is_some_and(|value| wanted.split(',').any(|wanted| wanted == value))
        }
        Some((key, unwanted)) => value(key).as_deref() != Some(unwanted),
        None => match term.split_once('=') {
            Some((key, wanted)) => value(key).as_deref() == Some(wanted.trim_start_matches('=')),
            None => value(term).is_some(),
        },
    })
}
