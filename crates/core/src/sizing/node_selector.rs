//! Node selectors, as the scheduler reads them.

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement};

use crate::inventory::Node;

/// Whether any term of a selector matches. An empty term matches nothing.
pub fn matches(selector: &NodeSelector, node: &Node) -> bool {
    selector.node_selector_terms.iter().any(|term| {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        let field = |key: &str| (key == "metadata.name").then_some(&*node.name);
        !(expressions.is_empty() && fields.is_empty())
            && expressions
                .iter()
                .all(|requirement| holds(requirement, node.label(&requirement.key)))
            && fields
                .iter()
                .all(|requirement| holds(requirement, field(&requirement.key)))
    })
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = value.is_some_and(|value| values.iter().any(|listed| listed == value));
    let numbers = || Some((value?.parse::<i64>().ok()?, values.first()?.parse::<i64>().ok()?));
    match requirement.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(value, bound)| value > bound),
        "Lt" => numbers().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;
    use crate::inventory::Strings;

    #[test]
    fn operators_mean_what_they_mean_to_the_scheduler() {
        let node = json!({ "metadata": { "name": "n1", "labels": { "zone": "a", "cores": "64" } } });
        let node = Node::read(&from_value(node).unwrap(), &mut Strings::default());
        let cases = [
            (json!({ "key": "zone", "operator": "In", "values": ["b", "a"] }), true),
            (json!({ "key": "zone", "operator": "In", "values": ["b"] }), false),
            (json!({ "key": "rack", "operator": "NotIn", "values": ["b"] }), true),
            (json!({ "key": "zone", "operator": "Exists" }), true),
            (json!({ "key": "zone", "operator": "DoesNotExist" }), false),
            (json!({ "key": "cores", "operator": "Gt", "values": ["63"] }), true),
            (json!({ "key": "cores", "operator": "Lt", "values": ["64"] }), false),
            (json!({ "key": "zone", "operator": "Gt", "values": ["1"] }), false),
            (json!({ "key": "zone", "operator": "Like", "values": ["a"] }), false),
        ];
        for (requirement, expected) in cases {
            let selector = from_value(json!({ "nodeSelectorTerms": [{ "matchExpressions": [requirement] }] })).unwrap();
            assert_eq!(matches(&selector, &node), expected, "{requirement}");
        }
        let by_name = json!({ "key": "metadata.name", "operator": "In", "values": ["n1"] });
        let terms = |terms| from_value(json!({ "nodeSelectorTerms": terms })).unwrap();
        assert!(matches(&terms(json!([{}, { "matchFields": [by_name] }])), &node));
        assert!(!matches(&terms(json!([{}])), &node), "an empty term matches nothing");
    }
}
