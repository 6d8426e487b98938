//! Which devices a class's expressions select.

use serde_json::{from_value, json};

use super::*;
use crate::inventory::Interned;

fn answer(expression: &str) -> Result<bool, NotEvaluable> {
    let class: DeviceClass = from_value(json!({
        "metadata": { "name": "c" }, "spec": { "selectors": [{ "cel": { "expression": expression } }] },
    }))
    .expect("a class");
    let device = from_value(json!({
        "name": "gpu-0",
        "attributes": {
            "type": { "string": "gpu" }, "index": { "int": 3 }, "ok": { "bool": true },
            "driverVersion": { "version": "550.163.1" },
            "resource.kubernetes.io/pciBusID": { "string": "0000:1a:00.0" },
            "list": { "strings": ["a"] },
        },
        "capacity": { "memory": { "value": "80Gi" } },
        "allowMultipleAllocations": true,
    }))
    .expect("a device");
    let device = Device::read(&device, &mut Interned::default());
    Selectors::compile(&class)?.match_device("gpu.nvidia.com", &device)
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
    for (expression, expected) in cases {
        assert_eq!(answer(expression), Ok(expected), "{expression}");
    }
}

#[test]
fn devices_that_differ_in_what_is_read_get_their_own_answers() {
    let class: DeviceClass = from_value(json!({
        "metadata": { "name": "c" },
        "spec": { "selectors": [
            { "cel": { "expression": "device.driver == 'd' && device.attributes['d'].type == 'gpu'" } },
            { "cel": { "expression": "device.capacity['d'].memory.isGreaterThan(quantity('40Gi'))" } },
        ] },
    }))
    .expect("a class");
    let selectors = Selectors::compile(&class).expect("compiles");
    let answer = |driver: &str, kind: &str, memory: &str, uuid: &str| {
        let device = from_value(json!({
            "name": "gpu-0",
            "attributes": { "type": { "string": kind }, "uuid": { "string": uuid } },
            "capacity": { "memory": { "value": memory } },
        }))
        .expect("a device");
        selectors.match_device(driver, &Device::read(&device, &mut Interned::default()))
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
        let class: DeviceClass = from_value(json!({
            "metadata": { "name": "c" },
            "spec": { "selectors": [{ "cel": { "expression": expression } }] },
        }))
        .expect("a class");
        let selectors = Selectors::compile(&class).expect("compiles");
        let answers = [("d", false), ("e", false), ("e", true), ("d", true)].map(|(driver, shareable)| {
            let device =
                from_value(json!({ "name": "gpu-0", "allowMultipleAllocations": shareable })).expect("a device");
            selectors.match_device(driver, &Device::read(&device, &mut Interned::default()))
        });
        assert_eq!(answers, expected.map(Ok), "{expression}");
    }
}

#[test]
fn what_cannot_be_evaluated_is_not_no() {
    let expressions = [
        "device.driver ==",
        "device.driver",
        "device.attributes['gpu.nvidia.com'].absent == 'x'",
        "device.attributes['gpu.nvidia.com'].list.size() == 1",
        "device.attributes['gpu.nvidia.com'].?type.orValue('') == 'gpu'",
        "device.attributes[?'gpu.nvidia.com'].?type.orValue('') == 'gpu'",
        "device.attributes['gpu.nvidia.com'].type.newFunction()",
        "device.newField == 1",
        "",
        "((((((((",
        "'\u{0}\u{ffff}",
    ];
    for expression in expressions {
        assert!(answer(expression).is_err(), "{expression}: {:?}", answer(expression));
    }
}
