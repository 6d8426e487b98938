//! Node selectors, as the scheduler reads them.

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement};

use crate::inventory::Node;

/// Returns true if any term of a selector matches. An empty term matches nothing.
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

/// Fault that makes a selector unreadable to the scheduler, which then ignores all devices of the pool.
pub fn fault(selector: &NodeSelector) -> Option<String> {
    let terms = || selector.node_selector_terms.iter();
    let expressions = terms().flat_map(|term| term.match_expressions.iter().flatten());
    let fields = terms().flat_map(|term| term.match_fields.iter().flatten());
    let odd_expression = expressions
        .into_iter()
        .find(|requirement| !is_readable(requirement))
        .or_else(|| fields.into_iter().find(|field| !is_readable_field(field)))?;
    Some(format!(
        "its node selector {:?} {} {:?} cannot be read",
        odd_expression.key,
        odd_expression.operator,
        odd_expression.values.as_deref().unwrap_or_default()
    ))
}

/// `topology.kubernetes.io/zone in a, b or rack in c`: which nodes a selector matches.
pub fn in_words(selector: &NodeSelector) -> String {
    let requirement = |requirement: &NodeSelectorRequirement| {
        let operator = match requirement.operator.as_str() {
            "In" => "in",
            "NotIn" => "not in",
            other => other,
        };
        let values = requirement.values.as_deref().unwrap_or_default().join(", ");
        format!("{} {operator} {values}", requirement.key).trim_end().to_owned()
    };
    let terms = selector.node_selector_terms.iter().map(|term| {
        let all = term.match_expressions.iter().chain(&term.match_fields).flatten();
        all.map(requirement).collect::<Vec<_>>().join(" and ")
    });
    terms.collect::<Vec<_>>().join(" or ")
}

fn is_readable(requirement: &NodeSelectorRequirement) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    match (requirement.operator.as_str(), values) {
        ("In" | "NotIn", [_, ..]) | ("Exists" | "DoesNotExist", []) => true,
        ("Gt" | "Lt", [bound]) => bound.parse::<i64>().is_ok(),
        _ => false,
    }
}

fn is_readable_field(requirement: &NodeSelectorRequirement) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    requirement.key == "metadata.name" && matches!((requirement.operator.as_str(), values), ("In" | "NotIn", [_]))
}

/// A requirement that cannot be read holds for every node, so that none is taken to have nothing to do with its pool.
fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = value.is_some_and(|value| values.iter().any(|listed| listed == value));
    let numbers = || Some((value?.parse::<i64>().ok()?, values.first()?.parse::<i64>().ok()?));
    match requirement.operator.as_str() {
        _ if !is_readable(requirement) => true,
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(value, bound)| value > bound),
        "Lt" => numbers().is_some_and(|(value, bound)| value < bound),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;
    use crate::inventory::Interned;

    #[test]
    fn operators_match_as_in_the_scheduler() {
        let node = json!({ "metadata": { "name": "n1", "labels": { "zone": "a", "cores": "64" } } });
        let node = Node::read(&from_value(node).unwrap(), &mut Interned::default());
        let cases = [
            (json!({ "key": "zone", "operator": "In", "values": ["b", "a"] }), true),
            (json!({ "key": "zone", "operator": "In", "values": ["b"] }), false),
            (json!({ "key": "rack", "operator": "NotIn", "values": ["b"] }), true),
            (json!({ "key": "zone", "operator": "Exists" }), true),
            (json!({ "key": "zone", "operator": "DoesNotExist" }), false),
            (json!({ "key": "cores", "operator": "Gt", "values": ["63"] }), true),
            (json!({ "key": "cores", "operator": "Lt", "values": ["64"] }), false),
            (json!({ "key": "zone", "operator": "Gt", "values": ["1"] }), false),
        ];
        for (requirement, expected) in cases {
            let selector = from_value(json!({ "nodeSelectorTerms": [{ "matchExpressions": [requirement] }] })).unwrap();
            assert_eq!(matches(&selector, &node), expected, "{requirement}");
            assert_eq!(fault(&selector), None, "{requirement}");
        }
        let unreadable = [
            json!({ "key": "zone", "operator": "Like", "values": ["a"] }),
            json!({ "key": "zone", "operator": "In" }),
            json!({ "key": "cores", "operator": "Gt", "values": ["many"] }),
            json!({ "key": "zone", "operator": "Exists", "values": ["a"] }),
            json!({}),
        ];
        for requirement in unreadable {
            let selector = from_value(json!({ "nodeSelectorTerms": [{ "matchExpressions": [requirement] }] })).unwrap();
            assert!(fault(&selector).is_some() && matches(&selector, &node), "{requirement}");
        }
        let by_name = json!({ "key": "metadata.name", "operator": "In", "values": ["n1"] });
        let terms = |terms| from_value(json!({ "nodeSelectorTerms": terms })).unwrap();
        assert!(matches(&terms(json!([{}, { "matchFields": [by_name] }])), &node));
        assert!(!matches(&terms(json!([{}])), &node), "an empty term matches nothing");
    }
}
