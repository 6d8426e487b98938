//! Devices that a class's expressions select.

use serde_json::{from_value, json};

use super::*;
use crate::inventory::Interned;

/// A class with these expressions.
fn compiled(expressions: &[&str]) -> Result<Selectors, NotEvaluable> {
    let selectors: Vec<_> = expressions
        .iter()
        .map(|expression| json!({ "cel": { "expression": expression } }))
        .collect();
    let class = json!({ "metadata": { "name": "c" }, "spec": { "selectors": selectors } });
    Selectors::compile(&from_value(class).expect("a class"))
}

fn read(device: serde_json::Value) -> Device {
    Device::read(&from_value(device).expect("a device"), &mut Interned::default())
}

#[track_caller]
fn assert_answers(cases: &[(&str, bool)]) {
    for (expression, expected) in cases {
        assert_eq!(answer(expression), Ok(*expected), "{expression}");
    }
}

fn answer(expression: &str) -> Result<bool, NotEvaluable> {
    answer_with(expression, &json!({}))
}

/// The answer for a device with these attributes in addition.
fn answer_with(expression: &str, more: &serde_json::Value) -> Result<bool, NotEvaluable> {
    let mut device = json!({
        "name": "gpu-0",
        "attributes": {
            "type": { "string": "gpu" }, "index": { "int": 3 }, "ok": { "bool": true },
            "driverVersion": { "version": "550.163.1" },
            "resource.kubernetes.io/pciBusID": { "string": "0000:1a:00.0" },
        },
        "capacity": { "memory": { "value": "80Gi" } },
        "allowMultipleAllocations": true,
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        device["attributes"][name] = value.clone();
    }
    compiled(&[expression])?.match_device("gpu.nvidia.com", &read(device))
}

#[test]
fn expressions_of_shipped_classes_are_evaluated() {
    let cases = [
        (
            "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",
            true,
        ),
        (
            "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'",
            false,
        ),
        // The scheduler stops at the first false, so a foreign device needs no attribute.
        (
            "device.driver == 'other.example' && device.attributes['other.example'].type == 'gpu'",
            false,
        ),
        (
            "device.attributes['resource.kubernetes.io'].pciBusID == '0000:1a:00.0'",
            true,
        ),
        ("device.attributes['gpu.nvidia.com'].type in ['gpu', 'mig']", true),
        (
            "device.attributes['gpu.nvidia.com'].index >= 3 && device.attributes['gpu.nvidia.com'].ok",
            true,
        ),
        (
            "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0",
            true,
        ),
        (
            "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('80Gi'))",
            false,
        ),
        (
            "device.attributes['gpu.nvidia.com'].driverVersion.compareTo(semver('550.0.0')) > 0",
            true,
        ),
        ("!device.allowMultipleAllocations", false),
        ("has(device.attributes['gpu.nvidia.com'].absent)", false),
        ("has(device.attributes['other.example'].absent)", false),
        ("'type' in device.attributes['gpu.nvidia.com']", true),
    ];
    assert_answers(&cases);
}

#[test]
fn a_name_of_cel_bind_stands_for_its_value() {
    let cases = [
        // The example of the API reference.
        (
            "cel.bind(dra, device.attributes['gpu.nvidia.com'], dra.type == 'gpu' && dra.ok)",
            true,
        ),
        (
            "cel.bind(kind, device.attributes['gpu.nvidia.com'].type, kind == 'mig')",
            false,
        ),
        ("cel.bind(a, 'gpu', cel.bind(a, 'mig', a == 'mig'))", true),
        ("cel.bind(a, 'gpu', cel.bind(b, a, b == 'gpu' && a == b))", true),
        ("['gpu', 'mig'].exists(kind, cel.bind(a, kind, a == 'mig'))", true),
        (
            "device.attributes['gpu.nvidia.com'].?type.optMap(kind, kind == 'gpu').orValue(false)",
            true,
        ),
        (
            "device.attributes['gpu.nvidia.com'].?absent.optMap(kind, kind == 'gpu').orValue(false)",
            false,
        ),
        (
            "device.attributes['gpu.nvidia.com'].?type.optFlatMap(kind, optional.of(kind == 'gpu')).orValue(false)",
            true,
        ),
        (
            "device.attributes['gpu.nvidia.com'].?type.optMap(a, a + 'x').optMap(a, a + 'y').optMap(b, b == 'gpuxy').orValue(false)",
            true,
        ),
        // A value that is not read is not computed.
        (
            "cel.bind(a, device.attributes['gpu.nvidia.com'].absent, device.driver == 'gpu.nvidia.com' || a)",
            true,
        ),
        // An expression that fails, but does not decide the result.
        (
            "cel.bind(a, device.attributes['gpu.nvidia.com'].absent, a || device.driver == 'gpu.nvidia.com')",
            true,
        ),
    ];
    assert_answers(&cases);
    let faulty = [
        "cel.bind(a, device.attributes['gpu.nvidia.com'].absent, a)",
        // No variable of an outer scope replaces a value that fails.
        "cel.bind(a, true, cel.bind(a, device.attributes['gpu.nvidia.com'].absent, a))",
        "cel.bind('a', true, true)",
        "cel.bind(a, true)",
    ];
    for expression in faulty {
        assert!(answer(expression).is_err(), "{expression}: {:?}", answer(expression));
    }
}

#[test]
fn a_domain_without_attributes_is_an_empty_map() {
    let cases = [
        ("device.attributes['other.example'].all(name, false)", true),
        ("device.attributes['other.example'].exists(name, true)", false),
        ("device.capacity['other.example'].size() == 0", true),
        (
            "size(device.attributes['other.example'].filter(name, name != 'x')) == 0",
            true,
        ),
        (
            "cel.bind(other, device.attributes['other.example'], other.all(name, false))",
            true,
        ),
        ("device.attributes['gpu.nvidia.com'].exists(name, name == 'type')", true),
        ("device.attributes[device.driver].all(name, name != 'vendor')", true),
        (
            "['other.example'].all(domain, !('type' in device.attributes[domain]))",
            true,
        ),
        // Only the requested domain is present.
        ("'other.example' in device.attributes", false),
        ("device.attributes.exists(domain, domain == 'other.example')", false),
        ("device.attributes.exists(domain, domain == 'gpu.nvidia.com')", true),
    ];
    assert_answers(&cases);
}

#[test]
fn optional_syntax_never_fails_for_a_missing_key() {
    let cases = [
        (
            "device.attributes['gpu.nvidia.com'].?type.orValue('none') == 'gpu'",
            true,
        ),
        (
            "device.attributes['gpu.nvidia.com'].?absent.orValue('none') == 'none'",
            true,
        ),
        ("device.attributes['gpu.nvidia.com'][?'absent'].hasValue()", false),
        (
            "device.attributes[?'gpu.nvidia.com'].?type.orValue('none') == 'gpu'",
            true,
        ),
        (
            "device.attributes[?'other.example'].?type.orValue('none') == 'none'",
            true,
        ),
        ("device.attributes.?other.type.orValue('none') == 'none'", true),
        (
            "device.capacity['gpu.nvidia.com'].?memory.orValue(quantity('0')).isGreaterThan(quantity('40Gi'))",
            true,
        ),
        (
            "cel.bind(own, device.attributes['gpu.nvidia.com'], own.?vendor.orValue('') == '' && own.?type.hasValue())",
            true,
        ),
    ];
    assert_answers(&cases);
}

#[test]
fn values_are_equal_as_they_are_to_kubernetes() {
    let own = "device.attributes['gpu.nvidia.com']";
    let cases = [
        ("own.index == 3.0 && own.index == 3u && own.index != 3.5", true),
        ("own.index in [1.0, 3.0] && !(own.index in [1u])", true),
        ("own.type == 3 || own.index == '3'", false),
        (
            "own.?type == optional.of('gpu') && own.?absent == optional.none()",
            true,
        ),
        ("own.driverVersion == semver('550.163.1')", true),
        (
            "own.driverVersion != semver('550.163.2') && own.driverVersion != 550",
            true,
        ),
        ("dyn(own.index) == 3", true),
    ];
    for (expression, expected) in cases {
        assert_eq!(answer(&expression.replace("own", own)), Ok(expected), "{expression}");
    }
    for expression in ["own.driverVersion == '550.163.1'", "own.driverVersion in ['550.163.1']"] {
        assert!(answer(&expression.replace("own", own)).is_err(), "{expression}");
    }
}

#[test]
fn a_value_of_an_unknown_kind_is_neither_there_nor_absent() {
    let list = json!({ "list": { "strings": ["a"] } });
    let unknown = [
        "device.attributes['gpu.nvidia.com'].list.size() == 1",
        "has(device.attributes['gpu.nvidia.com'].list)",
        "'list' in device.attributes['gpu.nvidia.com']",
        "device.attributes['gpu.nvidia.com'].?list.hasValue()",
        "device.attributes['gpu.nvidia.com'].exists(name, name == 'list')",
    ];
    for expression in unknown {
        let answer = answer_with(expression, &list);
        assert!(answer.is_err(), "{expression}: {answer:?}");
    }
    for expression in [
        "device.attributes['gpu.nvidia.com'].type == 'gpu'",
        "cel.bind(own, device.attributes['gpu.nvidia.com'], own.type == 'gpu')",
    ] {
        assert_eq!(answer_with(expression, &list), Ok(true), "{expression}");
    }
}

#[test]
fn devices_that_differ_in_a_read_part_get_their_own_answers() {
    let selectors = compiled(&[
        "device.driver == 'd' && device.attributes['d'].type == 'gpu'",
        "device.capacity['d'].memory.isGreaterThan(quantity('40Gi'))",
    ])
    .expect("compiles");
    let answer = |driver: &str, kind: &str, memory: &str, uuid: &str| {
        let device = json!({
            "name": "gpu-0",
            "attributes": { "type": { "string": kind }, "uuid": { "string": uuid } },
            "capacity": { "memory": { "value": memory } },
        });
        selectors.match_device(driver, &read(device))
    };
    for uuid in ["a", "b"] {
        assert_eq!(answer("d", "gpu", "80Gi", uuid), Ok(true));
        assert_eq!(answer("d", "mig", "80Gi", uuid), Ok(false));
        assert_eq!(answer("d", "gpu", "40Gi", uuid), Ok(false));
        assert_eq!(answer("e", "gpu", "80Gi", uuid), Ok(false));
        assert!(answer("d", "gpu", "much", uuid).is_err());
    }
    assert_eq!(selectors.answers.borrow().len(), 5, "uuids are not read");
}

#[test]
fn a_driver_and_sharing_decide_by_themselves() {
    for (expression, expected) in [
        ("device.driver == 'd'", [true, false, false, true]),
        ("device.allowMultipleAllocations", [false, false, true, true]),
    ] {
        let selectors = compiled(&[expression]).expect("compiles");
        let answers = [("d", false), ("e", false), ("e", true), ("d", true)].map(|(driver, shareable)| {
            let device = json!({ "name": "gpu-0", "allowMultipleAllocations": shareable });
            selectors.match_device(driver, &read(device))
        });
        assert_eq!(answers, expected.map(Ok), "{expression}");
    }
}

#[test]
fn a_failed_evaluation_is_not_a_no() {
    let expressions = [
        "device.driver ==",
        "device.driver",
        "device.attributes['gpu.nvidia.com'].absent == 'x'",
        "device.attributes['gpu.nvidia.com'].?type.optMap(kind)",
        "device.attributes['gpu.nvidia.com'].?type.optMap(kind, kind)",
        "device.attributes['gpu.nvidia.com'].type.newFunction()",
        "device.newField == 1",
        "device.driver.field",
        "has(device.driver.field)",
        "google.protobuf.BoolValue{value: true}",
        "",
        "((((((((",
        "'\u{0}\u{ffff}",
    ];
    for expression in expressions {
        assert!(answer(expression).is_err(), "{expression}: {:?}", answer(expression));
    }
}
