//! Sizing: a node and its free GPUs are chosen in turn, and written down before anything is created.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::text::number_of;
use perfval_api::{PerfValidationSpec, PerfValidationStatus, Phase, Reason, Why};
use perfval_sizing::{Holder, Plan, Seen, Sizing};
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::diagnosis::missing::missing;

use super::definition::{Definition, Timed, give_up};
use crate::attendance::Limit;
use crate::observed::Needs;
use crate::pass::{Pass, Step};
use crate::queue::{self, QueuePlace, Turn};
use crate::{status, teardown, time};

/// Two equal readings this far apart: the scheduler's decisions reach the API only in `PreBind`, and a driver publishes
/// its slices one by one.
const SETTLE: Duration = Duration::from_secs(2);
/// A place in the queue is written at most this often.
const PLACE_UPDATE: Duration = Duration::from_mins(1);

const UNREADABLE: &str = "free GPUs cannot be counted";

/// A thousand runs may wait here, and one look is enough to take a node: their heartbeat is slow.
const HEARTBEAT: Duration = Duration::from_mins(1);

pub(super) const PHASE: Definition = Definition {
    needs: |run| {
        if queue::is_queued(run.status()) {
            // The planner reads for the whole queue.
            Needs::default()
        } else {
            Needs::new(teardown::NEEDS)
        }
    },
    step,
    timed: Some(Timed {
        limit,
        expired: |pass, why| give_up(pass, why.reason, why, "timeouts.sizing"),
    }),
};

fn limit(spec: &PerfValidationSpec, status: &PerfValidationStatus, began: DateTime<Utc>) -> Option<Limit> {
    let last_in_line = status.state.last_in_line;
    let since = last_in_line.map_or(began, |last| last.max(began));
    (!is_in_line(status)).then(|| {
        let limit = Limit::new(since, time::duration(&spec.timeouts.sizing));
        if queue::is_queued(status) {
            seldom_looked_at(limit)
        } else {
            limit.with_heartbeat(HEARTBEAT)
        }
    })
}

/// A limit of a run in the queue, at which the planner looks together with all others.
pub(crate) fn seldom_looked_at(limit: Limit) -> Limit {
    limit.with_heartbeat(HEARTBEAT).written_every(queue::HEARTBEAT_WRITTEN)
}

/// Returns true if a run waits for earlier ones; its time limit is paused meanwhile.
fn is_in_line(status: &PerfValidationStatus) -> bool {
    status.run.as_ref().is_some_and(|run| run.queue_ahead.is_some())
}

fn step(pass: &mut Pass<'_>) -> Step {
    if !queue::is_queued(&pass.status) {
        return clear(pass);
    }
    // What cannot be read ends no place in the queue.
    let stays_in_line = match &pass.seen.turn {
        Seen::Present(Turn::Queued(_)) | Seen::NotAsked | Seen::Unknown(_) => true,
        Seen::Present(Turn::Sized(Sizing::Wait { reason, .. })) => *reason == Reason::CallFailed,
        Seen::Present(Turn::Sized(_)) | Seen::Absent => false,
    };
    if !stays_in_line
        && let Some(run) = &mut pass.status.run
        && run.queue_ahead.take().is_some()
    {
        run.expected_at = None;
        pass.status.state.last_in_line = Some(pass.now);
    }
    place(pass)
}

/// Removes leftovers first, in a run that comes back from a lost race or follows a kept one.
fn clear(pass: &mut Pass<'_>) -> Step {
    match teardown::remove(pass) {
        teardown::Removal::Gone => {}
        teardown::Removal::Removing(what) => {
            pass.look_again_in(SETTLE);
            return Step::work(Reason::Running, what);
        }
        teardown::Removal::Unknown(what) => return Step::wait(Reason::CallFailed, format!("{UNREADABLE}: {what}")),
    }
    pass.status.state.clears_first = false;
    status::unplace(&mut pass.status);
    // The removal does not count towards `timeouts.sizing`.
    pass.status.state.last_in_line = Some(pass.now);
    Step::work(Reason::Running, "counting free GPUs")
}

fn place(pass: &mut Pass<'_>) -> Step {
    match &pass.seen.turn {
        Seen::Present(Turn::Sized(Sizing::Chosen(plan))) => settle(pass, plan.as_ref().clone()),
        Seen::Present(Turn::Sized(Sizing::Wait { reason, message })) => {
            // A plan that cannot be carried out now is given back, so that no other run waits for it.
            status::unplace(&mut pass.status);
            Step::wait(*reason, message.clone())
        }
        Seen::Present(Turn::Queued(place)) => queued(pass, place),
        Seen::Present(Turn::Sized(Sizing::Refuse { reason, message })) => {
            status::unplace(&mut pass.status);
            Step::error(*reason, message.clone())
        }
        // Not a pass of the planner: the message of the last one stays.
        Seen::NotAsked => Step::Work(pass.last_why()),
        unread => Step::unread(Reason::CallFailed, UNREADABLE, unread),
    }
}

/// In the queue: where, behind whom, and for how long. The text changes seldom, because each change is a write.
fn queued(pass: &mut Pass<'_>, place: &QueuePlace) -> Step {
    if place.not_sized {
        pass.look_again_in(SETTLE);
    }
    status::unplace(&mut pass.status);
    let before = pass.status.run.as_ref().and_then(|run| run.queue_ahead);
    // After a look that failed the message is another one.
    let is_shown = pass.status.reason.as_deref() == Some(Reason::InLine.as_str());
    let written = before.zip(pass.status.state.place_written_at).filter(|_| is_shown);
    if written.is_some_and(|(before, at)| !worth_saying(before, at, place, pass.now)) {
        return Step::Wait(pass.last_why());
    }
    let others = match place.ahead {
        1 => String::new(),
        ahead => format!(" ({ahead} runs are ahead)"),
    };
    let estimate = place.estimate.map_or(String::new(), |wait| {
        format!("; about {} min, as recent runs took", wait.as_secs().div_ceil(60))
    });
    let naming = pass.run.settings.naming(pass.run.namespace());
    let behind = naming.all(Holder::Run, place.behind.iter().map(String::as_str));
    let message = format!("in the queue behind {behind}{others}{estimate}: {}", place.message);
    if let Some(run) = &mut pass.status.run {
        run.queue_ahead = Some(place.ahead);
        run.expected_at = place.estimate.map(|wait| time::after(pass.now, wait));
        pass.status.state.place_written_at = Some(pass.now);
    }
    Step::wait(Reason::InLine, message)
}

/// Returns true if a place differs enough from the written one: at the head every step counts, far behind a tenth
/// does.
fn worth_saying(before: i64, written: DateTime<Utc>, place: &QueuePlace, now: DateTime<Utc>) -> bool {
    let moved = (before - place.ahead).abs();
    now >= time::after(written, PLACE_UPDATE) && moved > 0 && moved * 10 >= place.ahead
}

fn settle(pass: &mut Pass<'_>, plan: Plan) -> Step {
    let status = &mut pass.status;
    let unchanged = status.placement.as_ref() == Some(&plan.placement) && status.state.plan == plan.details;
    let written = status.state.chosen_at.filter(|_| unchanged);
    // A plan from before a lost race is not this one.
    let began = status::phase_started_at(status);
    let is_of_this_phase = |since: &DateTime<Utc>| began.is_none_or(|began| *since >= began);
    let remembered = pass.seen.chosen_since.filter(is_of_this_phase);
    // Other operators have to see the plan before it is confirmed. Otherwise the planner's memory is enough.
    let remembered = remembered.filter(|_| !pass.run.settings.shares_the_cluster);
    let Some(since) = written.or(remembered) else {
        let why = Why::new(
            Reason::Running,
            format!(
                "{} {} free on {}; reading once more",
                number_of(plan.gpus, "GPU"),
                if plan.gpus == 1 { "is" } else { "are" },
                plan.node
            ),
        );
        (status.placement, status.state.plan) = (Some(plan.placement), plan.details);
        status.state.chosen_at = Some(pass.now);
        pass.look_again_in(SETTLE);
        return Step::Work(why);
    };
    let settled = time::after(since, SETTLE);
    if pass.now < settled {
        pass.look_again_in(time::until(settled, pass.now));
        return Step::work(Reason::Running, pass.status.message.clone().unwrap_or_default());
    }
    let status = &mut pass.status;
    (status.placement, status.state.plan) = (Some(plan.placement.clone()), plan.details.clone());
    status.state.chosen_at = Some(since);
    let oddities = &pass.seen.oddities;
    if !oddities.is_empty() {
        pass.find(Cause::SuspiciousAllocation.finding(oddities.join("; ")));
    }
    // A plan for another node may have been given back before.
    let findings = &mut pass.status.diagnosis;
    findings.retain(|known| known.cause != Cause::GPUsMissing.as_str());
    if let Some(finding) = missing(&plan, &plan.details) {
        pass.find(finding);
    }
    let why = Why::new(
        Reason::Running,
        format!(
            "{} of {} GPUs on {} ({}, {})",
            plan.gpus,
            plan.node_gpus,
            plan.node,
            plan.product.as_deref().unwrap_or("unknown product"),
            plan.allocation
        ),
    );
    if let Some(environment) = &mut pass.status.state.environment {
        environment.gpu_driver.clone_from(&plan.driver_version);
        environment.gpu_product.clone_from(&plan.product);
        environment.gpus = Some(plan.gpus);
    }
    Step::Go(Phase::Deploying, why)
}
