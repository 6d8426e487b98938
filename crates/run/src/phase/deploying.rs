//! Deploying: a dry run shows if the API server would take the deployment, also after the model cache is filled. Then the claim
//! template, the workers' Service, the run's network policy and the deployment are created.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{DynamicObject, ResourceExt as _};
use perfval_api::{Allocation, ClaimTemplate, ModelCache, PerfValidationSpec, Phase, Reason, Why};
use perfval_sizing::{Holder, Seen};

use super::definition::{Definition, QUICK, Timed, give_up};
use super::{signs, waiting_for_ready};
use crate::attendance::Limit;
use crate::decision::Effect;
use crate::diagnosis::pods::Trouble;
use crate::diagnosis::{ended, log};
use crate::job::Standing;
use crate::names;
use crate::observed::{DryRunResult, Need, Needs};
use crate::pass::{Pass, Step};
use crate::queue::Contender;
use crate::run::Run;
use crate::{build, dynamo, job, patience, readiness, status, time};

/// The deployment is watched; this is for a read that failed.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The pod that fills the cache is watched; its age and its events are not.
const STILL_FILLING: Duration = Duration::from_secs(5);
const FILLING: &str = "filling the model cache";

/// Time for the log of a filler that failed. It only explains the end; a node that died never shows it.
const LOG_GRACE: Duration = Duration::from_secs(15);

pub(super) const PHASE: Definition = Definition {
    needs,
    step,
    timed: Some(Timed {
        limit: |spec, _, began| {
            let filling = fills_cache(spec).then(|| time::duration(&spec.timeouts.model_cache));
            Some(Limit::new(began, filling.unwrap_or_default() + QUICK))
        },
        expired,
    }),
};

fn needs(run: &Run<'_>) -> Needs {
    if is_accepted(run) {
        // Shows what keeps the cache from filling.
        let filler = fills_cache(run.spec()).then_some(Need::Workload);
        return Needs::new([Need::CacheJob, Need::Deployment].into_iter().chain(filler));
    }
    // The dry run is made only where the deployment is absent.
    Needs::new([Need::Deployment])
}

fn expired(pass: &mut Pass<'_>, why: &Why) -> Step {
    let fills = fills_cache(pass.run.spec());
    let limit = if fills { "timeouts.modelCache" } else { "two minutes" };
    let fill = pass.seen.cache_job.present();
    let reason = if fills && !fill.is_some_and(|job| job::has(job, job::COMPLETE)) {
        Reason::ModelCacheFailed
    } else {
        Reason::DeploymentFailed
    };
    let is_starting = why.reason == Reason::Running;
    give_up(pass, if is_starting { reason } else { why.reason }, why, limit)
}

/// The claim of the operator's own model cache, if the spec asks for one.
pub(crate) fn own_cache(spec: &PerfValidationSpec) -> Option<&ClaimTemplate> {
    spec.model.cache.as_ref().and_then(ModelCache::template)
}

/// Returns true if this run fills a model cache of the operator's own.
pub(crate) fn fills_cache(spec: &PerfValidationSpec) -> bool {
    own_cache(spec).is_some()
}

/// Returns true if the API server accepted the deployment in a dry run.
fn is_accepted(run: &Run<'_>) -> bool {
    run.status().state.accepted_at.is_some()
}

fn step(pass: &mut Pass<'_>) -> Step {
    if let Seen::Present(deployment) = &pass.seen.deployment {
        return created(pass, deployment);
    }
    let run = pass.run;
    if !is_accepted(run)
        && let Some(step) = objection(pass)
    {
        return step;
    }
    if let Some(template) = own_cache(run.spec())
        && let Some(step) = fill_cache(pass, template)
    {
        return step;
    }
    // The fill may have taken hours.
    if is_accepted(run)
        && let Some(step) = objection(pass)
    {
        return step;
    }
    pass.look_again_in(LOOK_AGAIN);
    create(pass)
}

/// Step in place of the creation: the deployment cannot be read, another run has the node, or the API server would refuse.
fn objection(pass: &mut Pass<'_>) -> Option<Step> {
    match (&pass.seen.deployment, &pass.seen.dry_run) {
        (Seen::Absent, Seen::NotAsked) => Some(pass.read([Need::DryRun, Need::Holders])),
        (Seen::Absent, _) => held_by_other(pass).or_else(|| refused(pass)),
        (unread, _) => {
            pass.look_again_in(LOOK_AGAIN);
            Some(Step::unread(Reason::CallFailed, "deployment", unread))
        }
    }
}

/// Another run that has the node, before the deployment is created. Two operators that plan at the same moment do not see
/// each other's plan. But each has written its own before it looks here, so at least one of them sees the other. That
/// operator sizes again, and then both have the same order.
fn held_by_other(pass: &mut Pass<'_>) -> Option<Step> {
    let node = pass.run.placement()?.node.clone();
    let holders = match &pass.seen.holders {
        Seen::Present(holders) => holders.clone(),
        unread => {
            pass.look_again_in(LOOK_AGAIN);
            let what = format!("whether another run has {node} is not known");
            return Some(Step::unread(Reason::CallFailed, &what, unread));
        }
    };
    let is_other = |run: &&Contender| run.position.uid() != pass.run.uid();
    let others = holders.iter().filter(is_other).filter_map(Contender::keeps);
    let other = others
        .filter(|other| other.node == node)
        .map(|other| other.name)
        .min()?;
    let naming = pass.run.settings.naming(pass.run.namespace());
    let other = naming.all(Holder::Run, [other.as_str()]);
    let message = format!("{other} got {node} at the same moment; counting free GPUs again");
    status::unplace(&mut pass.status);
    // An earlier pass may have created a part of the objects, for this node.
    pass.status.state.clears_first = true;
    Some(Step::go(Phase::Sizing, Reason::NodeBusy, message))
}

/// Objection of the API server to the deployment; `None` if it would take it. That is recorded before the model cache is
/// filled, which may take hours; otherwise the deployment is created in the same pass.
fn refused(pass: &mut Pass<'_>) -> Option<Step> {
    match &pass.seen.dry_run {
        Seen::Present(DryRunResult::Accepted) => {
            pass.not_ready(None);
            if fills_cache(pass.run.spec()) {
                pass.status.state.accepted_at.get_or_insert(pass.now);
            }
            None
        }
        Seen::Present(DryRunResult::Rejected(words)) => {
            let message = format!("the API server refuses the deployment: {words}");
            Some(Step::error(Reason::DeploymentRejected, message))
        }
        unread => {
            pass.look_again_in(LOOK_AGAIN);
            let what = "whether the API server takes the deployment is not known";
            Some(Step::unread(Reason::DeploymentUnanswered, what, unread))
        }
    }
}

fn created(pass: &Pass<'_>, deployment: &DynamicObject) -> Step {
    if !pass.run.owns(deployment) {
        return Step::name_taken(names::dynamo::KIND, deployment);
    }
    // The message of the wait that follows: another one would be a write.
    Step::Go(Phase::WaitingForReady, waiting_for_ready::awaited(pass.run))
}

fn create(pass: &mut Pass<'_>) -> Step {
    if pass
        .run
        .placement()
        .is_some_and(|plan| plan.allocation == Allocation::Dra)
    {
        pass.act(Effect::CreateClaimTemplate(Box::new(build::claim_template(pass.run))));
    }
    pass.act(Effect::CreateWorkersService(Box::new(build::workers_service(pass.run))));
    if let Some(rules) = &pass.run.settings.run_network_policy {
        let policy = build::network_policy(pass.run, rules);
        pass.act(Effect::CreateNetworkPolicy(Box::new(policy)));
    }
    pass.act(Effect::CreateDeployment(Box::new(dynamo::deployment(pass.run))));
    if fills_cache(pass.run.spec()) {
        return Step::wait(Reason::Running, "the model cache is filled; creating the deployment");
    }
    // The message is that of the plan: another one would be a write.
    Step::Wait(pass.last_why())
}

/// Fills the cache; `None` once it is full.
fn fill_cache(pass: &mut Pass<'_>, template: &ClaimTemplate) -> Option<Step> {
    let filling = || Step::wait(Reason::Running, FILLING);
    let found = match &pass.seen.cache_job {
        Seen::Absent => None,
        Seen::Present(job) => Some(job),
        // The first pass only needs the dry run.
        Seen::NotAsked => return Some(Step::work(Reason::Running, FILLING)),
        Seen::Unknown(why) => return Some(Step::wait(Reason::Running, format!("model cache: {why}"))),
    };
    let recorded = pass.run.status().state.cache_job_uid.as_deref();
    let fill = match job::standing(pass.run, found, recorded) {
        Standing::Ours(job) => job,
        Standing::Free => {
            pass.act(Effect::CreateCacheClaim(Box::new(build::cache_claim(
                pass.run, template,
            ))));
            pass.act(Effect::CreateCacheJob(Box::new(build::cache_job(pass.run))));
            return Some(filling());
        }
        Standing::Taken(job) => return Some(Step::name_taken("Job", job)),
        Standing::Lost => {
            let lost = "the Job that fills the model cache is gone: it was deleted; run again";
            return Some(Step::error(Reason::ModelCacheFailed, lost));
        }
    };
    pass.status.state.cache_job_uid = fill.uid();
    if job::has(fill, job::COMPLETE) {
        None
    } else if job::has(fill, job::FAILED) {
        Some(cache_failed(pass, fill))
    } else if let Some(trouble) = job::queued(fill, "the model cache") {
        Some(Step::Wait(trouble.why()))
    } else {
        Some(still_filling(pass))
    }
}

/// The pod that fills the cache has all the time that the spec gives it, as long as nothing is in its way.
fn still_filling(pass: &mut Pass<'_>) -> Step {
    pass.look_again_in(STILL_FILLING);
    let pods = pass.seen.pods.present().map_or(&[][..], Vec::as_slice);
    let fillers: Vec<_> = readiness::fillers(pods, &pass.run.id()).collect();
    let is_over = |pod: &&&Pod| readiness::is_failed(pod);
    match signs::worst(pass, fillers.iter().filter(|pod| !is_over(pod)).copied()) {
        Some(sign) => {
            let trouble = Trouble {
                evidence: format!("model cache: {}", sign.trouble.evidence),
                ..sign.trouble
            };
            if sign.is_sure {
                waiting_for_ready::in_trouble(pass, &trouble)
            } else {
                Step::Wait(trouble.why())
            }
        }
        None => Step::wait(Reason::Running, FILLING),
    }
}

/// Reason why the Job failed, from the log of its pod.
fn cache_failed(pass: &mut Pass<'_>, fill: &Job) -> Step {
    let seen = pass.seen;
    if let Seen::Unknown(why) = &seen.pods {
        return unread(pass, fill, why);
    }
    let pods = seen.pods.present().map_or(&[][..], Vec::as_slice);
    let is_running = |pod: &Pod| !readiness::is_failed(pod) && pod.metadata.deletion_timestamp.is_none();
    if readiness::fillers(pods, &pass.run.id()).any(is_running) {
        // Read before it ended: its log is read by the next pass.
        pass.look_again_in(Duration::from_secs(1));
        return Step::wait(Reason::Running, FILLING);
    }
    let failed = || readiness::fillers(pods, &pass.run.id()).filter(|pod| readiness::is_failed(pod));
    let said = failed().find_map(|pod| log::failure(&seen.pod_logs, &pod.name_any(), names::FILL_CONTAINER));
    let why_ended = failed().find_map(|pod| ended::removed(pod).or_else(|| ended::out_of_memory(pod)));
    let mut unknown = seen.pod_logs.iter().filter_map(|log| log.text.unknown());
    let unknown = unknown.next().filter(|_| said.is_none() && why_ended.is_none());
    if let Some(why) = unknown {
        let since = patience::waits_since(pass, Reason::ModelCacheFailed.as_str(), &fill.name_any());
        if !pass.has_passed(&Limit::new(since, LOG_GRACE)) {
            return unread(pass, fill, why);
        }
    }
    let job = format!("Job {} could not fill the model cache", fill.name_any());
    let how = job::failure(fill);
    match said {
        Some((Some(obstacle), line)) => {
            let trouble = Trouble {
                obstacle,
                evidence: format!("{job}: {line}"),
            };
            pass.find(obstacle.finding(&trouble.evidence));
            Step::End(perfval_api::Verdict::Error, trouble.why())
        }
        said => {
            let said = said.map_or(String::new(), |(_, line)| format!(": {line}"));
            let why = match (why_ended, unknown) {
                (Some(why), _) => format!(": {why}"),
                (None, Some(why)) => format!("; its log cannot be read: {why}"),
                (None, None) => format!("{said}; check model.name, its token and the network"),
            };
            Step::error(Reason::ModelCacheFailed, format!("{job} ({how}){why}"))
        }
    }
}

/// Waits for a read that may show why the Job failed.
fn unread(pass: &mut Pass<'_>, fill: &Job, why: &str) -> Step {
    pass.look_again_in(LOOK_AGAIN);
    let (name, how) = (fill.name_any(), job::failure(fill));
    Step::wait(
        Reason::Running,
        format!("model cache: Job {name} failed ({how}): {why}"),
    )
}
