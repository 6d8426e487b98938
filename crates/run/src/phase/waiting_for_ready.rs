//! `WaitingForReady`: every component ready with its own GPU, then a real completion.

mod endpoint;
mod gpus;

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::text::number_of;
use perfval_api::{GpuCheck, PerfValidationSpec, PerfValidationStatus, Phase, Reason, Why};
use perfval_sizing::Seen;

use super::benchmarking::before_trial;
use super::definition::{Definition, Timed, give_up};
use super::signs;
use crate::attendance::Limit;
use crate::decision::Event;
use crate::diagnosis::pods::{Judged, Trouble};
use crate::dynamo::reported::{Reported, State, reported};
use crate::names::dynamo::{FRONTEND, MAIN, WORKER};
use crate::observed::{Need, Needs, Probe};
use crate::obstacle::Obstacle;
use crate::pass::{Pass, Step};
use crate::readiness::{self, Pods};
use crate::run::Run;
use crate::{build, status, time};

/// Time in which an endpoint that works answers the first request.
const PROMPT: Duration = Duration::from_secs(5);

pub(super) const PHASE: Definition = Definition {
    needs,
    step,
    timed: Some(Timed {
        limit: |spec, status, began| Some(limit(spec, status, began)),
        expired,
    }),
};

fn needs(run: &Run<'_>) -> Needs {
    let who_has_which = gpus::counts_gpus(run.status()).then_some([Need::Claims, Need::Inventory, Need::Devices]);
    Needs::new(
        [Need::Deployment, Need::Workload, Need::Probe]
            .into_iter()
            .chain(who_has_which.into_iter().flatten()),
    )
}

/// Reads of a pass that begins with a completion, besides those of the phase. All show one moment.
pub(crate) fn after_completion(run: &Run<'_>) -> impl Iterator<Item = Need> {
    let unconfirmed = run.placement().filter(|plan| gpus::are_unconfirmed(run.status(), plan));
    before_trial(run).chain(unconfirmed.map(|_| Need::Devices))
}

/// Two waits: for the components, then for a completion. Components that were ready once have the time of both, so that
/// one lapse ends no run.
fn limit(spec: &PerfValidationSpec, status: &PerfValidationStatus, began: DateTime<Utc>) -> Limit {
    let timeouts = &spec.timeouts;
    match status.state.ready_since {
        Some(ready) => Limit::new(ready, time::duration(&timeouts.endpoint_ready)),
        None if was_ready(status) => {
            let both = time::duration(&timeouts.workload_ready) + time::duration(&timeouts.endpoint_ready);
            Limit::new(began, both)
        }
        None => Limit::new(began, time::duration(&timeouts.workload_ready)),
    }
}

/// Returns true if every component of the deployment was ready before.
fn was_ready(status: &PerfValidationStatus) -> bool {
    let deployment = status.state.deployment.as_ref();
    deployment.is_some_and(|deployment| deployment.endpoint.is_some())
}

fn expired(pass: &mut Pass<'_>, why: &Why) -> Step {
    let (limit, not_ready) = if pass.status.state.ready_since.is_some() {
        ("timeouts.endpointReady", Reason::EndpointNotReady)
    } else if was_ready(&pass.status) {
        (
            "timeouts.workloadReady and timeouts.endpointReady",
            Reason::WorkloadNotReady,
        )
    } else {
        ("timeouts.workloadReady", Reason::WorkloadNotReady)
    };
    match why.reason {
        // The last look saw nothing, such as after a refused list: what the run waited for stays the reason.
        Reason::Running => give_up(pass, not_ready, why, limit),
        Reason::WorkloadNotReady => {
            let counted = Why::new(why.reason, format!("{}: {}", why.message, so_far(pass)));
            give_up(pass, counted.reason, &counted, limit)
        }
        reason => give_up(pass, reason, why, limit),
    }
}

fn step(pass: &mut Pass<'_>) -> Step {
    pass.look_again_slower();
    let reported = match &pass.seen.deployment {
        Seen::Present(deployment) => reported(deployment),
        Seen::Absent => return Step::error(Reason::DeploymentFailed, "the deployment was deleted by another client"),
        unread => return Step::unread(Reason::Running, "deployment", unread),
    };
    let Some(all_pods) = pass.seen.pods.present() else {
        return Step::unread(Reason::Running, "pods", &pass.seen.pods);
    };
    let claims = match &pass.seen.claims {
        Seen::Present(claims) => Some(claims.as_slice()),
        Seen::NotAsked => None,
        unread => return Step::unread(Reason::Running, "claims", unread),
    };
    let pods = Pods::new(all_pods, &pass.run.id());
    if let Some(evidence) = gpus::lost(pass, &pods, claims) {
        let obstacle = Obstacle::LostRace;
        return in_trouble(pass, &Trouble { obstacle, evidence });
    }
    let sign = signs::worst_in_deployment(pass, &pods);
    if let Some(Judged { trouble, is_sure: true }) = &sign {
        return in_trouble(pass, trouble);
    }
    if let Some(step) = failed_for_long(pass, &reported) {
        return step;
    }
    let Some(plan) = pass.run.placement() else {
        return Step::error(Reason::PlacementBroken, "the plan is gone from the status: rerun");
    };
    let (wanted, ready) = (pass.run.workers(), pods.ready_workers());
    let all_ready = reported.current
        && reported.state != State::Failed
        && reported.ready.get(WORKER).copied().unwrap_or(0) >= wanted
        && reported.ready.get(FRONTEND).copied().unwrap_or(0) >= 1
        && ready >= wanted
        && i64::try_from(pods.workers.len()) == Ok(wanted)
        && pods.frontend_ready();
    if !all_ready {
        return starting(pass, &pods, sign);
    }
    if let Some(leaving) = pods.wait_for_leaving() {
        pass.not_ready(None);
        return Step::wait(Reason::WorkloadNotReady, leaving);
    }
    if let Some(wrong) = readiness::misplaced(&pods, claims, plan, pass.run.spec().gpus_per_worker()) {
        return gpus::misplaced(pass, wrong);
    }
    let state = &pass.status.state;
    if state.ready_since.is_none() && state.gpu_check.is_none() && has_time(pass) {
        // A healthy endpoint answers at once. Its answer and the GPUs are then one write.
        match pass.seen.probe {
            Probe::Idle => {
                endpoint::ask(pass);
                return Step::Wait(pass.last_why());
            }
            Probe::InFlight(time) if time < PROMPT => {
                pass.look_again_in(PROMPT.saturating_sub(time));
                return Step::Wait(pass.last_why());
            }
            Probe::InFlight(_) | Probe::Answered(_) => {}
        }
    }
    if let Some(step) = gpus::broken(pass, &pods, claims, plan) {
        return step;
    }
    record_ready(pass, &pods);
    endpoint::probe(pass, &pods)
}

/// Returns true if a first answer may be awaited within the limit of the components.
fn has_time(pass: &Pass<'_>) -> bool {
    let limit = time::duration(&pass.run.spec().timeouts.workload_ready);
    let began = status::phase_started_at(&pass.status);
    began.is_some_and(|began| pass.attended_since(began).saturating_add(2 * PROMPT) < limit)
}

/// The response to a trouble that will not pass: an error, or another plan.
pub(super) fn in_trouble(pass: &mut Pass<'_>, trouble: &Trouble) -> Step {
    let why = trouble.why();
    pass.not_ready(None);
    pass.find(trouble.obstacle.finding(&trouble.evidence));
    // Trials of two deployments are not trials of one: once there is a trial, nothing is sized again.
    let resizes = trouble.obstacle.response().resizes();
    let may_resize = pass.status.state.trials.is_empty();
    let state = &mut pass.status.state;
    if !may_resize || state.resizes >= resizes {
        return Step::End(perfval_api::Verdict::Error, why);
    }
    state.resizes += 1;
    state.clears_first = true;
    // The run keeps the node until its objects there are gone, and then confirms its plan again.
    state.chosen_at = None;
    state.failed_since = None;
    if let Some(deployment) = &mut state.deployment {
        deployment.endpoint = None;
    }
    let again = format!("sizing again: {}", why.message);
    // Apart from the event of the phase: a second one of the same reason loses its text.
    pass.note(Event::warning(Reason::LostRace, "SizeAgain", again.clone()));
    Step::go(Phase::Sizing, Reason::LostRace, again)
}

/// `failed` is an error only if it stays.
fn failed_for_long(pass: &mut Pass<'_>, reported: &Reported) -> Option<Step> {
    let state = &mut pass.status.state;
    if reported.state != State::Failed {
        state.failed_since = None;
        return None;
    }
    let since = *state.failed_since.get_or_insert(pass.now);
    let why = Why::new(
        Reason::DeploymentFailed,
        format!("Dynamo's operator reports: {}", reported.message),
    );
    pass.not_ready(None);
    let limit = Limit::new(since, Obstacle::DeploymentFailed.patience());
    Some(if pass.has_passed(&limit) {
        Step::End(perfval_api::Verdict::Error, why)
    } else {
        Step::Wait(why)
    })
}

fn starting(pass: &mut Pass<'_>, pods: &Pods<'_>, sign: Option<Judged>) -> Step {
    let ready = pods.ready_workers();
    let refused = gpus::refused(pass, pods);
    let gpu_check = refused.as_ref().map(|_| GpuCheck::default());
    let may_pass = sign.map(|sign| sign.trouble.why());
    let leaving = pods.wait_for_leaving();
    let leaving = leaving.map(|message| Why::new(Reason::WorkloadNotReady, message));
    let why = may_pass.or(refused).or(leaving).unwrap_or_else(|| awaited(pass.run));
    // All of them are one write with what follows.
    if ready == 0 {
        set_workers_ready(pass, ready);
    }
    pass.not_ready(gpu_check);
    Step::Wait(why)
}

/// Description of the wait. Each count would be a write of the status, so they are left to the end of the wait.
pub(super) fn awaited(run: &Run<'_>) -> Why {
    let message = format!("waiting for {} and the frontend", number_of(run.workers(), "worker"));
    Why::new(Reason::WorkloadNotReady, message)
}

/// Progress of the pods.
fn so_far(pass: &Pass<'_>) -> String {
    let Some(all_pods) = pass.seen.pods.present() else {
        return "it is not known which pods are ready".to_owned();
    };
    let pods = Pods::new(all_pods, &pass.run.id());
    let wanted = pass.run.workers();
    let frontend = if pods.frontend_ready() { "is" } else { "is not" };
    let (made, ready) = (pods.workers.len(), pods.ready_workers());
    let counted = format!("{ready} of {wanted} workers are ready, {made} have a pod, the frontend {frontend} ready");
    let reported = pass.seen.deployment.present().map(reported);
    let all = i64::try_from(made) == Ok(wanted) && ready >= wanted && pods.frontend_ready();
    match reported {
        _ if all && !pods.leaving.is_empty() => counted,
        Some(reported) if all && !reported.current => {
            format!("{counted}; Dynamo's operator has not looked at this generation of the deployment yet")
        }
        Some(_) if all => format!("{counted}; Dynamo's operator does not report every component as ready"),
        Some(reported) if reported.state == State::Successful => {
            format!("{counted}, although Dynamo's operator calls the deployment successful")
        }
        _ => counted,
    }
}

fn set_workers_ready(pass: &mut Pass<'_>, ready: i64) {
    if let Some(workload) = &mut pass.status.workload {
        workload.workers_ready = ready;
    }
}

fn record_ready(pass: &mut Pass<'_>, pods: &Pods<'_>) {
    let ready = pods.ready_workers();
    set_workers_ready(pass, ready);
    if let Some(deployment) = &mut pass.status.state.deployment {
        deployment.endpoint = Some(build::endpoint(pass.run));
    }
    pass.status.state.gpu_check = None;
    if let Some(environment) = &mut pass.status.state.environment {
        environment.image_digest = pods.workers.first().and_then(|pod| image_digest(pod));
    }
    // The first request was sent as soon as every component was ready. One from before a lapse is older.
    let asked_for = match pass.seen.probe {
        Probe::InFlight(time) => time.min(PROMPT),
        Probe::Idle | Probe::Answered(_) => Duration::ZERO,
    };
    pass.status.state.ready_since.get_or_insert(pass.now - asked_for);
}

fn image_digest(pod: &k8s_openapi::api::core::v1::Pod) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let main = statuses.iter().find(|status| status.name == MAIN)?;
    (!main.image_id.is_empty()).then(|| main.image_id.clone())
}
