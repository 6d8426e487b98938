//! Device selectors of a `DeviceClass`: CEL over one device.

mod dialect;
mod reads;

use std::cell::RefCell;
use std::collections::HashMap;

use k8s_openapi::api::resource::v1::DeviceClass;
use kube_cel::cel::{Context, IdedExpr, Value};

use self::reads::{DeviceKind, Reads};
use crate::inventory::{Attribute, Device};

/// Reason why this evaluator has no answer for a selector. It is never taken for "no", because the scheduler may well
/// have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotEvaluable(pub String);

/// The selectors of a class; all of them must hold.
pub struct Selectors {
    expressions: Vec<(String, IdedExpr)>,
    functions: Context<'static>,
    quantity: IdedExpr,
    semver: IdedExpr,
    /// Parts of a device that the selectors read together, if they are known.
    reads: Option<Reads>,
    /// Answers that were given: 40,000 devices of one kind are evaluated once, not for a third of a second.
    answers: RefCell<HashMap<DeviceKind, Result<bool, NotEvaluable>>>,
    /// The last of them: the next device is mostly of the same kind, and this one is compared without a copy.
    last: RefCell<Option<(DeviceKind, Result<bool, NotEvaluable>)>>,
}

impl Selectors {
    /// Compiles the selectors of a class.
    pub fn compile(class: &DeviceClass) -> Result<Self, NotEvaluable> {
        let expressions = class.spec.selectors.iter().flatten().map(|selector| {
            let Some(cel) = &selector.cel else {
                return Err(NotEvaluable("a selector of the DeviceClass is not CEL".to_owned()));
            };
            Ok((cel.expression.clone(), compile(&cel.expression)?))
        });
        let expressions: Vec<(String, IdedExpr)> = expressions.collect::<Result<_, _>>()?;
        Ok(Self {
            reads: Reads::from_expressions(expressions.iter().map(|(_, expression)| expression)),
            answers: RefCell::default(),
            last: RefCell::default(),
            expressions,
            functions: dialect::functions(),
            quantity: compile("quantity(text)")?,
            semver: compile("semver(text)")?,
        })
    }

    /// Returns true if a device is of the class.
    pub fn match_device(&self, driver: &str, device: &Device) -> Result<bool, NotEvaluable> {
        let Some(reads) = &self.reads else {
            return self.evaluate(driver, device);
        };
        if let Some((kind, known)) = &*self.last.borrow()
            && reads.is_of(kind, driver, device)
        {
            return known.clone();
        }
        let kind = reads.kind(driver, device);
        let known = self.answers.borrow().get(&kind).cloned();
        let answer = known.unwrap_or_else(|| self.evaluate(driver, device));
        self.answers.borrow_mut().insert(kind.clone(), answer.clone());
        *self.last.borrow_mut() = Some((kind, answer.clone()));
        answer
    }

    fn evaluate(&self, driver: &str, device: &Device) -> Result<bool, NotEvaluable> {
        let mut context = self.functions.new_inner_scope();
        context.add_variable_from_value(dialect::DEVICE, self.device(driver, device)?);
        for (text, expression) in &self.expressions {
            match context.resolve(expression) {
                Ok(Value::Bool(true)) => {}
                Ok(Value::Bool(false)) => return Ok(false),
                Ok(other) => {
                    return Err(NotEvaluable(format!(
                        "{text:?} is {:?} for {}, not a bool",
                        other.type_of(),
                        device.name
                    )));
                }
                Err(error) => return Err(NotEvaluable(format!("{text:?} for {}: {error}", device.name))),
            }
        }
        Ok(true)
    }

    /// A device as CEL sees it: attributes and capacities by domain, then by name.
    fn device(&self, driver: &str, device: &Device) -> Result<Value, NotEvaluable> {
        let (mut attributes, mut capacity) = (Domains::new(), Domains::new());
        let unknown =
            |name: &str| NotEvaluable(format!("the value of {name} of {} is of an unknown kind", device.name));
        if let Some(reads) = &self.reads {
            for name in &reads.attributes {
                if let Some(found) = name.attribute(driver, device) {
                    let value = self.attribute(found)?.ok_or_else(|| unknown(&name.unqualified))?;
                    attributes
                        .entry(&name.domain)
                        .or_default()
                        .insert(&name.unqualified, value);
                }
            }
            for name in &reads.capacity {
                if let Some(amount) = name.capacity(driver, device) {
                    let value = self.call(&self.quantity, amount)?;
                    capacity
                        .entry(&name.domain)
                        .or_default()
                        .insert(&name.unqualified, value);
                }
            }
        } else {
            for (name, attribute) in device.attributes.iter().map(|attribute| &**attribute) {
                let value = self.attribute(attribute)?.ok_or_else(|| unknown(name))?;
                // An unqualified name belongs to the driver's own domain.
                let (domain, name) = name.split_once('/').unwrap_or((driver, &**name));
                attributes.entry(domain).or_default().insert(name, value);
            }
            for (name, amount) in &device.capacity {
                let value = self.call(&self.quantity, amount)?;
                let (domain, name) = name.split_once('/').unwrap_or((driver, &**name));
                capacity.entry(domain).or_default().insert(name, value);
            }
        }
        Ok(HashMap::from([
            ("driver", Value::from(driver)),
            (dialect::ATTRIBUTES, attributes.into()),
            (dialect::CAPACITY, capacity.into()),
            ("allowMultipleAllocations", Value::Bool(device.shareable)),
        ])
        .into())
    }

    /// The value of an attribute; `None` for an unknown kind of value.
    fn attribute(&self, attribute: &Attribute) -> Result<Option<Value>, NotEvaluable> {
        Ok(match attribute {
            Attribute::Version(version) => Some(self.call(&self.semver, version)?),
            Attribute::String(text) => Some(Value::from(&**text)),
            Attribute::Int(number) => Some(Value::Int(*number)),
            Attribute::Bool(truth) => Some(Value::Bool(*truth)),
            Attribute::Unknown => None,
        })
    }

    fn call(&self, function: &IdedExpr, text: &str) -> Result<Value, NotEvaluable> {
        let mut context = self.functions.new_inner_scope();
        context.add_variable_from_value("text", text);
        context
            .resolve(function)
            .map_err(|error| NotEvaluable(format!("{text:?}: {error}")))
    }
}

/// Values by domain and name.
type Domains<'a> = HashMap<&'a str, HashMap<&'a str, Value>>;

fn compile(expression: &str) -> Result<IdedExpr, NotEvaluable> {
    dialect::parse(expression).map_err(|error| NotEvaluable(format!("{expression:?}: {error}")))
}

#[cfg(test)]
mod tests;
