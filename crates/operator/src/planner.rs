//! The planner: one task of the leader that gives GPUs to the runs that wait for them.
//!
//! One look at the cluster serves the whole queue. It looks only when the result may have changed: a run joined the
//! queue, a run of this operator gave its node back, a plan has to be confirmed, or a slow poll may show that others
//! gave GPUs back. A waiting run costs no pass, no lock and no call (100 of them took the API server 1.3 cores
//! before).

mod answer;
mod earlier;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use perfval_api::Reason;
use perfval_cluster::{Look, cache_of};
use perfval_run::observed::Observed;
use perfval_run::queue::{self, Contender, Line, Turn};
use perfval_run::{Run, machine};
use perfval_sizing::{Fleet, Seen, Sizing};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use self::answer::Answer;
use self::earlier::{EarlierLooks, has_answer};
use crate::blocked;
use crate::boundary::{Panicked, catch};
use crate::commit::commit;
use crate::context::{Context, Queued};
use crate::event_words::PANICKED;

/// Several things that change at once are one reason to look.
const COALESCE: Duration = Duration::from_millis(50);
/// A look that takes longer is given up: every call in it has its own, shorter limit.
const LOOK_LIMIT: Duration = Duration::from_mins(2);
/// After a look the planner rests this many times as long as the look took: while a thousand runs are created, each
/// requests one.
const REST: u32 = 9;
/// Longest rest between two looks that runs requested.
const LONGEST_REST: Duration = Duration::from_secs(10);
/// Longest pause after a look that runs requested: the watches may show a little later what a run has given back.
const FOLLOW_UP: Duration = Duration::from_secs(3);
/// Operators that poll at the same moment would burden the API server together (percent of the pause).
const JITTER: u64 = 20;
/// Statuses written at once.
const WRITERS: usize = 4;

/// Plans for as long as this process leads.
pub async fn plan_until(context: Arc<Context>, stop: CancellationToken) {
    let prepared = async {
        if context.objects.any_active().await {
            let _turn = context.suspects.share().await;
            if let Err(Panicked(said)) = catch(context.cluster.prepare()).await {
                error!(
                    said,
                    "the first count of the cluster panicked; the first look counts again"
                );
            }
        }
    };
    futures::join!(stop.run_until_cancelled(prepared), plan(&context, &stop));
}

async fn plan(context: &Context, stop: &CancellationToken) {
    let mut rested = Instant::now();
    let mut pause: Option<Duration> = None;
    let mut earlier = EarlierLooks::default();
    loop {
        let due = pause.map(|pause| Instant::now() + jittered(pause, context.cluster.now()));
        let is_woken;
        tokio::select! {
            // In this order, so that a test's world is the same each time.
            biased;
            () = stop.cancelled() => return,
            () = context.queue.woken() => {
                let rest = sleep_until(rested.max(Instant::now() + COALESCE));
                if stop.run_until_cancelled(rest).await.is_none() {
                    return;
                }
                is_woken = true;
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => is_woken = false,
        }
        let _turn = context.suspects.share().await;
        let began = Instant::now();
        pause = catch(look(context, &mut earlier))
            .await
            .unwrap_or_else(|Panicked(said)| {
                error!(said, "a look for the queue panicked; trying again");
                context.metrics.failed(PANICKED.name);
                Some(LONGEST_REST)
            });
        context.metrics.calls(context.cluster.counts());
        if is_woken {
            pause = pause.map(|pause| pause.min(FOLLOW_UP));
        }
        rested = Instant::now() + (began.elapsed() * REST).min(LONGEST_REST);
    }
}

/// Short pauses are exact: a plan is confirmed after two seconds.
fn jittered(pause: Duration, now: DateTime<Utc>) -> Duration {
    let percent = u64::from(now.timestamp_subsec_nanos()) % JITTER;
    pause + pause * u32::try_from(percent).unwrap_or(0) / 100 * u32::from(pause > Duration::from_secs(5))
}

/// One look for the whole queue. The answer is when to look again, if a run still waits.
async fn look(context: &Context, earlier: &mut EarlierLooks) -> Option<Duration> {
    let queued = context.queued();
    let (began, looked_at) = (Instant::now(), context.cluster.now());
    let looked_before = context
        .queue
        .looks_for(queued.iter().map(|queued| queued.key.clone()), looked_at);
    context.metrics.planned(queued.len());
    if queued.is_empty() {
        return None;
    }
    let uids = || queued.iter().map(|queued| queued.key.0.as_str());
    let own: HashSet<&str> = uids().collect();
    let can_move = |uid: &str| match context.setbacks.rest(uid) {
        Some(_) => Some(false),
        None => own.contains(uid).then_some(true),
    };
    let turns = timeout(LOOK_LIMIT, turns(context, can_move)).await;
    let mut turns = turns.unwrap_or_else(|_| Err(format!("no answer within {} s", LOOK_LIMIT.as_secs())));
    let mut in_order: Vec<(&Queued, Answer)> = queued
        .iter()
        .filter_map(|queued| {
            let answer = match &mut turns {
                // For the others the API server is ahead of the watch, or they rest: the next look.
                Ok(turns) => turns.remove(&queued.key.0)?,
                Err(why) => Answer::unknown(why),
            };
            Some((queued, answer))
        })
        .collect();
    in_order.sort_by_key(|(_, answer)| answer.place);
    earlier.remember(&queued, &in_order, looked_at);
    earlier.note_unread(&in_order);
    let earlier = &*earlier;
    debug!(queued = queued.len(), took = ?began.elapsed(), "looked for the queue");
    let next = Mutex::new(None);
    let again_in = |pause: Option<Duration>| {
        let mut next = next.lock();
        *next = pause.into_iter().chain(*next).min();
    };
    // One decision after the other: of thousands of statuses only those are in memory that are being written.
    stream::iter(in_order)
        .for_each_concurrent(WRITERS, async |(queued, answer)| {
            let Ok(object) = queued.stored.unpack() else { return };
            let run = Run::new(&object, &context.settings);
            if earlier.is_brief(&queued.key) && has_answer(&run) {
                again_in(Some(FOLLOW_UP));
                return;
            }
            let seen = Observed {
                began: Some(looked_at),
                turn: answer.turn,
                oddities: answer.oddities,
                chosen_since: earlier.chosen.get(&queued.key).map(|(_, since)| *since),
                looked_before: looked_before.get(&queued.key).copied(),
                ..Observed::default()
            };
            let decision = machine::decide(&run, &seen, context.cluster.now());
            again_in(decision.recheck);
            if run.object.status.as_ref() == Some(&decision.status) {
                return;
            }
            if let Err(error) = Box::pin(commit(&run, context, &decision)).await {
                warn!(
                    name = run.name(),
                    namespace = run.namespace(),
                    error = blocked::redacted(&error.to_string(), Some(run.spec())),
                    "a plan could not be written; trying again"
                );
                context.metrics.failed(error.change().name);
                context.setbacks.pause(run.uid());
                // While it rests, the next run gets its turn.
                again_in(Some(COALESCE));
            }
        })
        .await;
    // A run that rests is in no plan until then.
    let rests = uids().filter_map(|uid| context.setbacks.rest(uid));
    let next = next.into_inner();
    Some(rests.chain(next).min().unwrap_or(LONGEST_REST))
}

/// The queue's answer to each run, by uid.
async fn turns(context: &Context, can_move: impl Fn(&str) -> Option<bool>) -> Result<HashMap<String, Answer>, String> {
    let mut look = context.cluster.look(&context.settings, can_move).await;
    if let Seen::Present(line) = &mut look.line {
        line.usual = queue::usual(context.objects.times_with_gpus());
    }
    if let Some(why) = look.line.unknown() {
        return Err(format!("runs that wait: {why}"));
    }
    loop {
        let planned = apart(move || {
            let planned = plan_by(&look);
            (look, planned)
        });
        let (answers, caches);
        (look, (answers, caches)) = planned.await.map_err(|error| format!("no plan was made: {error}"))?;
        if !look.locate_caches(&context.cluster, caches).await {
            return Ok(answers);
        }
    }
}

/// Runs work that may take seconds beside everything else. With one thread for all it runs at once: there time jumps,
/// and each world has to be the same when it is played again.
pub(crate) async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Ok(work());
    }
    spawn_blocking(work).await.map_err(|error| error.to_string())
}

/// Plans by a look. Returns the answer to each run, by uid, and the model caches of the runs that get a node.
fn plan_by(look: &Look) -> (HashMap<String, Answer>, BTreeSet<(String, String)>) {
    let nobody = Line::default();
    let line = look.line.present().unwrap_or(&nobody);
    let fleet = Fleet::new(look.inventory());
    let volume_of = |run: &Contender| look.for_run(run)?.cache_volume.present();
    let turns = queue::plan(line, volume_of, |run, spec, held, granted| match look.for_run(run) {
        Some(of_run) => fleet.choose(of_run, spec, held, granted),
        // It is looked for again.
        None => Sizing::Wait {
            reason: Reason::CallFailed,
            message: "free GPUs cannot be counted: nothing was read for this run".to_owned(),
        },
    });
    debug!(runs = turns.len(), nodes = fleet.examined(), "planned");
    let chosen = turns.iter().filter(|(_, turn)| is_chosen(turn));
    let caches = chosen.filter_map(|(run, _)| cache_of(run)).collect();
    let answer_to = |(place, (run, turn)): (usize, (&Contender, Turn))| {
        let of_run = look.for_run(run).filter(|_| is_chosen(&turn));
        let answer = Answer {
            place,
            oddities: of_run.map_or(Vec::new(), |of_run| fleet.warnings(of_run.naming)),
            turn: Seen::Present(turn),
        };
        (run.position.uid().to_owned(), answer)
    };
    (turns.into_iter().enumerate().map(answer_to).collect(), caches)
}

fn is_chosen(turn: &Turn) -> bool {
    matches!(turn, Turn::Sized(Sizing::Chosen(_)))
}

#[cfg(test)]
mod tests {
    use perfval_cluster::{Cluster, EndpointAccess};
    use perfval_run::Settings;
    use perfval_testkit::api_server::ApiServer;

    use super::*;
    use crate::metrics::OperatorMetrics;
    use crate::objects;
    use crate::rights::Rights;

    #[tokio::test(start_paused = true)]
    async fn a_planner_that_is_stopped_while_it_rests_looks_no_more() {
        let client = ApiServer::new().client();
        let (cluster, _answers) = Cluster::new(client.clone(), client, EndpointAccess::Dns, "test".to_owned());
        let metrics = Arc::new(OperatorMetrics::new(false));
        let (objects, _scopes) = objects::watched(vec![None]);
        let (settings, rights) = (Settings::default(), Rights::default());
        let context = Context::new(cluster, settings, metrics.clone(), objects, rights);
        // A look would set it to 0.
        metrics.planned(7);
        context.queue.wake();
        let stop = CancellationToken::new();
        futures::join!(plan(&context, &stop), async { stop.cancel() });
        let text = metrics.text([]);
        assert!(text.contains("perfvalidation_planned_runs 7"), "{text}");
    }
}
