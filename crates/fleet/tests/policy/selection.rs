//! Node selectors.

use perfval_fleet::policy::Selection;
use serde_json::json;

#[test]
fn a_selector_matches_labels_and_expressions() {
    let label = |key: &str| {
        [("gpu", "h100"), ("zone", "a")]
            .into_iter()
            .find(|(known, _)| *known == key)
    };
    let cases = [
        (json!({}), true),
        (json!({"matchLabels": {"gpu": "h100"}}), true),
        (json!({"matchLabels": {"gpu": "h200"}}), false),
        (
            json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "rack", "operator": "DoesNotExist"}]}),
            true,
        ),
        (
            json!({"matchLabels": {"gpu": "h100"}, "matchExpressions": [{"key": "rack", "operator": "Exists"}]}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "zone", "operator": "Like", "values": ["a"]}]}),
            false,
        ),
    ];
    for (selector, expected) in cases {
        let selection = Selection::new(&serde_json::from_value(selector.clone()).expect("a selector"));
        let matches = selection.matches(|key| label(key).map(|(_, value)| value));
        assert_eq!(matches, expected, "{selector}");
    }
}
