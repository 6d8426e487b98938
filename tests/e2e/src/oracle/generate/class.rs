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
    /// Binds a value that would be an error, and never reads it.
    BoundUnread,
    Qualified,
    Healthy,
    Partitions,
    Optional,
    OptionalDomain,
    OptionalMapped,
    /// Goes through the names of a domain.
    Names,
    /// The same of a domain of which no device has anything.
    OtherDomain,
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

const SELECTORS: [Selector; 21] = [
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
    Selector::BoundUnread,
    Selector::Qualified,
    Selector::Healthy,
    Selector::Partitions,
    Selector::Partitions,
    Selector::Optional,
    Selector::OptionalDomain,
    Selector::OptionalMapped,
    Selector::Names,
    Selector::OtherDomain,
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
            Selector::Bound | Selector::BoundUnread => "class: cel.bind()",
            Selector::Qualified => "class: by qualified attribute",
            Selector::Healthy => "class: by bool and int",
            Selector::Partitions => "class: partitions too",
            Selector::Optional | Selector::OptionalDomain => "class: optional syntax",
            Selector::OptionalMapped => "class: optMap()",
            Selector::Names => "class: macro over names",
            Selector::OtherDomain => "class: macro over another domain",
            Selector::Missing => "class: attribute that is missing",
        }
    }

    /// What sizing may say of a node with devices.
    pub fn excuses(&self) -> Vec<&'static str> {
        if self.selector == Selector::Missing {
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
            Selector::BoundUnread => and(format!(
                "cel.bind(unread, {attributes}.certified, {attributes}.type == 'gpu' || {attributes}.type != 'gpu' && false && unread)"
            )),
            Selector::Qualified => and(format!(
                "{attributes}.type == 'gpu' && device.attributes['resource.kubernetes.io'].pciBusID.startsWith('0000:')"
            )),
            Selector::Healthy => and(format!(
                "{attributes}.healthy && {attributes}.index >= 1 && {attributes}.type != 'mig'"
            )),
            Selector::Partitions => and(format!("{attributes}.type in ['gpu', 'mig']")),
            Selector::Optional => and(format!("{attributes}.?type.orValue('none') == 'gpu'")),
            Selector::OptionalDomain => and(format!(
                "device.attributes[?'{driver}'].?type.orValue('none') == 'gpu' && !{attributes}.?vendor.hasValue()"
            )),
            Selector::OptionalMapped => and(format!(
                "{attributes}.?type.optMap(kind, kind == 'gpu').orValue(false) && \
                 {attributes}.?type.optFlatMap(kind, optional.of(kind)).hasValue() && !{attributes}.?vendor.optMap(a, a).hasValue()"
            )),
            Selector::Names => and(format!(
                "{attributes}.exists(name, name == 'type') && {attributes}.type == 'gpu'"
            )),
            Selector::OtherDomain => and(format!(
                "device.attributes['other.example'].all(name, false) && !device.capacity['other.example'].exists(name, true) \
                 && {attributes}.type == 'gpu'"
            )),
            Selector::Missing => and(format!("{attributes}.certified")),
        }
    }
}
