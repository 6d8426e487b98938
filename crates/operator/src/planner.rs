//! The planner: one task of the leader that gives GPUs to the runs that wait for them.
//!
//! One look at the cluster serves the whole queue. It looks only when something may have changed: a run joined the queue,
//! one of ours gave its node back, a plan has to be confirmed, or a slow poll may show that others gave GPUs back.
//! A waiting run costs no pass, no lock and no call (100 of them took the API server 1.3 cores before; issue 12).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use perfval_run::observed::Observed;
use perfval_run::queue::{self, Contender, Turn};
use perfval_run::{Decision, Run, machine};
use perfval_sizing::{Seen, Sizing, choose};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::controller::{Context, commit};
use crate::objects::Newest;
use crate::queue_bell;

/// Several things that change at once are one reason to look.
const COALESCE: Duration = Duration::from_millis(50);
/// A look that takes longer is given up: every call in it has its own, shorter limit.
const LOOK_LIMIT: Duration = Duration::from_mins(2);
/// After a look the planner rests this many times as long as the look took: while a thousand runs are created, each asks for
/// one.
const REST: u32 = 9;
/// Longest rest between two looks that were asked for.
const LONGEST_REST: Duration = Duration::from_secs(10);
/// Operators that poll at the same moment would burden the API server together (percent of the pause).
const JITTER: u64 = 20;
/// Statuses written at once.
const WRITERS: usize = 4;

/// Plans for as long as this process leads.
pub async fn plan_until(context: Arc<Context>, stop: CancellationToken) {
    let mut rested = Instant::now();
    let mut pause: Option<Duration> = None;
    loop {
        let due = pause.map(|pause| Instant::now() + jittered(pause, context.cluster.now()));
        tokio::select! {
            // In this order, so that a test's world is the same each time.
            biased;
            () = stop.cancelled() => return,
            () = context.queue.woken() => sleep_until(rested.max(Instant::now() + COALESCE)).await,
            () = at(due) => {}
        }
        let began = Instant::now();
        pause = look(&context).await;
        rested = Instant::now() + (began.elapsed() * REST).min(LONGEST_REST);
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Short pauses are exact: a plan is confirmed after two seconds.
fn jittered(pause: Duration, now: DateTime<Utc>) -> Duration {
    let percent = u64::from(now.timestamp_subsec_nanos()) % JITTER;
    pause + pause * u32::try_from(percent).unwrap_or(0) / 100 * u32::from(pause > Duration::from_secs(5))
}

/// One look for the whole queue. The answer is when to look again, if a run still waits.
async fn look(context: &Context) -> Option<Duration> {
    let queued = context.queued();
    let runs = || {
        let objects = queued.iter().filter_map(Newest::get);
        objects.map(|object| Run::new(object, &context.settings))
    };
    let mut looked_before = context.queue.looks_for(runs(), context.cluster.now());
    if queued.is_empty() {
        context.metrics.planned(0);
        return None;
    }
    let began = Instant::now();
    let mut turns = match timeout(LOOK_LIMIT, turns(context)).await {
        Ok(seen) => seen,
        Err(_) => Err(format!("no answer within {} s", LOOK_LIMIT.as_secs())),
    };
    let mut decisions: Vec<(usize, Run<'_>, Decision)> = runs()
        .filter_map(|run| {
            let (place, turn, oddities) = match &mut turns {
                Ok(turns) => match turns.remove(run.uid()) {
                    Some(Answer { place, turn, oddities }) => (place, Seen::Present(turn), oddities),
                    // The API server knows more of it than the watch: the next look.
                    None => return None,
                },
                Err(why) => (0, Seen::Unknown(why.clone()), Vec::new()),
            };
            let seen = Observed {
                turn,
                oddities,
                looked_before: looked_before.remove(&queue_bell::key(&run)),
                ..Observed::default()
            };
            Some((place, run, machine::decide(&run, &seen, context.cluster.now())))
        })
        .collect();
    decisions.sort_by_key(|(place, ..)| *place);
    let next = decisions.iter().filter_map(|(_, _, decision)| decision.recheck).min();
    let changed: Vec<_> = decisions
        .into_iter()
        .filter(|(_, run, decision)| run.object.status.as_ref() != Some(&decision.status))
        .collect();
    context.metrics.planned(queued.len());
    debug!(queued = queued.len(), written = changed.len(), took = ?began.elapsed(), "looked for the queue");
    let unwritten = Mutex::new(None);
    stream::iter(changed)
        .for_each_concurrent(WRITERS, async |(_, run, decision)| {
            if let Err(error) = Box::pin(commit(&run, context, &decision)).await {
                warn!(
                    name = run.name(),
                    namespace = run.namespace(),
                    error = &error as &dyn std::error::Error,
                    "a plan could not be written; trying again"
                );
                context.metrics.failed(error.reason());
                let pause = context.setbacks.pause(run.uid());
                let mut soonest = unwritten.lock().unwrap_or_else(PoisonError::into_inner);
                *soonest = soonest.into_iter().chain([pause]).min();
            }
        })
        .await;
    let unwritten = unwritten.into_inner().unwrap_or_else(PoisonError::into_inner);
    let next = next.into_iter().chain(unwritten).min();
    Some(next.unwrap_or(LONGEST_REST))
}

/// What the queue says to a run.
struct Answer {
    place: usize,
    turn: Turn,
    /// What is odd about the cluster's devices; only for a run that is given some.
    oddities: Vec<String>,
}

/// What the queue says to each run, by uid.
async fn turns(context: &Context) -> Result<HashMap<String, Answer>, String> {
    let mut look = context.cluster.look().await;
    let line = match std::mem::take(&mut look.line) {
        Seen::Present(line) => line,
        unread => return Err(format!("runs that wait: {}", unread.unknown().unwrap_or("no answer"))),
    };
    let settings = &context.settings;
    let turns = loop {
        let turns = queue::plan(&line, |run, spec, held| {
            choose(look.inventory_for(run, settings), spec, held)
        });
        let chosen = turns.iter().filter(|(_, turn)| is_chosen(turn));
        if !look.locate_caches(&context.cluster, chosen.map(|(run, _)| *run)).await {
            break turns;
        }
    };
    let answer_to = |(place, (run, turn)): (usize, (&Contender, Turn))| {
        let oddities = if is_chosen(&turn) {
            look.oddities(&run.namespace, settings)
        } else {
            Vec::new()
        };
        let answer = Answer { place, turn, oddities };
        (run.position.uid().to_owned(), answer)
    };
    Ok(turns.into_iter().enumerate().map(answer_to).collect())
}

fn is_chosen(turn: &Turn) -> bool {
    matches!(turn, Turn::Sized(Sizing::Chosen(_)))
}
