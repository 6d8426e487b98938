//! Device selectors of a `DeviceClass`: CEL over one device.

mod reads;

use std::cell::RefCell;
use std::collections::HashMap;

use k8s_openapi::api::resource::v1::DeviceClass;
use kube_cel::KubeCelExt;
use kube_cel::cel::{Context, Program, Value};

use self::reads::{Kind, Reads};
use crate::inventory::{Attribute, Device};

/// Why a selector has no answer here. Never taken for "no": the scheduler may well have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotEvaluable(pub String);

/// The selectors of a class; all of them must hold.
pub struct Selectors {
    programs: Vec<(String, Program)>,
    functions: Context<'static>,
    quantity: Program,
    semver: Program,
    /// What all of them read together, if that is known.
    reads: Option<Reads>,
    /// Answers that were given: 40,000 devices of one kind are evaluated once, not for a third of a second.
    answers: RefCell<HashMap<Kind, Result<bool, NotEvaluable>>>,
    /// The last of them: the next device is mostly of the same kind, and this one is compared without a copy.
    last: RefCell<Option<(Kind, Result<bool, NotEvaluable>)>>,
}

impl Selectors {
    /// Compiles the selectors of a class. Optional syntax (`.?`) is refused: the evaluator reads a missing key
    /// otherwise than Kubernetes does.
    pub fn compile(class: &DeviceClass) -> Result<Self, NotEvaluable> {
        let programs = class.spec.selectors.iter().flatten().map(|selector| {
            let Some(cel) = &selector.cel else {
                return Err(NotEvaluable("a selector of the DeviceClass is not CEL".to_owned()));
            };
            Ok((cel.expression.clone(), compile(&cel.expression)?))
        });
        let programs: Vec<(String, Program)> = programs.collect::<Result<_, _>>()?;
        Ok(Self {
            reads: Reads::of(programs.iter().map(|(_, program)| program.expression())),
            answers: RefCell::default(),
            last: RefCell::default(),
            programs,
            functions: Context::default().with_all(),
            quantity: compile("quantity(text)")?,
            semver: compile("semver(text)")?,
        })
    }

    /// Whether a device is of the class.
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
        context.add_variable_from_value("device", self.device(driver, device)?);
        for (expression, program) in &self.programs {
            match program.execute(&context) {
                Ok(Value::Bool(true)) => {}
                Ok(Value::Bool(false)) => return Ok(false),
                Ok(other) => {
                    return Err(NotEvaluable(format!(
                        "{expression:?} is {:?} for {}, not a bool",
                        other.type_of(),
                        device.name
                    )));
                }
                Err(error) => return Err(NotEvaluable(format!("{expression:?} for {}: {error}", device.name))),
            }
        }
        Ok(true)
    }

    /// A device as CEL sees it: attributes and capacities by domain, then by name.
    fn device(&self, driver: &str, device: &Device) -> Result<Value, NotEvaluable> {
        let (mut attributes, mut capacity) = (Domains::new(driver), Domains::new(driver));
        if let Some(reads) = &self.reads {
            for name in &reads.attributes {
                let found = name.attribute(driver, device);
                let value = found.map(|found| self.attribute(found)).transpose()?.flatten();
                attributes.put(&name.domain, &name.unqualified, value);
            }
            for name in &reads.capacity {
                let found = name.capacity(driver, device);
                let value = found.map(|amount| self.call(&self.quantity, amount)).transpose()?;
                capacity.put(&name.domain, &name.unqualified, value);
            }
        } else {
            for (name, attribute) in &device.attributes {
                attributes.insert(name, self.attribute(attribute)?);
            }
            for (name, amount) in &device.capacity {
                capacity.insert(name, Some(self.call(&self.quantity, amount)?));
            }
        }
        Ok(HashMap::from([
            ("driver", Value::from(driver)),
            ("attributes", attributes.into()),
            ("capacity", capacity.into()),
            ("allowMultipleAllocations", Value::Bool(device.shareable)),
        ])
        .into())
    }

    /// The value of an attribute; none for a kind that is not known here, so that only selectors that use it fail.
    fn attribute(&self, attribute: &Attribute) -> Result<Option<Value>, NotEvaluable> {
        Ok(match attribute {
            Attribute::Version(version) => Some(self.call(&self.semver, version)?),
            Attribute::String(text) => Some(Value::from(&**text)),
            Attribute::Int(number) => Some(Value::Int(*number)),
            Attribute::Bool(truth) => Some(Value::Bool(*truth)),
            Attribute::Unknown => None,
        })
    }

    fn call(&self, function: &Program, text: &str) -> Result<Value, NotEvaluable> {
        let mut context = self.functions.new_inner_scope();
        context.add_variable_from_value("text", text);
        function
            .execute(&context)
            .map_err(|error| NotEvaluable(format!("{text:?}: {error}")))
    }
}

/// Names by domain. An unqualified one belongs to the driver's own; that domain is there even without any name.
struct Domains<'a> {
    driver: &'a str,
    names: HashMap<&'a str, HashMap<&'a str, Value>>,
}

impl<'a> Domains<'a> {
    fn new(driver: &'a str) -> Self {
        let names = HashMap::from([(driver, HashMap::new())]);
        Self { driver, names }
    }

    fn insert(&mut self, name: &'a str, value: Option<Value>) {
        let (domain, name) = name.split_once('/').unwrap_or((self.driver, name));
        self.put(domain, name, value);
    }

    /// A domain that is asked for is there, as it is for the scheduler, even where the device has nothing of it.
    fn put(&mut self, domain: &'a str, name: &'a str, value: Option<Value>) {
        let names = self.names.entry(domain).or_default();
        names.extend(value.map(|value| (name, value)));
    }
}

impl From<Domains<'_>> for Value {
    fn from(domains: Domains<'_>) -> Self {
        let names: HashMap<&str, Value> = domains
            .names
            .into_iter()
            .map(|(domain, names)| (domain, names.into()))
            .collect();
        names.into()
    }
}

fn compile(expression: &str) -> Result<Program, NotEvaluable> {
    Program::compile(expression).map_err(|error| NotEvaluable(format!("{expression:?}: {error}")))
}

#[cfg(test)]
mod tests;
