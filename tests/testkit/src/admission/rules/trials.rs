//! Rules on `spec.trials`.

use serde_json::json;

use crate::admission::{Case, accepted, refused};

pub fn cases() -> Vec<Case> {
    let trials =
        |rule: &str, error: u8, max: u8| json!({"trials": {"rule": rule, "errorBoundPercent": error, "max": max}});
    let failed = |percent: &str| json!({"trials": {"maxFailedRequestsPercent": percent}});
    let mut cases = vec![
        accepted("one trial for All", trials("All", 5, 1)),
        accepted("one trial for Single", trials("Single", 5, 1)),
    ];
    for (error, fewest) in [
        (1, 6),
        (2, 5),
        (3, 5),
        (4, 4),
        (5, 4),
        (6, 4),
        (7, 3),
        (15, 3),
        (16, 2),
        (20, 2),
    ] {
        cases.push(accepted(
            format!("{fewest} trials at {error} %"),
            trials("Sequential", error, fewest),
        ));
        cases.push(refused(
            format!("fewer than {fewest} trials at {error} %"),
            trials("Sequential", error, fewest - 1),
            "so few trials",
        ));
    }
    let min = |rule: &str, min: i32, max: u8| json!({"trials": {"rule": rule, "min": min, "max": max}});
    cases.extend([
        accepted("a minimum of trials", min("Sequential", 8, 8)),
        accepted("a minimum for Single", min("Single", 3, 1)),
        refused(
            "a minimum above the maximum",
            min("Sequential", 9, 8),
            "min is above max",
        ),
    ]);
    for percent in ["0", "0.1", "100m", "1", "100"] {
        cases.push(accepted(format!("{percent} % of failed requests"), failed(percent)));
    }
    for percent in ["", "-1", "100.1", "1k", "few", "1 %"] {
        cases.push(refused(
            format!("{percent:?} % of failed requests"),
            failed(percent),
            "write a quantity from 0 to 100",
        ));
    }
    cases
}
