//! Parts of a device that an expression reads. Two devices that agree in them get the same answer, and most clusters
//! have a handful of kinds of devices and tens of thousands of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, operators};

use super::dialect::{ATTRIBUTES, BIND, CAPACITY, CONTAINED, DEVICE, DOMAIN, OPTIONAL, calls, field_of_device, text};
use crate::inventory::{Attribute, Device};

/// Attributes and capacities by domain and name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reads {
    pub attributes: BTreeSet<Name>,
    pub capacity: BTreeSet<Name>,
}

/// A name in a domain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub domain: String,
    pub unqualified: String,
    qualified: String,
}

/// Everything that decides on the answer for a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceKind {
    driver: Box<str>,
    shareable: bool,
    attributes: Box<[Option<Attribute>]>,
    capacity: Box<[Option<Arc<str>>]>,
}

impl Reads {
    /// Parts that rewritten expressions read; `None` if one of them reads otherwise than by literal names.
    pub fn from_expressions<'a>(expressions: impl Iterator<Item = &'a IdedExpr>) -> Option<Self> {
        let mut reads = Self::default();
        for expression in expressions {
            reads.add(expression, &mut Vec::new())?;
        }
        Some(reads)
    }

    /// The kind of a device, as these expressions see it.
    pub fn kind(&self, driver: &str, device: &Device) -> DeviceKind {
        DeviceKind {
            driver: driver.into(),
            shareable: device.shareable,
            attributes: self
                .attributes
                .iter()
                .map(|name| name.attribute(driver, device).cloned())
                .collect(),
            capacity: self
                .capacity
                .iter()
                .map(|name| name.capacity(driver, device).cloned())
                .collect(),
        }
    }

    /// Returns true if a device is of a kind.
    pub fn is_of(&self, kind: &DeviceKind, driver: &str, device: &Device) -> bool {
        let attributes = self.attributes.iter().map(|name| name.attribute(driver, device));
        let capacity = self.capacity.iter().map(|name| name.capacity(driver, device));
        *kind.driver == *driver
            && kind.shareable == device.shareable
            && kind.attributes.iter().map(Option::as_ref).eq(attributes)
            && kind.capacity.iter().map(Option::as_ref).eq(capacity)
    }

    /// `bound`: the names that `cel.bind` gives, each with its domain, if it has one.
    fn add<'a>(&mut self, expression: &'a IdedExpr, bound: &mut Vec<Binding<'a>>) -> Option<()> {
        if let Some((part, name)) = read(expression, bound) {
            let names = if part == ATTRIBUTES {
                &mut self.attributes
            } else {
                &mut self.capacity
            };
            names.insert(name);
            return Some(());
        }
        if let Some(field) = field_of_device(expression) {
            return matches!(field, "driver" | "allowMultipleAllocations").then_some(());
        }
        match &expression.expr {
            Expr::Call(call) if calls(call, BIND) => self.add_binding(call, bound),
            Expr::Call(call) => operands(call)
                .into_iter()
                .try_for_each(|operand| self.add(operand, bound)),
            Expr::List(list) => list.elements.iter().try_for_each(|element| self.add(element, bound)),
            Expr::Literal(_) => Some(()),
            // A whole domain, or the device itself, by a name: the parts that are read through it are unknown here.
            Expr::Ident(name) => (name != DEVICE && domain(expression, bound).is_none()).then_some(()),
            Expr::Unspecified | Expr::Map(_) | Expr::Struct(_) | Expr::Comprehension(_) | Expr::Select(_) => None,
        }
    }

    fn add_binding<'a>(&mut self, call: &'a CallExpr, bound: &mut Vec<Binding<'a>>) -> Option<()> {
        let [name, value, expression] = &call.args[..] else {
            return None;
        };
        let Expr::Ident(name) = &name.expr else { return None };
        if name == DEVICE {
            return None;
        }
        let stands_for = domain(value, bound);
        if stands_for.is_none() {
            self.add(value, bound)?;
        }
        bound.push((name, stands_for));
        let known = self.add(expression, bound);
        bound.pop();
        known
    }
}

/// A name that `cel.bind` gives, with its part and its domain of the device.
type Binding<'a> = (&'a str, Option<(&'a str, &'a str)>);

impl Name {
    fn new(domain: &str, name: &str) -> Self {
        Self {
            domain: domain.to_owned(),
            unqualified: name.to_owned(),
            qualified: format!("{domain}/{name}"),
        }
    }

    /// The attribute of a device; an unqualified name is in the driver's own domain.
    pub fn attribute<'a>(&self, driver: &str, device: &'a Device) -> Option<&'a Attribute> {
        let own = (self.domain == driver)
            .then(|| device.attribute(&self.unqualified))
            .flatten();
        own.or_else(|| device.attribute(&self.qualified))
    }

    /// The capacity of a device.
    pub fn capacity<'a>(&self, driver: &str, device: &'a Device) -> Option<&'a Arc<str>> {
        let find = |wanted: &str| device.capacity.iter().find(|(name, _)| **name == *wanted);
        let own = (self.domain == driver).then(|| find(&self.unqualified)).flatten();
        own.or_else(|| find(&self.qualified)).map(|(_, amount)| amount)
    }
}

/// `device.attributes['d'].n`, `device.attributes['d']['n']` and `'n' in device.attributes['d']`; capacities likewise.
fn read<'a>(expression: &'a IdedExpr, bound: &[Binding<'a>]) -> Option<(&'a str, Name)> {
    let Expr::Call(call) = &expression.expr else {
        return None;
    };
    let (map, name) = match (call.func_name.as_str(), operands(call).as_slice()) {
        (operators::INDEX | operators::OPT_INDEX, [map, name]) | (CONTAINED, [name, map]) => (*map, *name),
        _ => return None,
    };
    let (part, domain) = domain(map, bound)?;
    Some((part, Name::new(domain, text(name)?)))
}

/// The part and the domain, such as those of `device.attributes['d']`.
fn domain<'a>(expression: &'a IdedExpr, bound: &[Binding<'a>]) -> Option<(&'a str, &'a str)> {
    match &expression.expr {
        Expr::Ident(name) => bound.iter().rev().find(|(known, _)| known == name)?.1,
        Expr::Call(call) if calls(call, OPTIONAL) => domain(call.args.first()?, bound),
        Expr::Call(call) if call.func_name == DOMAIN => {
            let [part, domain] = &call.args[..] else { return None };
            let part = field_of_device(part).filter(|part| [ATTRIBUTES, CAPACITY].contains(part))?;
            Some((part, text(domain)?))
        }
        _ => None,
    }
}

fn operands(call: &CallExpr) -> Vec<&IdedExpr> {
    call.target.as_deref().into_iter().chain(&call.args).collect()
}

#[cfg(test)]
mod tests {
    use super::super::dialect::parse;
    use super::*;

    fn names(expression: &str) -> Option<Vec<String>> {
        let reads = Reads::from_expressions(std::iter::once(&parse(expression).unwrap()))?;
        let all = reads.attributes.iter().chain(&reads.capacity);
        Some(all.map(|name| name.qualified.clone()).collect())
    }

    #[test]
    fn literal_names_are_found() {
        let rows: [(&str, &[&str]); 13] = [
            (
                "device.driver == 'd' && device.attributes['d'].type == 'gpu'",
                &["d/type"],
            ),
            ("!device.allowMultipleAllocations", &[]),
            ("device.attributes['d']['type'] in ['gpu', 'mig']", &["d/type"]),
            ("'type' in device.attributes['d']", &["d/type"]),
            (
                "has(device.attributes['d'].type) ? device.attributes['e'].x : true",
                &["d/type", "e/x"],
            ),
            (
                "device.capacity['d'].memory.compareTo(quantity('40Gi')) >= 0",
                &["d/memory"],
            ),
            ("!(device.attributes['d'].uuid in ['a', 'b'])", &["d/uuid"]),
            (
                "cel.bind(own, device.attributes['d'], own.type == 'gpu' && own['x'] > 0)",
                &["d/type", "d/x"],
            ),
            (
                "cel.bind(own, device.attributes['d'], cel.bind(own, device.attributes['e'], own.x) && own.y)",
                &["d/y", "e/x"],
            ),
            (
                "cel.bind(kind, device.attributes['d'].type, kind == 'gpu')",
                &["d/type"],
            ),
            ("device.attributes['d'].?type.orValue('') == 'gpu'", &["d/type"]),
            ("device.attributes[?'d'][?'type'].hasValue()", &["d/type"]),
            ("true", &[]),
        ];
        for (expression, expected) in rows {
            let expected = expected.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(names(expression), Some(expected), "{expression}");
        }
    }

    #[test]
    fn all_else_may_read_anything() {
        let expressions = [
            "device.attributes['d'].exists(name, name == 'x')",
            "device.attributes.exists(domain, true)",
            "device.attributes[device.driver].type == 'gpu'",
            "device.attributes['d'].size() > 0",
            "device == device",
            "device.newField == 1",
            "cel.bind(a, device.attributes['d'], a.size() > 0)",
            "cel.bind(a, device.attributes, a['d'].type == 'gpu')",
            "cel.bind(a, device, a.driver == 'd')",
            "cel.bind(device, {'driver': 'd'}, device.driver == 'd')",
            "device.attributes.?d.size() > 0",
        ];
        for expression in expressions {
            assert_eq!(names(expression), None, "{expression}");
        }
    }
}
