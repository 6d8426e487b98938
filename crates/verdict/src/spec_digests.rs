//! Consequences of a change of the spec.
//!
//! | part | fields | a change of it |
//! |---|---|---|
//! | measured | `model`, `workload` without `onMissing`, `podTemplate`, `placement`, `benchmark` | needs new trials |
//! | judged | `gates`, `trials` | judges the saved trials again; needs new ones if the rule asks for more |
//! | limits | `timeouts`, `workload.dynamo.onMissing` | counts at once, a longer `timeouts.benchmark` from the next trial; needs a new run only where none could measure |
//! | neither | `telemetry`, `suspend`, `resultsHistoryLimit`, `ttlSecondsAfterFinished`, `keptSecondsAfterFinished` | needs nothing; telemetry counts from the next trial |
//!
//! Tolerations, pull secrets and request timeouts count as measured: they decide which node serves, and with what.

use perfval_api::{Dynamo, PerfValidationSpec, SpecDigests, Workload};
use serde::Serialize;
use serde_json::json;

use crate::environment::{DIGEST, hex};

/// The digests of a spec, one for each part of the table.
pub fn digests(spec: &PerfValidationSpec) -> SpecDigests {
    // Without `..`: a new field of the spec does not compile until its digest is chosen here.
    let PerfValidationSpec {
        model,
        workload,
        pod_template,
        placement,
        benchmark,
        gates,
        trials,
        timeouts,
        suspend: _,
        results_history_limit: _,
        ttl_seconds_after_finished: _,
        kept_seconds_after_finished: _,
        telemetry: _,
    } = spec;
    let Workload::Dynamo(Dynamo {
        on_missing,
        image,
        runtime_version,
        router_mode,
        worker,
        frontend,
        env,
    }) = workload;
    let dynamo = (image, runtime_version, router_mode, worker, frontend, env);
    SpecDigests {
        measured: digest((model, dynamo, pod_template, placement, benchmark)),
        judged: digest((gates, trials)),
        limits: digest((timeouts, on_missing)),
    }
}

fn digest(part: impl Serialize) -> String {
    hex(&json!(part).to_string(), DIGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(change: &serde_json::Value) -> PerfValidationSpec {
        let mut spec = json!({"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}}});
        for (key, value) in change.as_object().into_iter().flatten() {
            match value["dynamo"].as_object() {
                Some(fields) => fields
                    .iter()
                    .for_each(|(field, value)| spec[key]["dynamo"][field] = value.clone()),
                None => spec[key] = value.clone(),
            }
        }
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn every_field_belongs_to_one_part() {
        let base = digests(&spec(&json!({})));
        let gate = json!([{"name": "g", "metric": "TimeToFirstToken", "statistic": "P99", "operator": "<=", "threshold": "1"}]);
        let [measured, judged, limits] = [[true, false, false], [false, true, false], [false, false, true]];
        let neither = [false; 3];
        let cases = [
            (json!({"model": {"name": "other"}}), measured),
            (json!({"workload": {"dynamo": {"image": "i:1.5.0"}}}), measured),
            (json!({"placement": {"maxGPUs": 2}}), measured),
            (
                json!({"placement": {"tolerations": [{"operator": "Exists"}]}}),
                measured,
            ),
            (
                json!({"benchmark": {"goodput": [{"metric": "TimeToFirstToken", "max": "5"}]}}),
                measured,
            ),
            (json!({"benchmark": {"duration": "2m"}}), measured),
            (json!({"podTemplate": {"spec": {"runtimeClassName": "kata"}}}), measured),
            (json!({"benchmark": {"soak": "10m"}}), measured),
            (json!({"gates": gate}), judged),
            (json!({"trials": {"rule": "Single"}}), judged),
            (json!({"trials": {"maxFailedRequestsPercent": "2"}}), judged),
            (json!({"timeouts": {"sizing": "1s"}}), limits),
            (json!({"workload": {"dynamo": {"onMissing": "Skip"}}}), limits),
            (json!({"telemetry": {"gpus": "None"}}), neither),
            (json!({"suspend": true}), neither),
            (json!({"resultsHistoryLimit": 5}), neither),
            (json!({"ttlSecondsAfterFinished": 5}), neither),
            (json!({"keptSecondsAfterFinished": 5}), neither),
            (json!({"timeouts": {"total": "2h"}}), limits),
        ];
        for (change, parts) in cases {
            let now = digests(&spec(&change));
            let changed = [
                now.measured != base.measured,
                now.judged != base.judged,
                now.limits != base.limits,
            ];
            assert_eq!(changed, parts, "{change}");
        }
    }

    #[test]
    fn digests_of_an_earlier_release_trigger_no_run() {
        let stored = include_str!("../../api/tests/fixtures/v0.1.0/passed.json");
        let object: perfval_api::PerfValidation = serde_json::from_str(stored).unwrap();
        let status = object.status.unwrap();
        assert_eq!(status.state.digests, Some(digests(&object.spec)));
        let settings = status.state.environment.unwrap().settings;
        assert_eq!(settings, Some(crate::environment::settings(&object.spec)));
    }
}
