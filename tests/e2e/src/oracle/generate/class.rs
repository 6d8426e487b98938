//! The DeviceClass of a random cluster.

use serde_json::{Value, json};

use crate::draw::Draw;

/// What the class says of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Selector {
    Type,
    TypeInList,
    TwoSelectors,
    Memory,
    Version,
    Has,
    Bound,
    Qualified,
    Healthy,
    Partitions,
    /// Optional syntax, which only Kubernetes' own evaluator may know.
    Optional,
    /// Ends in an error for a device without the attribute.
    Missing,
}

/// The class.
pub struct Class {
    selector: Selector,
    /// Whether it exists.
    pub exists: bool,
    /// Whether pods get its devices by the extended resource.
    pub extended: bool,
}

const SELECTORS: [Selector; 16] = [
    Selector::Type,
    Selector::Type,
    Selector::Type,
    Selector::TypeInList,
    Selector::TwoSelectors,
    Selector::Memory,
    Selector::Memory,
    Selector::Version,
    Selector::Version,
    Selector::Has,
    Selector::Bound,
    Selector::Qualified,
    Selector::Healthy,
    Selector::Partitions,
    Selector::Partitions,
    Selector::Optional,
];

impl Class {
    pub fn draw(draw: &mut Draw) -> Self {
        let selector = if draw.chance(3) {
            Selector::Missing
        } else {
            draw.pick(&SELECTORS)
        };
        Self {
            selector,
            exists: !draw.chance(3),
            extended: draw.chance(50),
        }
    }

    /// What the report calls it.
    pub fn feature(&self) -> &'static str {
        if !self.exists {
            return "class: missing";
        }
        match self.selector {
            Selector::Type | Selector::TypeInList | Selector::TwoSelectors => "class: by type",
            Selector::Memory => "class: by capacity",
            Selector::Version => "class: by version",
            Selector::Has => "class: has()",
            Selector::Bound => "class: cel.bind()",
            Selector::Qualified => "class: by qualified attribute",
            Selector::Healthy => "class: by bool and int",
            Selector::Partitions => "class: partitions too",
            Selector::Optional => "class: optional syntax",
            Selector::Missing => "class: attribute that is missing",
        }
    }

    /// What sizing may say of a node with devices: its evaluator knows neither optional syntax nor `cel.bind`.
    pub fn excuses(&self) -> Vec<&'static str> {
        if matches!(self.selector, Selector::Optional | Selector::Bound | Selector::Missing) {
            vec!["NotEvaluable"]
        } else {
            Vec::new()
        }
    }

    /// Its manifest.
    pub fn objects(&self, driver: &str, resource: &str) -> Vec<Value> {
        if !self.exists {
            return Vec::new();
        }
        let selectors: Vec<Value> = self
            .expressions(driver)
            .into_iter()
            .map(|expression| json!({ "cel": { "expression": expression } }))
            .collect();
        let mut class = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
            "metadata": { "name": driver }, "spec": { "selectors": selectors },
        });
        if self.extended {
            class["spec"]["extendedResourceName"] = json!(resource);
        }
        vec![class]
    }

    /// Every expression asks for the driver first: of other drivers' devices it knows no attribute.
    fn expressions(&self, driver: &str) -> Vec<String> {
        let ours = format!("device.driver == '{driver}'");
        let attributes = format!("device.attributes['{driver}']");
        let and = |rest: String| vec![format!("{ours} && {rest}")];
        match self.selector {
            Selector::Type => and(format!("{attributes}.type == 'gpu'")),
            Selector::TypeInList => and(format!("{attributes}.type in ['gpu', 'card']")),
            Selector::TwoSelectors => vec![ours, format!("{attributes}.type == 'gpu'")],
            Selector::Memory => and(format!(
                "device.capacity['{driver}'].memory.compareTo(quantity('40Gi')) >= 0"
            )),
            Selector::Version => and(format!(
                "{attributes}.type == 'gpu' && {attributes}.driverVersion.compareTo(semver('570.0.0')) >= 0"
            )),
            Selector::Has => and(format!("has({attributes}.type) && {attributes}.type == 'gpu'")),
            Selector::Bound => and(format!(
                "cel.bind(own, {attributes}, own.type == 'gpu' && own.index >= 0)"
            )),
            Selector::Qualified => and(format!(
                "{attributes}.type == 'gpu' && device.attributes['resource.kubernetes.io'].pciBusID.startsWith('0000:')"
            )),
            Selector::Healthy => and(format!(
                "{attributes}.healthy && {attributes}.index >= 1 && {attributes}.type != 'mig'"
            )),
            Selector::Partitions => and(format!("{attributes}.type in ['gpu', 'mig']")),
            Selector::Optional => and(format!("{attributes}.?type.orValue('none') == 'gpu'")),
            Selector::Missing => and(format!("{attributes}.certified")),
        }
    }
}
