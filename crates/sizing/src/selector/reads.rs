//! What of a device an expression reads: two devices that agree in it get the same answer, and most clusters have a handful
//! of kinds of devices and tens of thousands of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

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
pub struct Kind {
    driver: Box<str>,
    shareable: bool,
    attributes: Box<[Option<Attribute>]>,
    capacity: Box<[Option<Arc<str>>]>,
}

impl Reads {
    /// What expressions read; `None` if one of them reads otherwise than by literal names.
    pub fn of<'a>(expressions: impl Iterator<Item = &'a IdedExpr>) -> Option<Self> {
        let mut reads = Self::default();
        for expression in expressions {
            reads.add(expression)?;
        }
        Some(reads)
    }

    /// The kind of a device, as these expressions see it.
    pub fn kind(&self, driver: &str, device: &Device) -> Kind {
        Kind {
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

    /// Whether a device is of a kind.
    pub fn is_of(&self, kind: &Kind, driver: &str, device: &Device) -> bool {
        let attributes = self.attributes.iter().map(|name| name.attribute(driver, device));
        let capacity = self.capacity.iter().map(|name| name.capacity(driver, device));
        *kind.driver == *driver
            && kind.shareable == device.shareable
            && kind.attributes.iter().map(Option::as_ref).eq(attributes)
            && kind.capacity.iter().map(Option::as_ref).eq(capacity)
    }

    fn add(&mut self, expression: &IdedExpr) -> Option<()> {
        if let Some((part, name)) = read(&expression.expr) {
            let names = if part == ATTRIBUTES {
                &mut self.attributes
            } else {
                &mut self.capacity
            };
            names.insert(name);
            return Some(());
        }
        match &expression.expr {
            Expr::Select(select) if is_device(&select.operand) => {
                matches!(select.field.as_str(), "driver" | "allowMultipleAllocations").then_some(())
            }
            Expr::Select(select) => self.add(&select.operand),
            Expr::Call(call) => operands(call).into_iter().try_for_each(|operand| self.add(operand)),
            Expr::List(list) => list.elements.iter().try_for_each(|element| self.add(element)),
            Expr::Literal(_) => Some(()),
            Expr::Ident(name) => (name != DEVICE).then_some(()),
            Expr::Unspecified | Expr::Map(_) | Expr::Struct(_) | Expr::Comprehension(_) => None,
        }
    }
}

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

const DEVICE: &str = "device";
const ATTRIBUTES: &str = "attributes";
const CAPACITY: &str = "capacity";

/// `device.attributes['d'].n`, `device.attributes['d']['n']` and `'n' in device.attributes['d']`; capacities likewise.
fn read(expression: &Expr) -> Option<(&str, Name)> {
    let named = |map: &'_ IdedExpr, name: &str| {
        let (part, domain) = domain(&map.expr)?;
        let part = if part == ATTRIBUTES { ATTRIBUTES } else { CAPACITY };
        Some((part, Name::new(domain, name)))
    };
    match expression {
        Expr::Select(select) => named(&select.operand, &select.field),
        Expr::Call(call) => match (call.func_name.as_str(), operands(call).as_slice()) {
            (operators::INDEX, [map, name]) | (operators::IN, [name, map]) => named(map, text(&name.expr)?),
            _ => None,
        },
        _ => None,
    }
}

/// `device.attributes['d']` or `device.capacity['d']`.
fn domain(expression: &Expr) -> Option<(&str, &str)> {
    let Expr::Call(call) = expression else { return None };
    let [map, domain] = operands(call)[..] else { return None };
    let Expr::Select(part) = &map.expr else { return None };
    let of_device = call.func_name == operators::INDEX && is_device(&part.operand);
    let known = matches!(part.field.as_str(), ATTRIBUTES | CAPACITY);
    Some((part.field.as_str(), text(&domain.expr)?)).filter(|_| of_device && known)
}

fn operands(call: &CallExpr) -> Vec<&IdedExpr> {
    call.target.as_deref().into_iter().chain(&call.args).collect()
}

fn is_device(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name == DEVICE)
}

fn text(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kube_cel::cel::Program;

    use super::*;

    fn names(expression: &str) -> Option<Vec<String>> {
        let program = Program::compile(expression).unwrap();
        let reads = Reads::of(std::iter::once(program.expression()))?;
        let all = reads.attributes.iter().chain(&reads.capacity);
        Some(all.map(|name| name.qualified.clone()).collect())
    }

    #[test]
    fn literal_names_are_found() {
        let rows: [(&str, &[&str]); 8] = [
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
            "cel.bind(a, device.attributes['d'], a.type == 'gpu')",
        ];
        for expression in expressions {
            assert_eq!(names(expression), None, "{expression}");
        }
    }
}
