//! The chart and the folders under `config/`, rendered: each file of `chart/` is one topic.

mod chart {
    mod bad_values;
    mod files;
    mod images;
    mod limits;
    mod monitoring;
    mod network;
    mod notes;
    mod pages;
    mod pods;
    mod rights;
    mod same_objects;
    mod series;
}

use std::collections::BTreeMap;

use perfval_chart::object::by_id;
use perfval_chart::render;
use serde_json::Value;

/// The objects of the chart by their names.
fn objects(values: &Value) -> BTreeMap<String, Value> {
    by_id(render::chart(values).unwrap_or_else(|error| panic!("{error}")))
}

/// The operator's Deployment.
fn deployment(values: &Value) -> Value {
    objects(values)["Deployment perfvalidation-system/perfvalidation-operator"].clone()
}

/// An environment variable of the operator.
fn variable(deployment: &Value, name: &str) -> Option<String> {
    let variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array()?;
    let found = variables.iter().find(|variable| variable["name"] == name)?;
    found["value"].as_str().map(str::to_owned)
}
