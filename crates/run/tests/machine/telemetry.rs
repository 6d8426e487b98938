//! The metrics of the GPUs: read where there is an exporter, and never a reason for anything where there is none.

use k8s_openapi::api::batch::v1::Job;
use perfval_api::{Finding, Phase};
use perfval_run::Effect;
use perfval_sizing::Seen;
use perfval_verdict::diagnosis::cause::Cause;
use serde_json::json;

use super::story::Story;

const PAGE: &str = "http://10.244.0.7:9400/metrics";

/// Plays a run. Returns the source of the metrics in its status, and the arguments of each trial's runner.
fn played(story: &mut Story) -> (Option<String>, Vec<Vec<String>>) {
    story.until(Phase::Evaluating);
    let workload = story.status().workload.expect("a workload");
    let jobs = story.log.iter().flat_map(|decision| &decision.effects);
    let arguments = jobs.filter_map(|effect| match effect {
        Effect::CreateTrialJob(job) => Some(arguments(job)),
        _ => None,
    });
    (workload.gpu_metrics, arguments.collect())
}

fn arguments(job: &Job) -> Vec<String> {
    let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let container = pod.and_then(|pod| pod.containers.first());
    container
        .and_then(|container| container.args.clone())
        .expect("arguments")
}

fn page(arguments: &[String]) -> Option<&str> {
    let flag = arguments.iter().position(|word| word == "--gpu-metrics")?;
    let namespace = arguments
        .iter()
        .position(|word| word == "--namespace")
        .expect("beside it");
    assert_eq!(arguments[namespace + 1], "perf");
    Some(&arguments[flag + 1])
}

#[test]
fn the_exporter_of_the_node_is_read_in_every_trial() {
    let mut story = Story::with(json!({"trials": {"rule": "All", "max": 2}}));
    story.gpu_exporter = Seen::Present(PAGE.to_owned());
    let (metrics, trials) = played(&mut story);
    assert_eq!(metrics, Some(PAGE.to_owned()));
    let pages: Vec<_> = trials.iter().map(|trial| page(trial)).collect();
    assert_eq!(pages, [Some(PAGE), Some(PAGE)]);
}

#[test]
fn a_node_without_an_exporter_is_measured_all_the_same() {
    for (seen, words) in [
        (Seen::Absent, "no DCGM exporter runs on n1"),
        (
            Seen::Unknown("list Pods: 403".to_owned()),
            "is not known: list Pods: 403",
        ),
    ] {
        let mut story = Story::new();
        story.gpu_exporter = seen;
        let (metrics, trials) = played(&mut story);
        assert_eq!(page(&trials[0]), None);
        assert!(metrics.expect("a reason").contains(words), "{words}");
        story.assert_passes();
        let status = story.status();
        let of_gpus =
            |finding: &&Finding| Cause::from_finding(finding).is_some_and(|cause| cause.name().starts_with("GPU"));
        assert_eq!(status.diagnosis.iter().find(of_gpus), None);
    }
}

#[test]
fn the_spec_names_the_page_or_switches_it_off() {
    let elsewhere = "http://dcgm.monitoring:9400/metrics";
    let mut named = Story::with(json!({"telemetry": {"endpoint": elsewhere}}));
    named.gpu_exporter = Seen::Present(PAGE.to_owned());
    let (metrics, trials) = played(&mut named);
    assert_eq!(metrics, Some(elsewhere.to_owned()));
    assert_eq!(page(&trials[0]), Some(elsewhere));

    let mut off = Story::with(json!({"telemetry": {"gpus": "None", "endpoint": elsewhere}}));
    off.gpu_exporter = Seen::Present(PAGE.to_owned());
    let (metrics, trials) = played(&mut off);
    assert_eq!((metrics, page(&trials[0])), (None, None));
}
