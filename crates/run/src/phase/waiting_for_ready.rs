//! `WaitingForReady`: every component ready with its own GPU, then a real completion.

mod gpus;

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::{GpuCheck, PerfValidationSpec, PerfValidationStatus, Phase, Reason, Why, condition};
use perfval_sizing::Seen;

use super::definition::{Definition, Timed, give_up};
use crate::attendance::Limit;
use crate::decision::{Effect, Event, ProbeRequest};
use crate::diagnosis::log::silence;
use crate::diagnosis::obstacle::{COLD_SECONDS, Obstacle, Response};
use crate::diagnosis::pods::{Trouble, trouble};
use crate::dynamo::names::{FRONTEND, FRONTEND_PORT, MAIN, WORKER, frontend_service};
use crate::dynamo::reported::{Reported, reported};
use crate::observed::{Need, Needs, Probe, ProbeAnswer};
use crate::pass::{Pass, Step};
use crate::readiness::Pods;
use crate::run::Run;
use crate::status::{self, Truth};
use crate::{build, time};

/// A DGD's `failed` is set by any reconcile error and cleared by the next good pass; this long it may heal.
const FAILED_GRACE: Duration = Duration::from_mins(2);
/// Lost races after which a node is too contested to measure on.
const RESIZES: i64 = 3;
/// Pause between two probes.
const PROBE_AGAIN: Duration = Duration::from_secs(2);
/// A frontend that is ready may need this long to see its workers; only then its log is asked why it does not answer.
const SILENCE: Duration = Duration::from_secs(10);
/// A longer first completion is reported: 30 to 42 s were measured on real GPUs, a busy lab needs up to 10 s.
const COLD: Duration = Duration::from_secs(COLD_SECONDS);
/// Pods and the deployment are watched; ages and graces are not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

pub(super) const PHASE: Definition = Definition {
    needs,
    step,
    timed: Some(Timed { limit, expired }),
};

fn needs(run: &Run<'_>) -> Needs {
    let who_has_which = gpus::counts_gpus(run.status()).then_some(Need::Inventory);
    Needs::of(
        [Need::Deployment, Need::Workload, Need::Probe]
            .into_iter()
            .chain(who_has_which),
    )
}

/// Two waits: for the components, then for a completion.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the type of the table: other phases wait without a limit"
)]
fn limit(spec: &PerfValidationSpec, status: &PerfValidationStatus, began: DateTime<Utc>) -> Option<Limit> {
    let timeouts = &spec.timeouts;
    Some(match status::true_since(status, condition::WORKLOAD_READY) {
        Some(ready) => Limit::new(ready, time::duration(&timeouts.endpoint_ready)),
        None => Limit::new(began, time::duration(&timeouts.workload_ready)),
    })
}

fn expired(pass: &mut Pass<'_>, why: &Why) -> Step {
    let limit = if condition::is_true(&pass.status, condition::WORKLOAD_READY) {
        "timeouts.endpointReady"
    } else {
        "timeouts.workloadReady"
    };
    let reason = match why.reason {
        Reason::Probing => Reason::EndpointNotReady,
        reason => reason,
    };
    give_up(pass, reason, why, limit)
}

fn step(pass: &mut Pass<'_>) -> Step {
    pass.look_again_in(LOOK_AGAIN);
    let reported = match &pass.seen.deployment {
        Seen::Present(deployment) => reported(deployment),
        Seen::Absent => return Step::error(Reason::DeploymentFailed, "the deployment was deleted by another client"),
        unread => return unreadable("deployment", unread.unknown()),
    };
    let (Some(all_pods), Some(claims)) = (pass.seen.pods.present(), pass.seen.claims.present()) else {
        return unreadable(
            "pods and claims",
            pass.seen.pods.unknown().or(pass.seen.claims.unknown()),
        );
    };
    let pods = Pods::of(all_pods, &pass.run.id());
    if let Some(evidence) = gpus::lost(pass, &pods, claims) {
        let obstacle = Obstacle::LostRace;
        return in_trouble(pass, &Trouble { obstacle, evidence });
    }
    let events = pass.seen.pod_events.present().map_or(&[][..], Vec::as_slice);
    if let Some(trouble) = trouble(pods.all(), events, &pass.seen.pod_logs, pass.now) {
        return in_trouble(pass, &trouble);
    }
    if let Some(step) = failed_for_long(pass, &reported) {
        return step;
    }
    let Some(plan) = pass.run.placement() else {
        return Step::error(Reason::PlacementBroken, "the plan is gone from the status: rerun");
    };
    let ready = pods.ready_workers();
    let all_ready = reported.current
        && !reported.failed
        && reported.ready.get(WORKER).copied().unwrap_or(0) >= plan.gpus
        && reported.ready.get(FRONTEND).copied().unwrap_or(0) >= 1
        && ready >= plan.gpus
        && i64::try_from(pods.workers.len()) == Ok(plan.gpus)
        && pods.frontend_ready();
    if !all_ready {
        return starting(pass, &pods, plan.gpus);
    }
    if let Some(step) = gpus::broken(pass, &pods, claims, plan) {
        return step;
    }
    record_ready(pass, &pods);
    probe(pass)
}

fn unreadable(what: &str, why: Option<&str>) -> Step {
    Step::wait(Reason::Starting, format!("{what}: {}", why.unwrap_or("no answer")))
}

fn in_trouble(pass: &mut Pass<'_>, trouble: &Trouble) -> Step {
    let why = trouble.why();
    pass.not_ready(&why, None);
    pass.find(trouble.obstacle.finding(&trouble.evidence));
    // Trials of two deployments are not trials of one: once there is a trial, nothing is sized again.
    let may_resize = trouble.obstacle.response() == Response::SizeAgain && pass.status.trials.is_empty();
    let Some(run) = pass
        .status
        .run
        .as_mut()
        .filter(|run| may_resize && run.resizes < RESIZES)
    else {
        return Step::End(perfval_api::Verdict::Error, why);
    };
    run.resizes += 1;
    run.clears_first = true;
    // The node stays this run's until what it created there is gone; the plan has to settle anew.
    if let Some(plan) = &mut pass.status.placement {
        plan.chosen_at = None;
    }
    if let Some(workload) = &mut pass.status.workload {
        workload.failed_since = None;
    }
    let again = format!("sizing again: {}", why.message);
    // Apart from the event of the phase: a second one of the same reason loses its text.
    pass.note(Event::warning(Reason::LostRace, "SizeAgain", again.clone()));
    Step::go(Phase::Sizing, Reason::LostRace, again)
}

/// `failed` is an error only if it stays.
fn failed_for_long(pass: &mut Pass<'_>, reported: &Reported) -> Option<Step> {
    let workload = pass.status.workload.as_mut()?;
    if !reported.failed {
        workload.failed_since = None;
        return None;
    }
    let since = *workload.failed_since.get_or_insert(pass.now);
    let why = Why::new(
        Reason::DeploymentFailed,
        format!("Dynamo's operator reports: {}", reported.message),
    );
    pass.not_ready(&why, None);
    if reported.lacks_queue {
        pass.find(Obstacle::QueueMissing.finding(&reported.message));
    }
    let over = reported.lacks_queue || pass.has_passed(&Limit::new(since, FAILED_GRACE));
    Some(if over {
        Step::End(perfval_api::Verdict::Error, why)
    } else {
        Step::Wait(why)
    })
}

fn starting(pass: &mut Pass<'_>, pods: &Pods<'_>, wanted: i64) -> Step {
    let ready = pods.ready_workers();
    // The count goes into the status only once in a while: each worker would be a write.
    let what = format!("waiting for {wanted} workers and the frontend");
    let refused = gpus::refused(pass, pods);
    let gpu_check = refused.as_ref().map(|_| GpuCheck::default());
    let why = refused.unwrap_or(Why::new(Reason::WorkloadNotReady, what));
    if ready == 0 || ready >= wanted {
        set_workers_ready(pass, ready);
    }
    pass.not_ready(&why, gpu_check);
    Step::Wait(why)
}

fn set_workers_ready(pass: &mut Pass<'_>, ready: i64) {
    if let Some(workload) = &mut pass.status.workload {
        workload.workers_ready = ready;
    }
}

fn record_ready(pass: &mut Pass<'_>, pods: &Pods<'_>) {
    let ready = pods.ready_workers();
    set_workers_ready(pass, ready);
    if let Some(workload) = &mut pass.status.workload {
        workload.endpoint = Some(build::endpoint(pass.run));
        workload.gpu_check = None;
    }
    if let Some(environment) = &mut pass.status.environment {
        environment.image_digest = pods.workers.first().and_then(|pod| image_digest(pod));
    }
    if !condition::is_true(&pass.status, condition::WORKLOAD_READY) {
        let why = Why::new(Reason::AllReady, format!("the frontend and {ready} workers are ready"));
        pass.condition(condition::WORKLOAD_READY, true, &why);
    }
}

fn image_digest(pod: &k8s_openapi::api::core::v1::Pod) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let main = statuses.iter().find(|status| status.name == MAIN)?;
    (!main.image_id.is_empty()).then(|| main.image_id.clone())
}

fn probe(pass: &mut Pass<'_>) -> Step {
    let request = ProbeRequest {
        namespace: pass.run.namespace().to_owned(),
        service: frontend_service(&pass.run.id()),
        port: FRONTEND_PORT,
        model: pass.run.spec().model.name.clone(),
        timeout: time::duration(&pass.run.spec().timeouts.endpoint_probe),
    };
    let refused = match &pass.seen.probe {
        Probe::Answered(ProbeAnswer::Completion(text)) => return completed(pass, text),
        Probe::Answered(ProbeAnswer::Empty) => Some("the completion was empty".to_owned()),
        Probe::Answered(ProbeAnswer::Refused(code, body)) => Some(format!("HTTP {code}: {}", quoted(body))),
        Probe::Answered(ProbeAnswer::Failed(error)) => Some(error.clone()),
        Probe::InFlight => None,
        Probe::Idle => {
            pass.act(Effect::Probe(request));
            None
        }
    };
    if let Some(answer) = refused {
        return unanswered(pass, &answer);
    }
    // While the next probe is under way, the last answer stays the one to show.
    let last = condition::find(&pass.status, condition::ENDPOINT_READY).filter(|last| last.status == "False");
    match last {
        Some(last) => Step::wait(Reason::from_word(&last.reason), last.message.clone()),
        None => Step::wait(Reason::Probing, "probing the endpoint"),
    }
}

/// The endpoint serves; how long it took is kept, because a cold start explains a slow first minute and nothing else.
fn completed(pass: &mut Pass<'_>, text: &str) -> Step {
    let took = silent_for(pass);
    if let Some(workload) = &mut pass.status.workload {
        workload.first_completion_seconds = i64::try_from(took.as_secs()).ok();
    }
    // What kept it from answering is over.
    pass.status
        .diagnosis
        .retain(|finding| !waits().any(|obstacle| obstacle.as_str() == finding.cause));
    if took >= COLD {
        let evidence = format!("{} s from ready components to the first completion", took.as_secs());
        pass.find(Obstacle::ColdStart.finding(&evidence));
    }
    let why = Why::new(
        Reason::CompletionReceived,
        format!("a completion came back after {} s: {}", took.as_secs(), quoted(text)),
    );
    pass.condition(condition::ENDPOINT_READY, true, &why);
    Step::go(
        Phase::Benchmarking,
        Reason::CompletionReceived,
        "the endpoint serves; benchmarking",
    )
}

/// No completion yet: why, if the frontend's log says so, else what it answered.
fn unanswered(pass: &mut Pass<'_>, answer: &str) -> Step {
    pass.look_again_in(PROBE_AGAIN);
    let silence_found = silence(&pass.seen.pod_logs).filter(|_| silent_for(pass) >= SILENCE);
    let Some((obstacle, line)) = silence_found else {
        let why = Why::new(Reason::EndpointNotReady, format!("last probe: {answer}"));
        pass.condition(condition::ENDPOINT_READY, Truth::False, &why);
        return Step::Wait(why);
    };
    let trouble = Trouble {
        obstacle,
        evidence: format!("frontend: {line}; last probe: {answer}"),
    };
    let why = trouble.why();
    pass.condition(condition::ENDPOINT_READY, Truth::False, &why);
    pass.find(obstacle.finding(&trouble.evidence));
    match obstacle.response() {
        Response::GiveUp => Step::End(perfval_api::Verdict::Error, why),
        Response::SizeAgain | Response::Wait | Response::Report => Step::Wait(why),
    }
}

/// How long every component has been ready, while the operator looked: it asked for no completion in between.
fn silent_for(pass: &Pass<'_>) -> Duration {
    status::true_since(&pass.status, condition::WORKLOAD_READY)
        .map_or(Duration::ZERO, |ready| pass.attended_since(ready))
}

/// The obstacles that may pass.
fn waits() -> impl Iterator<Item = Obstacle> {
    let all = Obstacle::ALL.iter().copied();
    all.filter(|obstacle| obstacle.response() == Response::Wait)
}

/// An answer of the endpoint, cut short.
fn quoted(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    format!("{short:?}")
}
