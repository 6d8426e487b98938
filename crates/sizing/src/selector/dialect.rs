//! CEL as Kubernetes reads it. The evaluator reads some of it otherwise, so an expression is rewritten before it is evaluated:
//!
//! | written | Kubernetes | the evaluator alone |
//! |---|---|---|
//! | `device.attributes['d']` | an empty map where the device has nothing of the domain | an error |
//! | `cel.bind(name, value, expression)` | `value` under a name | no such function |
//! | `optional.optMap(name, expression)`, `optFlatMap` | the expression of its value, if it has one | no such function |
//! | `map.?key` | an optional value | an error where the key is missing |
//! | `value.field`, `has(value.field)` of another type than a map | an error | `false` |
//! | `3 == 3.0`, `3u in [3]` | numbers are equal by value | by type too |
//! | `version == '1.2.3'` | an error: only a version equals a version | `false` |

use std::collections::HashMap;
use std::sync::OnceLock;

use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators};
use kube_cel::cel::context::VariableResolver;
use kube_cel::cel::objects::{Key, Value};
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, ResolveResult};

/// The variable that an expression is about.
pub const DEVICE: &str = "device";
/// Its attributes by domain and name.
pub const ATTRIBUTES: &str = "attributes";
/// Its capacities by domain and name.
pub const CAPACITY: &str = "capacity";
/// Name in a rewritten expression for a domain of either. No expression can contain the name itself.
pub const DOMAIN: &str = "@domain";
/// Name in a rewritten expression for `in`, and for `has`.
pub const CONTAINED: &str = "@contained";
/// Name in a rewritten expression for `==` and `!=`.
const EQUAL: &str = "@equal";
const UNEQUAL: &str = "@unequal";
/// `cel.bind` and `optional.of`, each as the evaluator keeps it: a method of a name.
pub const BIND: (&str, &str) = ("cel", "bind");
pub const OPTIONAL: (&str, &str) = ("optional", "of");
/// Macros over optional values.
const OPT_MAP: &str = "optMap";
const OPT_FLAT_MAP: &str = "optFlatMap";

/// Reads an expression.
pub fn parse(text: &str) -> Result<IdedExpr, String> {
    let parser = Parser::new().enable_optional_syntax(true);
    let expression = parser.parse(text).map_err(|error| error.to_string())?;
    rewritten(expression)
}

/// Everything that an expression can call.
pub fn functions() -> Context<'static> {
    let mut functions = Context::default().with_all();
    functions.add_function(DOMAIN, domain);
    functions.add_function(CONTAINED, contained);
    functions.add_function(EQUAL, |left: Value, right: Value| -> ResolveResult {
        if is_other(&left, &right) {
            return Err(ExecutionError::NoSuchOverload);
        }
        Ok((left == right).into())
    });
    functions.add_function(UNEQUAL, |left: Value, right: Value| left != right);
    functions.add_function("dyn", |value: Value| -> ResolveResult { Ok(value) });
    functions.add_function(&format!("{}.{}", BIND.0, BIND.1), bind);
    functions
}

/// Returns true if a call is that of a method of a name.
pub fn calls(call: &CallExpr, (name, method): (&str, &str)) -> bool {
    let of_name = |target: &IdedExpr| matches!(&target.expr, Expr::Ident(ident) if ident == name);
    call.func_name == method && call.target.as_deref().is_some_and(of_name)
}

/// The text of a literal.
pub fn text(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// The field of `device` that an expression is, once it is rewritten.
pub fn field_of_device(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Call(CallExpr { func_name, args, .. }) if func_name == operators::INDEX => match &args[..] {
            [device, field] if matches!(&device.expr, Expr::Ident(name) if name == DEVICE) => text(field),
            _ => None,
        },
        _ => None,
    }
}

/// `cel.bind(@o, optional, @o.hasValue() ? optional.of(cel.bind(name, @o.value(), expression)) : optional.none())`, with a name of
/// its own for each macro; the flat one has an expression that is optional already.
fn mapped(id: u64, macro_: &str, optional: IdedExpr, name: IdedExpr, expression: IdedExpr) -> Expr {
    let ided = |expr| IdedExpr { id, expr };
    let method = |target: IdedExpr, name: &str, args| ided(method(target, name, args));
    let of_name = |(name, function): (&str, &str), args| method(ided(Expr::Ident(name.to_owned())), function, args);
    let of_macro = ided(Expr::Ident(format!("@optional{id}")));
    let value = method(of_macro.clone(), "value", Vec::new());
    let has_value = method(of_macro.clone(), "hasValue", Vec::new());
    let bound = of_name(BIND, vec![name, value, expression]);
    let some = if macro_ == OPT_MAP {
        of_name(OPTIONAL, vec![bound])
    } else {
        bound
    };
    let none = of_name((OPTIONAL.0, "none"), Vec::new());
    let result = ided(call(operators::CONDITIONAL, vec![has_value, some, none]));
    of_name(BIND, vec![of_macro, optional, result]).expr
}

fn rewritten(IdedExpr { id, expr }: IdedExpr) -> Result<IdedExpr, String> {
    let all = |list: Vec<IdedExpr>| list.into_iter().map(rewritten).collect::<Result<Vec<_>, _>>();
    let expr = match expr {
        Expr::Select(SelectExpr { operand, field, test }) => {
            let operand = rewritten(*operand)?;
            let field = IdedExpr {
                id,
                expr: Expr::Literal(LiteralValue::String(field.into())),
            };
            if test {
                call(CONTAINED, vec![field, operand])
            } else {
                index(id, operators::INDEX, vec![operand, field])
            }
        }
        Expr::Call(CallExpr {
            func_name,
            target: None,
            args,
        }) => match func_name.as_str() {
            operators::OPT_SELECT => index(id, operators::OPT_INDEX, all(args)?),
            operators::INDEX | operators::OPT_INDEX => index(id, &func_name, all(args)?),
            operators::IN => call(CONTAINED, all(args)?),
            operators::EQUALS => call(EQUAL, all(args)?),
            operators::NOT_EQUALS => call(UNEQUAL, all(args)?),
            _ => call(&func_name, all(args)?),
        },
        Expr::Call(CallExpr {
            func_name,
            target: Some(target),
            args,
        }) if func_name == OPT_MAP || func_name == OPT_FLAT_MAP => {
            let Ok([name, expression]) = <[IdedExpr; 2]>::try_from(args) else {
                return Err(format!("{func_name} needs a name and an expression"));
            };
            mapped(id, &func_name, rewritten(*target)?, name, rewritten(expression)?)
        }
        Expr::Call(CallExpr {
            func_name,
            target: Some(target),
            args,
        }) => method(rewritten(*target)?, &func_name, all(args)?),
        Expr::List(mut list) => {
            list.elements = all(list.elements)?;
            Expr::List(list)
        }
        Expr::Map(mut map) => {
            for entry in &mut map.entries {
                let EntryExpr::MapEntry(entry) = &mut entry.expr else {
                    return Err("a message is not known here".to_owned());
                };
                entry.key = rewritten(std::mem::take(&mut entry.key))?;
                entry.value = rewritten(std::mem::take(&mut entry.value))?;
            }
            Expr::Map(map)
        }
        Expr::Comprehension(mut macro_) => {
            let parts = [
                &mut macro_.iter_range,
                &mut macro_.accu_init,
                &mut macro_.loop_cond,
                &mut macro_.loop_step,
                &mut macro_.result,
            ];
            for part in parts {
                *part = rewritten(std::mem::take(part))?;
            }
            Expr::Comprehension(macro_)
        }
        // The evaluator panics at these.
        Expr::Struct(_) | Expr::Unspecified => return Err("a message is not known here".to_owned()),
        simple @ (Expr::Ident(_) | Expr::Literal(_)) => simple,
    };
    Ok(IdedExpr { id, expr })
}

fn call(func_name: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr {
        func_name: func_name.to_owned(),
        target: None,
        args,
    })
}

fn method(target: IdedExpr, func_name: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr {
        func_name: func_name.to_owned(),
        target: Some(Box::new(target)),
        args,
    })
}

/// `map[key]` or `map[?key]`; a domain of a device is always there.
fn index(id: u64, operator: &str, args: Vec<IdedExpr>) -> Expr {
    let of_device = args.first().and_then(field_of_device);
    if !matches!(of_device, Some(ATTRIBUTES | CAPACITY)) {
        return call(operator, args);
    }
    let domain = call(DOMAIN, args);
    if operator == operators::INDEX {
        return domain;
    }
    let ided = |expr: Expr| IdedExpr { id, expr };
    let name = ided(Expr::Ident(OPTIONAL.0.to_owned()));
    method(name, OPTIONAL.1, vec![ided(domain)])
}

fn domain(domains: Value, name: Value) -> ResolveResult {
    let (Value::Map(domains), Value::String(name)) = (domains, name) else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let found = domains.get(&Key::String(name)).cloned();
    Ok(found.unwrap_or_else(|| HashMap::<Key, Value>::new().into()))
}

fn contained(value: Value, container: Value) -> ResolveResult {
    let found = match container {
        Value::List(list) if list.iter().any(|item| is_other(&value, item)) => {
            return Err(ExecutionError::NoSuchOverload);
        }
        Value::List(list) => list.contains(&value),
        Value::Map(map) => value.try_into().is_ok_and(|key: Key| map.get(&key).is_some()),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(found.into())
}

/// Returns true if a value is a quantity or a version, and the other is not of the same kind.
fn is_other(value: &Value, other: &Value) -> bool {
    let Value::Opaque(opaque) = value else { return false };
    let kind = opaque.runtime_type_name();
    let same = matches!(other, Value::Opaque(other) if other.runtime_type_name() == kind);
    // An optional value may be compared with anything.
    kind != "optional_type" && !same
}

/// The value is computed when the expression first reads it, and only then.
fn bind(call: &FunctionContext<'_, '_>) -> ResolveResult {
    let [name, value, expression] = call.args else {
        return Err(call.error("takes a name, a value and an expression"));
    };
    let Expr::Ident(name) = &name.expr else {
        return Err(call.error("the first argument is a name"));
    };
    let bound = Bound {
        name,
        value,
        scope: call.ptx,
        found: OnceLock::new(),
    };
    let mut scope = call.ptx.new_inner_scope();
    scope.set_variable_resolver(&bound);
    let result = scope.resolve(expression);
    drop(scope);
    match bound.found.into_inner() {
        // A variable of the same name further out must not stand in for it.
        Some(Err(error)) if result.is_err() || call.ptx.get_variable(name).is_some() => Err(error),
        _ => result,
    }
}

struct Bound<'a> {
    name: &'a str,
    value: &'a IdedExpr,
    scope: &'a Context<'a>,
    found: OnceLock<ResolveResult>,
}

impl VariableResolver for Bound<'_> {
    fn resolve(&self, variable: &str) -> Option<Value> {
        let found = || self.found.get_or_init(|| self.scope.resolve(self.value));
        (variable == self.name).then(found)?.clone().ok()
    }
}
