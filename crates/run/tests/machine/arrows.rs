//! The transition table: one row a way through an arrow, and the proof that no arrow is without a row.

use std::collections::BTreeSet;

use Phase::{Benchmarking, CleaningUp, Completed, Deploying, Evaluating, Pending, Sizing, Suspended, WaitingForReady};
use Verdict::{Error, Failed, Inconclusive, Passed, Skipped};
use perfval_api::{Phase, Verdict, meta};
use perfval_run::observed::DryRunResult;
use perfval_sizing::Seen;
use serde_json::json;

use super::moments::{
    at, begun, busy, cache_fails, changed, dynamo_unreadable, failed_for_long, filled_and_partly_created, gate,
    interrupted, judging_again, kept, kept_no_longer, lasts, moved, no_completion, no_dynamo, old_dynamo,
    partly_created, prepare_fails, resized, saturated, second_trial_hangs, settled, showing, stricter, suspended,
    waiting_long_on, waiting_on,
};
use super::queue::holder;
use super::story::{ARROWS, Showing, Story};

struct Row {
    name: &'static str,
    from: Option<Phase>,
    /// Takes the story to the last moment before the arrow.
    given: fn() -> Story,
    to: Phase,
    verdict: Option<Verdict>,
    reason: &'static str,
}

#[rustfmt::skip] // a table: one line a row
fn rows() -> Vec<Row> {
    let row = |name, from, given: fn() -> Story, to, verdict, reason| Row {
        name,
        from,
        given,
        to,
        verdict,
        reason,
    };
    vec![
        row("a new object begins its first run", None, Story::new, Pending, None, "Running"),
        row("a suspended new object waits", None, || Story::with(json!({"suspend": true})), Suspended, None, "Suspended"),
        row("a copy of an object with our finalizer is deleted before the first look", None, || { changed(Story::new(), |s| { s.object.metadata.finalizers = Some(vec![meta::FINALIZER.into()]); s.delete(); }) }, CleaningUp, None, "Interrupted: being deleted"),
        row("prerequisites are met", Some(Pending), || settled(Pending), Sizing, None, "Running"),
        row("no gates: nothing to judge", Some(Pending), || begun(json!({"gates": []})), CleaningUp, Some(Skipped), "NothingToJudge"),
        row("no Dynamo within the limit, Fail", Some(Pending), || no_dynamo("Fail"), CleaningUp, Some(Error), "DynamoNotInstalled"),
        row("no Dynamo within the limit, Skip", Some(Pending), || no_dynamo("Skip"), CleaningUp, Some(Skipped), "DynamoNotInstalled"),
        row("Dynamo unreadable within the limit, even with Skip", Some(Pending), dynamo_unreadable, CleaningUp, Some(Error), "CallFailed: whether Dynamo is installed"),
        row("a namespace that the operator refuses", Some(Pending), || changed(settled(Pending), |s| s.object.metadata.namespace = Some("kube-system".into())), CleaningUp, Some(Error), "Refused: --refused-namespaces"),
        row("namespace too long", Some(Pending), || changed(settled(Pending), |s| s.object.metadata.namespace = Some("n".repeat(52))), CleaningUp, Some(Error), "Refused: 52 characters"),
        row("image and operator of two versions", Some(Pending), || begun(json!({"workload": {"dynamo": {"image": "v:1.6.1"}}})), CleaningUp, Some(Error), "VersionSkew"),
        row("a version that the tag does not name, and another operator", Some(Pending), || begun(json!({"workload": {"dynamo": {"image": "v:latest", "runtimeVersion": "1.6.1"}}})), CleaningUp, Some(Error), "VersionSkew"),
        row("a version that the tag does not name, and the operator's", Some(Pending), || begun(json!({"workload": {"dynamo": {"image": "v@sha256:00", "runtimeVersion": "1.4.2"}}})), Sizing, None, "Running"),
        row("frontend image of another version", Some(Pending), || begun(json!({"workload": {"dynamo": {"frontend": {"image": "v:1.5.1"}}}})), CleaningUp, Some(Error), "VersionSkew"),
        row("router mode unknown to the version", Some(Pending), old_dynamo, CleaningUp, Some(Error), "RouterModeUnsupported"),
        row("no AIPerf image", Some(Pending), || begun(json!({"benchmark": {"image": ""}})), CleaningUp, Some(Error), "AIPerfMissing: spec.benchmark.image"),
        row("an AIPerf image that the operator does not permit", Some(Pending), || begun(json!({"benchmark": {"image": "other/aiperf:1"}})), CleaningUp, Some(Error), "Refused: --benchmark-images"),
        row("no default StorageClass", Some(Pending), || begun(json!({"model": {"cache": {"volumeClaimTemplate": {"storage": "1Gi"}}}})), CleaningUp, Some(Error), "StorageClassMissing"),
        row("deleted while pending", Some(Pending), || { changed(at(Pending), |s| { s.delete(); }) }, CleaningUp, None, "Interrupted: being deleted"),
        row("two equal readings of free GPUs", Some(Sizing), || settled(Sizing), Deploying, None, "Running"),
        row("saturated past the limit", Some(Sizing), saturated, CleaningUp, Some(Error), "Saturated"),
        row("inventory unreadable past the limit", Some(Sizing), || { changed(at(Sizing), |s| { s.unreadable = true; s.wait(4000); }) }, CleaningUp, Some(Error), "CallFailed: free GPUs cannot be counted"),
        row("another run holds the only node past the limit", Some(Sizing), busy, CleaningUp, Some(Error), "NodeBusy"),
        row("suspended while sizing", Some(Sizing), || { changed(at(Sizing), |s| { s.spec(json!({"suspend": true})); }) }, CleaningUp, None, "Suspended"),
        row("the deployment exists", Some(Deploying), || settled(Deploying), WaitingForReady, None, "WorkloadNotReady: waiting for"),
        row("the deployment is refused", Some(Deploying), || changed(at(Deploying), |s| s.admission = Seen::Present(DryRunResult::Rejected("webhook says no".into()))), CleaningUp, Some(Error), "DeploymentRejected"),
        row("the deployment cannot be created within two minutes", Some(Deploying), || { changed(partly_created(), |s| { s.wait(130); }) }, CleaningUp, Some(Error), "DeploymentFailed: two minutes passed"),
        row("the deployment cannot be read within two minutes", Some(Deploying), || { changed(at(Deploying), |s| { s.unreadable = true; s.step(); s.wait(130); }) }, CleaningUp, Some(Error), "CallFailed: deployment: GET dynamographdeployments"),
        row("the deployment cannot be created after the model cache was filled", Some(Deploying), || { changed(filled_and_partly_created(), |s| { s.wait(4000); }) }, CleaningUp, Some(Error), "DeploymentFailed: creating the deployment"),
        row("another run got the node at the same moment", Some(Deploying), || changed(at(Deploying), |s| s.others = vec![holder("first", "n1", true)]), Sizing, None, "Saturated: got n1 at the same moment"),
        row("the model cache cannot be filled", Some(Deploying), cache_fails, CleaningUp, Some(Error), "ModelCacheFailed"),
        row("spec changed while deploying", Some(Deploying), || { changed(at(Deploying), |s| { s.spec(json!({"placement": {"maxGPUs": 1}})); }) }, CleaningUp, None, "Interrupted: part of the spec changed"),
        row("ready, and a completion came back", Some(WaitingForReady), || settled(WaitingForReady), Benchmarking, None, "Running"),
        row("a worker lost its GPU to another pod", Some(WaitingForReady), || { changed(at(WaitingForReady), |s| { s.unschedulable = true; lasts(s); }) }, Sizing, None, "LostRace"),
        row("a worker is unschedulable for the fourth time", Some(WaitingForReady), || { changed(at(WaitingForReady), |s| { s.unschedulable = true; resized(s, 3); lasts(s); }) }, CleaningUp, Some(Error), "Saturated"),
        row("image cannot be pulled", Some(WaitingForReady), || waiting_long_on("ImagePullBackOff"), CleaningUp, Some(Error), "ImagePullBackOff"),
        row("crash loop", Some(WaitingForReady), || waiting_on("CrashLoopBackOff"), CleaningUp, Some(Error), "ContainerFailed"),
        row("container cannot be configured", Some(WaitingForReady), || waiting_long_on("CreateContainerConfigError"), CleaningUp, Some(Error), "ContainerConfigError"),
        row("stale DRA plugin", Some(WaitingForReady), || prepare_fails("invalid CDI Spec: invalid device, empty device edits"), CleaningUp, Some(Error), "StaleDRAPlugin"),
        row("DRA plugin missing", Some(WaitingForReady), || changed(prepare_fails("DRA driver gpu.nvidia.com is not registered"), lasts), CleaningUp, Some(Error), "DRAPluginMissing"),
        row("claim cannot be prepared", Some(WaitingForReady), || changed(prepare_fails("something else"), lasts), CleaningUp, Some(Error), "ClaimPrepareFailed"),
        row("one GPU given to two claims", Some(WaitingForReady), || changed(prepare_fails("requested device gpu-1 is already allocated to different claim x"), lasts), Sizing, None, "LostRace"),
        row("deployment stays failed", Some(WaitingForReady), failed_for_long, CleaningUp, Some(Error), "DeploymentFailed"),
        row("deployment deleted by another client", Some(WaitingForReady), || changed(at(WaitingForReady), |s| s.deployed = false), CleaningUp, Some(Error), "DeploymentFailed"),
        row("pods unreadable past the limit", Some(WaitingForReady), || { changed(at(WaitingForReady), |s| { s.workers_ready = false; s.step(); s.pods_unreadable = true; s.wait(4000); }) }, CleaningUp, Some(Error), "WorkloadNotReady: pods: GET pods"),
        row("workers on the wrong node", Some(WaitingForReady), || changed(at(WaitingForReady), |s| s.wrong_node = true), CleaningUp, Some(Error), "PlacementBroken"),
        row("not ready within the limit", Some(WaitingForReady), || { changed(at(WaitingForReady), |s| { s.workers_ready = false; s.step(); s.wait(4000); }) }, CleaningUp, Some(Error), "WorkloadNotReady"),
        row("no completion within the limit", Some(WaitingForReady), no_completion, CleaningUp, Some(Error), "EndpointNotReady"),
        row("rerun asked for while waiting", Some(WaitingForReady), || { changed(at(WaitingForReady), |s| { s.annotate(meta::RERUN, Some("x")); }) }, CleaningUp, None, "Interrupted: rerun was requested"),
        row("the trial decides", Some(Benchmarking), || settled(Benchmarking), Evaluating, None, "Running"),
        row("preempted while benchmarking", Some(Benchmarking), || { changed(at(Benchmarking), |s| { s.step(); s.preempted = Some("w0"); }) }, CleaningUp, None, "Interrupted: higher priority"),
        row("a worker came to another GPU", Some(Benchmarking), moved, WaitingForReady, None, "Running"),
        row("workers on the wrong node, after a measured trial", Some(WaitingForReady), || { changed(moved(), |s| { s.step(); s.wrong_node = true; }) }, Evaluating, None, "Running"),
        row("what was measured is saved before an error is the verdict", Some(Benchmarking), second_trial_hangs, Evaluating, None, "Running"),
        row("an error after a measured trial", Some(Evaluating), || { changed(second_trial_hangs(), |s| { s.step(); s.step(); }) }, CleaningUp, Some(Error), "BenchmarkTimeout"),
        row("a named StorageClass that does not exist", Some(Pending), || begun(json!({"model": {"cache": {"volumeClaimTemplate": {"storage": "1Gi", "storageClassName": "none"}}}})), CleaningUp, Some(Error), "StorageClassMissing"),
        row("deleted while benchmarking", Some(Benchmarking), || { changed(at(Benchmarking), |s| { s.step(); s.delete(); }) }, CleaningUp, None, "Interrupted: being deleted"),
        row("its deadline ended the Job, and no result is left", Some(Evaluating), || showing(Showing::TimedOut), CleaningUp, Some(Error), "BenchmarkTimeout: no result"),
        row("the Job never ends", Some(Benchmarking), || { changed(at(Benchmarking), |s| { s.showing = Showing::Hang; s.step(); s.step(); s.wait(4000); }) }, CleaningUp, Some(Error), "BenchmarkTimeout"),
        row("a fast deployment passes", Some(Evaluating), || settled(Evaluating), CleaningUp, Some(Passed), "GatesMet"),
        row("a slow deployment fails", Some(Evaluating), || showing(Showing::Slow), CleaningUp, Some(Failed), "GatesMissed"),
        row("a starved generator proves nothing", Some(Evaluating), || showing(Showing::Starved), CleaningUp, Some(Inconclusive), "GeneratorStarved"),
        row("a crashing generator measures nothing", Some(Evaluating), || showing(Showing::Crash), CleaningUp, Some(Error), "BenchmarkFailed"),
        row("results cannot be saved within two minutes: the verdict stands", Some(Evaluating), || { changed(at(Evaluating), |s| { s.saving_fails = true; s.step(); s.wait(130); }) }, CleaningUp, Some(Passed), "GatesMet"),
        row("suspension lets an evaluation finish", Some(Evaluating), || { changed(settled(Evaluating), |s| { s.spec(json!({"suspend": true})); }) }, CleaningUp, Some(Passed), "GatesMet"),
        row("everything is gone", Some(CleaningUp), || settled(CleaningUp), Completed, Some(Passed), "GatesMet"),
        row("kept on request", Some(CleaningUp), || { changed(at(CleaningUp), |s| { s.annotate(meta::NO_CLEANUP, Some("true")); }) }, Completed, Some(Passed), "GatesMet"),
        row("not gone within the limit", Some(CleaningUp), || { changed(at(CleaningUp), |s| { s.stuck = true; s.step(); s.wait(4000); }) }, Completed, Some(Passed), "GatesMet"),
        row("suspended run is cleaned up", Some(CleaningUp), || { interrupted(|s| { s.spec(json!({"suspend": true})); }) }, Suspended, None, "Suspended"),
        row("changed run is followed by the next", Some(CleaningUp), || { interrupted(|s| { s.spec(json!({"placement": {"maxGPUs": 1}})); }) }, Pending, None, "Running"),
        row("rerun is followed by the next", Some(CleaningUp), || { interrupted(|s| { s.annotate(meta::RERUN, Some("x")); }) }, Pending, None, "Running"),
        row("resumed with other gates, after the saved trials were gone", Some(CleaningUp), || { changed(judging_again(), |s| { s.results.clear(); s.spec(json!({"suspend": true})); s.step(); s.spec(json!({"suspend": false})); s.spec(gate("1500")); }) }, Evaluating, None, "Running"),
        row("spec change after a run", Some(Completed), || { changed(at(Completed), |s| { s.spec(json!({"placement": {"maxGPUs": 1}})); }) }, Pending, None, "Running"),
        row("changed gates after a run", Some(Completed), || { changed(at(Completed), stricter) }, Evaluating, None, "Running"),
        row("the saved trials are judged again", Some(Evaluating), judging_again, Completed, Some(Failed), "GatesMissed"),
        row("the saved trials are gone", Some(Evaluating), || changed(judging_again(), |s| s.results.clear()), Pending, None, "Running"),
        row("the saved trials are gone, and the object is suspended", Some(Evaluating), || { changed(judging_again(), |s| { s.results.clear(); s.spec(json!({"suspend": true})); }) }, CleaningUp, None, "Suspended"),
        row("rerun after a run", Some(Completed), || { changed(at(Completed), |s| { s.annotate(meta::RERUN, Some("x")); }) }, Pending, None, "Running"),
        row("no longer kept", Some(Completed), kept_no_longer, CleaningUp, Some(Passed), "GatesMet"),
        row("deleted after a run, and what is left is unknown", Some(Completed), || { changed(at(Completed), |s| { s.delete(); s.unreadable = true; }) }, CleaningUp, Some(Passed), "GatesMet"),
        row("deleted while something is kept, and others removed our finalizer", Some(Completed), || { changed(kept(), |s| { s.object.metadata.finalizers = Some(vec!["others.example/hold".into()]); s.delete(); }) }, CleaningUp, Some(Passed), "GatesMet"),
        row("resumed", Some(Suspended), || { changed(suspended(), |s| { s.spec(json!({"suspend": false})); }) }, Pending, None, "Running"),
        row("deleted while suspended", Some(Suspended), || { changed(suspended(), |s| { s.delete(); }) }, CleaningUp, None, "Interrupted: being deleted"),
    ]
}

#[test]
fn every_row_takes_its_arrow() {
    let mut wrong = Vec::new();
    for row in rows() {
        let mut story = (row.given)();
        assert_eq!(
            story.phase(),
            row.from,
            "{}: the row starts elsewhere ({})",
            row.name,
            story.reason()
        );
        story.step();
        // A part of the message tells apart what has one reason.
        let (reason, part) = row.reason.split_once(": ").unwrap_or((row.reason, ""));
        let message = story.message();
        let found = (story.phase(), story.verdict(), story.reason());
        if found != (Some(row.to), row.verdict, reason.to_owned()) || !message.contains(part) {
            wrong.push(format!(
                "{}: {found:?}, expected {:?} {:?} {}; {message}",
                row.name, row.to, row.verdict, row.reason
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_suspended_run_ended_before_it_is_resumed() {
    let mut story = suspended();
    let ended = story.now;
    story.wait(3600).spec(json!({"suspend": false})).until(Pending);
    assert_eq!(story.status().state.history[0].completed_at, ended);
}

#[test]
fn every_arrow_has_a_row() {
    let taken: BTreeSet<(Option<Phase>, Phase)> = rows().iter().map(|row| (row.from, row.to)).collect();
    assert_eq!(taken, BTreeSet::from(ARROWS));
}
