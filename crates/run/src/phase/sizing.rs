//! Sizing: a node and its free GPUs are chosen in turn, and written down before anything is created.

use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::{PerfValidationSpec, PerfValidationStatus, Phase, PlacementStatus, Reason, Why, condition};
use perfval_sizing as sizing;
use perfval_sizing::Sizing;
use perfval_verdict::diagnosis::cause::Cause;

use super::definition::{Definition, Timed, give_up};
use crate::attendance::Limit;
use crate::observed::{Need, Needs};
use crate::pass::{Pass, Step};
use crate::queue::{Found, Position, Queue};
use crate::status::Truth;
use crate::{teardown, time};

/// Two equal readings this far apart: the scheduler's decisions reach the API only in `PreBind`, and a driver publishes
/// its slices one by one.
const SETTLE: Duration = Duration::from_secs(2);
/// How often a saturated cluster is counted again.
const COUNT_AGAIN: Duration = Duration::from_secs(5);

/// A thousand runs may wait here, and one look is enough to take a node: their heartbeat is slow.
const HEARTBEAT: Duration = Duration::from_mins(1);

pub(super) const PHASE: Definition = Definition {
    needs: |_| Needs::of([Need::Children, Need::Workload, Need::OtherRuns, Need::Inventory]),
    step,
    timed: Some(Timed {
        limit,
        expired: |pass, why| give_up(pass, why.reason, why, "timeouts.sizing"),
    }),
};

fn limit(spec: &PerfValidationSpec, status: &PerfValidationStatus, began: DateTime<Utc>) -> Option<Limit> {
    let last_in_line = status.run.as_ref().and_then(|run| run.last_in_line);
    let since = last_in_line.map_or(began, |last| last.max(began));
    (!is_in_line(status)).then(|| Limit {
        heartbeat: HEARTBEAT,
        ..Limit::new(since, time::duration(&spec.timeouts.sizing))
    })
}

/// Whether a run waits for earlier ones; its time limit stands still meanwhile.
fn is_in_line(status: &PerfValidationStatus) -> bool {
    condition::has_reason(status, condition::PLACED, Reason::InLine)
}

fn step(pass: &mut Pass<'_>) -> Step {
    let was_in_line = is_in_line(&pass.status);
    let step = place(pass);
    if was_in_line
        && !is_in_line(&pass.status)
        && let Some(run) = &mut pass.status.run
    {
        run.last_in_line = Some(pass.now);
    }
    step
}

fn place(pass: &mut Pass<'_>) -> Step {
    // A run that comes back from a lost race, or follows one that was kept, first removes what is left.
    match teardown::remove(pass) {
        teardown::Removal::Gone => {}
        teardown::Removal::Removing(what) => {
            pass.look_again_in(SETTLE);
            return Step::work(Reason::Removing, what);
        }
        teardown::Removal::Unknown(what) => return unreadable(pass, &what),
    }
    let Some(others) = pass.seen.other_runs.present() else {
        return unreadable(pass, pass.seen.other_runs.unknown().unwrap_or("other runs: no answer"));
    };
    let Some(inventory) = pass.seen.inventory.present() else {
        return unreadable(pass, pass.seen.inventory.unknown().unwrap_or("inventory: no answer"));
    };
    let line = Queue::at(&Position::of(&pass.run.object.metadata, pass.run.status()), others);
    match line.choose(inventory, pass.run.spec()) {
        Found::Sized(Sizing::Chosen(plan)) => settle(pass, plan),
        Found::Sized(Sizing::Wait { reason, message }) => match line.behind().filter(|_| reason == Reason::NodeBusy) {
            Some(names) => wait(
                pass,
                Why::new(Reason::InLine, format!("in line behind {names}: {message}")),
            ),
            None => wait(pass, Why::new(reason, message)),
        },
        // They take it within seconds; a limit of `0s` is not meant for that.
        Found::OthersFirst(who) => {
            let why = Why::new(Reason::NodeBusy, who);
            give_back(pass, &why);
            pass.look_again_in(SETTLE);
            Step::Work(why)
        }
        Found::Sized(Sizing::Refuse { reason, message }) => {
            pass.status.placement = None;
            let why = Why::new(reason, message);
            pass.condition(condition::PLACED, false, &why);
            Step::End(perfval_api::Verdict::Error, why)
        }
    }
}

fn unreadable(pass: &mut Pass<'_>, what: &str) -> Step {
    let why = Why::new(
        Reason::InventoryUnreadable,
        format!("free GPUs cannot be counted: {what}"),
    );
    pass.condition(condition::PLACED, Truth::Unknown, &why);
    pass.look_again_in(COUNT_AGAIN);
    Step::Wait(why)
}

fn wait(pass: &mut Pass<'_>, why: Why) -> Step {
    give_back(pass, &why);
    pass.look_again_in(COUNT_AGAIN);
    Step::Wait(why)
}

/// A plan that is not to be had now is given back, so that no other run waits for it.
fn give_back(pass: &mut Pass<'_>, why: &Why) {
    pass.status.placement = None;
    pass.condition(condition::PLACED, false, why);
}

fn settle(pass: &mut Pass<'_>, plan: PlacementStatus) -> Step {
    let read_before = pass.status.placement.as_ref();
    let unchanged = read_before.is_some_and(|before| {
        let chosen_at = plan.chosen_at;
        PlacementStatus {
            chosen_at,
            ..before.clone()
        } == plan
    });
    let since = read_before.and_then(|before| before.chosen_at).filter(|_| unchanged);
    let Some(since) = since else {
        let why = Why::new(
            Reason::Settling,
            format!("{} GPUs are free on {}; reading once more", plan.gpus, plan.node),
        );
        pass.status.placement = Some(PlacementStatus {
            chosen_at: Some(pass.now),
            ..plan
        });
        pass.condition(condition::PLACED, Truth::Unknown, &why);
        pass.look_again_in(SETTLE);
        return Step::Work(why);
    };
    let settled = time::after(since, SETTLE);
    if pass.now < settled {
        pass.look_again_in(time::until(settled, pass.now));
        return Step::work(Reason::Settling, pass.status.message.clone().unwrap_or_default());
    }
    let oddities = pass.seen.inventory.present().map(sizing::warnings).unwrap_or_default();
    if !oddities.is_empty() {
        pass.find(Cause::SuspiciousAllocation.finding(oddities.join("; ")));
    }
    let why = Why::new(
        Reason::GpusChosen,
        format!(
            "{} of {} GPUs on {} ({}, {})",
            plan.gpus,
            plan.node_gpus,
            plan.node,
            plan.product.as_deref().unwrap_or("unknown product"),
            plan.allocation
        ),
    );
    if let Some(environment) = &mut pass.status.environment {
        environment.gpu_driver = plan.driver_version;
        environment.gpu_product = plan.product;
        environment.gpus = Some(plan.gpus);
    }
    pass.condition(condition::PLACED, true, &why);
    Step::Go(Phase::Deploying, why)
}
