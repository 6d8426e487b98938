//! Kubernetes quantities.

use perfval_api::quantity::{change_percent, parse};

pub fn run(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let Some(value) = parse(&text) else {
        return false;
    };
    let again = parse(&value.to_string());
    assert_eq!(again, Some(value), "{text:?}");
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    assert!(plain, "{text:?} is no quantity, and was read as {value}");
    let _ = change_percent(value, -value); // a zero is divided by nowhere
    let _ = change_percent(value, value.trunc());
    true
}
