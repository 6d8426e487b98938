//! Running statistics of GPUs: boots, environments and their size.

use perfval_api::fleet::{NodeIdentity, NodePerformance};
use perfval_fleet::measurement::Measurement;
use serde_json::{Value, json};

use crate::{UID, after, changed, confirmation, decide, measured, node, of_policy, status, validation, written};

/// Stored statistics of the first GPU.
fn first_state(object: &NodePerformance) -> Value {
    let stored = status(object).gpus[0].operator_state.as_ref();
    stored.expect("a state").read().expect("JSON")
}

#[test]
fn the_first_run_after_a_boot_is_not_learned() {
    let object = after(6, &[("GPU-a", 8000)]);
    let rebooted = NodeIdentity {
        boot_id: Some("second".to_owned()),
        ..node(UID)
    };
    let run = |number: i64, time: i64| measured(validation(number, &[("GPU-a", time)])).expect("measured");
    let cold = written(decide(&run(7, 10_000), &rebooted, [&object].into_iter()));
    assert_eq!(status(&cold).boot_id.as_deref(), Some("second"));
    let warm = written(decide(&run(8, 8000), &rebooted, [&cold].into_iter()));
    assert_eq!(status(&warm).percent_of_own_past, Some(100));
    let warm = written(decide(
        &run(8, 8000),
        &node(UID),
        [&written(decide(&run(7, 10_000), &node(UID), [&object].into_iter()))].into_iter(),
    ));
    assert_eq!(status(&warm).percent_of_own_past, Some(102), "without a boot it is");
}

#[test]
fn a_boot_before_the_confirmation_makes_the_run_cold() {
    let object = after(6, &[("GPU-a", 8000)]);
    let slow = [("GPU-a", 10_000)];
    let slower = measured(of_policy(7, &slow)).expect("measured");
    let object = written(decide(&slower, &node(UID), [&object].into_iter()));
    let confirmed = |boot: Option<&str>| {
        let identity = NodeIdentity {
            boot_id: boot.map(str::to_owned),
            ..node(UID)
        };
        written(decide(&confirmation(8, &slow), &identity, [&object].into_iter()))
    };
    assert_eq!(first_state(&confirmed(Some("second")))["b"], json!(true));
    // An unknown boot is no other boot.
    let unknown = confirmed(None);
    assert_eq!(first_state(&unknown)["b"], Value::Null);
    assert_eq!(status(&unknown).boot_id, node(UID).boot_id);
}

#[test]
fn a_run_with_more_gpus_than_are_remembered_is_confirmed_too() {
    let names: Vec<String> = (0..17).map(|gpu| format!("GPU-{gpu:02}")).collect();
    let gpus = |first: i64| -> Vec<(&str, i64)> {
        let others = names.iter().skip(1).map(|name| (name.as_str(), 8000));
        std::iter::once((names[0].as_str(), first)).chain(others).collect()
    };
    let object = after(6, &gpus(8000));
    let slower = measured(of_policy(7, &gpus(10_000))).expect("measured");
    let object = written(decide(&slower, &node(UID), [&object].into_iter()));
    let confirmed = decide(&confirmation(8, &gpus(10_000)), &node(UID), [&object].into_iter());
    assert_eq!(first_state(&written(confirmed))["c"].as_array().map(Vec::len), Some(1));
}

#[test]
fn statistics_of_another_environment_do_not_hide_those_of_this_one() {
    let old = after(9, &[("GPU-a", 8000)]);
    let upgraded = |run: i64| {
        let run = changed(validation(run, &[("GPU-a", 8000)]), |object| {
            object["status"]["placement"]["node"] = json!("n2");
            object["status"]["environment"]["digest"] = json!("ba9876543210");
        });
        run.expect("measured")
    };
    let first = written(decide(&upgraded(10), &node("n2"), [&old].into_iter()));
    let second = written(decide(&upgraded(11), &node("n2"), [&old, &first].into_iter()));
    let third = written(decide(&upgraded(12), &node("n2"), [&old, &second].into_iter()));
    assert_eq!(first_state(&third)["n"], json!(1));
}

/// All requests of its only trial may have failed, or a worker stood still. Then AIPerf's version is unknown.
#[test]
fn a_run_without_a_report_changes_neither_the_environment_nor_the_past() {
    let object = after(6, &[("GPU-a", 8000), ("GPU-b", 8000)]);
    let slow: &[(&str, i64)] = &[("GPU-a", 16_000), ("GPU-b", 8000)];
    for gpus in [slow, &[]] {
        let failed = changed(validation(7, gpus), |object| {
            object["status"]["environment"] = json!({"digest": "ba9876543210"});
        });
        let failed = written(decide(&failed.expect("measured"), &node(UID), [&object].into_iter()));
        assert_eq!(status(&failed).validation.run, 7);
        assert_eq!(status(&failed).environment, status(&object).environment);
        assert_eq!(status(&failed).operator_state, status(&object).operator_state);
        let next = measured(validation(8, &[("GPU-a", 10_000), ("GPU-b", 8000)])).expect("measured");
        let next = written(decide(&next, &node(UID), [&failed].into_iter()));
        assert_eq!(first_state(&next)["b"], Value::Null, "the machine is not cold");
        assert_eq!(status(&next).percent_of_own_past, Some(80));
    }
}

/// A device plugin does not report UUIDs.
#[test]
fn the_newest_run_decides_the_environment_of_a_node_without_uuids() {
    let run = |number: i64, digest: &str| {
        let run = changed(validation(number, &[]), |object| {
            object["status"]["environment"]["digest"] = json!(digest);
        });
        run.expect("measured")
    };
    let first = written(decide(&run(1, "0123456789ab"), &node(UID), [].into_iter()));
    let second = written(decide(&run(2, "ba9876543210"), &node(UID), [&first].into_iter()));
    assert_eq!(status(&second).environment.as_deref(), Some("ba9876543210"));
}

/// All of its trials may be invalid, as under pressure on the CPUs of the node.
#[test]
fn a_run_without_speeds_keeps_earlier_speeds_until_a_confirmation_has_some() {
    let object = after(6, &[("GPU-a", 8000), ("GPU-b", 8000)]);
    let slow = [("GPU-a", 10_000), ("GPU-b", 8000)];
    let slower = measured(of_policy(7, &slow)).expect("measured");
    let object = written(decide(&slower, &node(UID), [&object].into_iter()));
    for digest in ["0123456789ab", "ba9876543210"] {
        let invalid = Measurement {
            environment: Some(digest.to_owned()),
            ..confirmation(8, &[])
        };
        let invalid = written(decide(&invalid, &node(UID), [&object].into_iter()));
        let (kept, shown) = (status(&invalid), status(&object));
        assert_eq!(
            (&kept.gpus, kept.percent_of_own_past, &kept.environment),
            (&shown.gpus, Some(80), &shown.environment)
        );
        assert_ne!(kept.measured_at, shown.measured_at);
        let confirmed = written(decide(&confirmation(9, &slow), &node(UID), [&invalid].into_iter()));
        let state = first_state(&confirmed);
        assert_eq!(state["c"].as_array().map(Vec::len), Some(1), "it is the same loss");
    }
}

#[test]
fn the_first_run_with_speeds_after_a_boot_is_cold() {
    let rebooted = NodeIdentity {
        boot_id: Some("second".to_owned()),
        ..node(UID)
    };
    let without = measured(validation(7, &[])).expect("measured");
    let with = measured(validation(8, &[("GPU-a", 8600)])).expect("measured");
    for earlier in [vec![after(6, &[("GPU-a", 8000)])], Vec::new()] {
        let failed = written(decide(&without, &rebooted, earlier.iter()));
        let next = written(decide(&with, &rebooted, [&failed].into_iter()));
        assert_eq!(first_state(&next)["b"], json!(true));
        assert_eq!(status(&next).boot_id.as_deref(), Some("second"));
    }
}

#[test]
fn eight_gpus_fit_into_four_kibibytes_and_sixteen_into_six() {
    for (number, most) in [(8, 4096), (16, 6144)] {
        let names: Vec<String> = (0..number)
            .map(|n| format!("GPU-b4db0e1c-90cf-5f1a-8d3a-5d5a8a1b{n:04}"))
            .collect();
        let gpus: Vec<(&str, i64)> = names
            .iter()
            .zip([8123, 8231, 8017].iter().cycle())
            .map(|(name, time)| (name.as_str(), *time))
            .collect();
        // Confirmations have five trials.
        let long = |measured: Measurement| Measurement {
            gpus: measured
                .gpus
                .into_iter()
                .map(|(gpu, _)| (gpu, vec![8123, 8234, 8345, 8456, 8567]))
                .collect(),
            ..measured
        };
        let object = after(9, &gpus);
        let next = measured(of_policy(10, &gpus)).expect("measured");
        let object = written(decide(&long(next), &node(UID), [&object].into_iter()));
        let confirmed = written(decide(
            &long(confirmation(11, &gpus)),
            &node(UID),
            [&object].into_iter(),
        ));
        let twice = written(decide(
            &long(confirmation(12, &gpus)),
            &node(UID),
            [&confirmed].into_iter(),
        ));
        let thrice = written(decide(&long(confirmation(13, &gpus)), &node(UID), [&twice].into_iter()));
        let state = first_state(&thrice);
        assert_eq!(
            (state["k"].clone(), state["c"].as_array().map(Vec::len)),
            (json!(2), Some(5))
        );
        for object in [object, confirmed, twice, thrice] {
            let bytes = serde_json::to_string(&object).expect("JSON").len();
            assert_eq!(status(&object).gpus.len(), number);
            assert!(bytes <= most, "{number} GPUs: {bytes} bytes");
        }
    }
}
