//! The dashboard as Grafana would read it: the installed ConfigMap, its variables, and the query of every panel.

use perfval_e2e::Lab;
use serde_json::Value;

use crate::Outcome;
use crate::prometheus::Prometheus;

const CONFIG_MAP: &str = "perfvalidation-operator-dashboard";
/// Panels without data after a healthy run and without a policy.
const OF_TROUBLE_OR_POLICIES: [&str; 8] = [
    "Slow GPUs",
    "Left in the cluster",
    "Results not saved",
    "Seconds in the phase",
    "Nodes of each policy",
    "GPU minutes today",
    "Policies that are not ready",
    "Outliers",
];

/// Asks for what every panel and every variable shows.
///
/// # Errors
/// If a panel shows nothing.
pub async fn every_panel_has_data(lab: &Lab, prometheus: &Prometheus) -> Outcome<()> {
    let path = r"jsonpath={.data.perfvalidation\.json}";
    let text = lab
        .kubectl(&[
            "get",
            "configmap",
            "-n",
            "perfvalidation-system",
            CONFIG_MAP,
            "-o",
            path,
        ])
        .await;
    let dashboard: Value = serde_json::from_str(&text)?;
    let mut empty = Vec::new();
    for variable in list(&dashboard["templating"]["list"]).filter(|variable| variable["type"] == "query") {
        let definition = variable["definition"].as_str().unwrap_or_default();
        let series = definition
            .strip_prefix("label_values(")
            .and_then(|rest| rest.rsplit_once(','));
        let (query, label) = series.ok_or_else(|| format!("a variable that is no label_values: {definition}"))?;
        let found = prometheus.instant(&of_all(query)).await?;
        let label = label.trim_end_matches(')').trim();
        let values: Vec<&str> = found
            .iter()
            .filter_map(|series| series["metric"][label].as_str())
            .collect();
        println!("${label:<33} {}", values.join(" "));
        if values.is_empty() {
            empty.push(format!("variable {label}"));
        }
    }
    for panel in list(&dashboard["panels"]).filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().unwrap_or_default();
        let mut shown = Vec::new();
        for target in list(&panel["targets"]) {
            let query = of_all(target["expr"].as_str().unwrap_or_default());
            let found = if target["instant"] == true {
                prometheus.instant(&query).await?
            } else {
                prometheus.range(&query).await?
            };
            shown.extend(found.iter().filter_map(last_value));
        }
        println!("{title:<34} {}", shown.join(", "));
        if shown.is_empty() && !OF_TROUBLE_OR_POLICIES.contains(&title) {
            empty.push(format!("panel {title}"));
        }
    }
    if empty.is_empty() {
        Ok(())
    } else {
        Err(format!("no data for {}", empty.join(", ")).into())
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A query with everything chosen in every variable.
fn of_all(query: &str) -> String {
    let variables = ["$namespace", "$name", "$node"];
    variables
        .iter()
        .fold(query.to_owned(), |query, variable| query.replace(variable, ".*"))
}

/// What a graph draws at its right end: labels, and the last value that is a number.
fn last_value(series: &Value) -> Option<String> {
    let points = list(&series["values"]).chain(Some(&series["value"]).filter(|value| value.is_array()));
    let numbers = points.filter_map(|point| point[1].as_str()?.parse::<f64>().ok());
    let last = numbers.filter(|number| number.is_finite()).last()?;
    let labels = series["metric"].as_object().into_iter().flatten();
    let labels: Vec<&str> = labels
        .filter(|(label, _)| *label != "__name__")
        .filter_map(|(_, value)| value.as_str())
        .collect();
    Some(
        format!("{} {}", labels.join("/"), (last * 1000.0).round() / 1000.0)
            .trim()
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{last_value, of_all};

    #[test]
    fn a_text_without_a_number_is_no_data() {
        let series = |values| json!({"metric": {"__name__": "m", "phase": "Sizing"}, "values": values});
        assert_eq!(last_value(&series(json!([[1, "NaN"]]))), None);
        assert_eq!(last_value(&series(json!([]))), None);
        let drawn = last_value(&series(json!([[1, "2.50004"], [2, "NaN"]])));
        assert_eq!(drawn.as_deref(), Some("Sizing 2.5"));
        let now = last_value(&json!({"metric": {}, "value": [1, "0"]}));
        assert_eq!(now.as_deref(), Some("0"), "zero is data");
    }

    #[test]
    fn everything_is_chosen() {
        assert_eq!(
            of_all(r#"a{namespace=~"$namespace",name=~"$name",node=~"$node"}"#),
            r#"a{namespace=~".*",name=~".*",node=~".*"}"#
        );
    }
}
