//! Two operators over one API server: one is frozen, killed or cut off at any moment, and at most one of them acts.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use futures::FutureExt as _;
use kube::Client;
use perfval_operator::fence::Fence;
use perfval_operator::leader::Candidate;
use perfval_operator::process::lead;
use perfval_operator::server_clock::ServerClock;
use perfval_run::Settings;
use perfval_testkit::api_server::{ApiServer, Fault, Made, Wire};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tower::Layer as _;

use crate::rig::{Operator, Rig};
use crate::scenario::{Ending, LIMIT, Scenario, named};
use crate::{each, laws, play, sample, timeless};

/// Somebody else leads within this time.
const TAKEOVER: Duration = Duration::from_secs(20);
/// A process that ended is there again after this time.
const RESTART: Duration = Duration::from_secs(2);

/// What happens to the process that leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Incident {
    /// As by SIGSTOP, and a minute later by SIGCONT.
    Frozen,
    /// It is gone for good.
    Killed,
    /// No call gets through for a minute.
    CutOff,
    /// Somebody writes to the lease at the same moment, for three times in a row.
    Conflicts,
}

/// When it happens.
#[derive(Clone, Copy, Debug)]
enum Moment {
    After(Duration),
    /// The call before this one is under way, and its answer has not come.
    BeforeCall(usize),
}

/// Every answer takes this time, so that a process is frozen in the middle of a pass, too: it goes on with the next call.
const PACE: Duration = Duration::from_millis(300);

/// Holds a future as SIGSTOP holds a process.
#[derive(Clone, Default)]
struct Freezer(Arc<Mutex<(bool, Option<Waker>)>>);

impl Freezer {
    fn set(&self, frozen: bool) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = frozen;
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }

    async fn hold<T>(self, life: impl Future<Output = T>) -> T {
        let mut life = pin!(life);
        poll_fn(|context| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if state.0 {
                state.1 = Some(context.waker().clone());
                return Poll::Pending;
            }
            drop(state);
            life.as_mut().poll(context)
        })
        .await
    }
}

/// A process that is started again whenever it ends.
struct Process {
    wire: Wire,
    freezer: Freezer,
    task: JoinHandle<()>,
}

impl Process {
    /// `ahead`: how far the clock of its machine is ahead of the API server's (s).
    fn start(rig: &Rig, name: &'static str, ahead: i64) -> Self {
        let (wire, freezer) = (Wire::new(&rig.server), Freezer::default());
        let lives = live(
            rig.server.clone(),
            wire.clone(),
            rig.clock_of(ahead),
            rig.settings.clone(),
            name,
        );
        let task = tokio::spawn(freezer.clone().hold(lives));
        Self { wire, freezer, task }
    }

    /// What it changed, or may have; the lease is not part of it.
    fn acts(&self) -> Vec<Made> {
        let mut made = self.wire.made();
        made.retain(|made| made.writes() && made.call.resource != "leases");
        made
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn live(server: ApiServer, wire: Wire, clock: ServerClock, settings: Settings, name: &'static str) {
    for life in 1.. {
        let line = clock.layer(wire.connect());
        let identity = format!("{name}-{life}");
        let unfenced = Client::new(line.clone(), "default");
        let candidate = Candidate::new(unfenced, "operators", "lease", identity).with_clock(clock.clock());
        let fence = Fence::new(Some(candidate.tenure()));
        let fenced = Client::new(fence.layer(line), "default");
        let operator = Operator::start(fenced.clone(), fenced, clock.clock(), settings.clone());
        let work = operator.run(server.clone()).map(Ok);
        // Whatever ended it, it is started again.
        let _ = lead(candidate, work, &CancellationToken::new()).await;
        sleep(RESTART).await;
    }
}

/// Two processes, of which the first leads.
async fn two(scenario: &Scenario, incident: Incident) -> (Rig, Process, Process) {
    let mut rig = scenario.rig();
    scenario.apply(&rig);
    let first = Process::start(&rig, "first", 60);
    if incident == Incident::Frozen {
        first.wire.slow_down(PACE);
    }
    rig.wait(Duration::from_millis(500)).await;
    let second = Process::start(&rig, "second", -60);
    (rig, first, second)
}

async fn disturbed(scenario: &Scenario, incident: Incident, moment: Moment) -> Result<(Ending, Duration), String> {
    let (mut rig, first, second) = two(scenario, incident).await;
    match moment {
        Moment::After(time) => rig.wait(time).await,
        Moment::BeforeCall(number) => rig.until(LIMIT, |_| first.wire.count() >= number).await?,
    }
    let began = Instant::now();
    match incident {
        Incident::Frozen => first.freezer.set(true),
        Incident::Killed => {
            first.wire.cut();
            first.task.abort();
        }
        Incident::CutOff => first.wire.sever(true),
        Incident::Conflicts => rig.server.fail(Fault::refuse("update", "leases", 409).times(3)),
    }
    rig.wait(Duration::from_mins(1)).await;
    rig.server.heal();
    first.wire.sever(false);
    first.freezer.set(false);
    rig.until(LIMIT, scenario.over).await?;
    rig.wait(Duration::from_mins(2)).await;
    laws::always(&rig)?;
    let (by_first, by_second) = (first.acts(), second.acts());
    let taken_over = by_second.first().map(|made| made.at);
    if let (Some(taken_over), Some(last)) = (taken_over, by_first.last())
        && last.at > taken_over
    {
        return Err(format!("both act: {last:?} came after {:?}", by_second.first()));
    }
    let leads_since = second.wire.made().into_iter().find(|made| {
        let takes = matches!(made.call.verb, "update" | "create") && made.call.resource == "leases";
        takes && made.code.is_some_and(|code| code < 300)
    });
    let waited = leads_since.map_or(Duration::ZERO, |made| made.at.saturating_duration_since(began));
    if matches!(incident, Incident::Frozen | Incident::CutOff) {
        a_process_that_lost_the_lease_begins_again(&mut rig, &second).await?;
    }
    match (incident, taken_over) {
        (Incident::Conflicts, Some(at)) => Err(format!(
            "a leader that only met others at its lease was replaced at {at:?}"
        )),
        (Incident::Conflicts, None) => Ok((Ending::of(&rig), waited)),
        _ if waited.is_zero() => Err("nobody took over".to_owned()),
        _ if waited > TAKEOVER => Err(format!("taken over after {waited:?}")),
        _ => Ok((Ending::of(&rig), waited)),
    }
}

/// Whatever it remembers, and whatever it has under way, is from before its successor.
async fn a_process_that_lost_the_lease_begins_again(rig: &mut Rig, successor: &Process) -> Result<(), String> {
    successor.wire.cut();
    successor.task.abort();
    rig.wait(TAKEOVER).await;
    let lease = rig.server.get("leases", "operators", "lease").unwrap_or_default();
    match lease["spec"]["holderIdentity"].as_str() {
        Some("first-1") => Err("a process that had lost the lease leads again".to_owned()),
        Some(again) if again.starts_with("first-") => Ok(()),
        other => Err(format!("{other:?} leads")),
    }
}

#[test]
fn at_most_one_of_two_operators_acts() {
    let scenario = named("passing");
    let (_, expected) = play(&scenario, |_| {}).expect("it passes");
    let incidents = [
        Incident::Frozen,
        Incident::Killed,
        Incident::CutOff,
        Incident::Conflicts,
    ];
    let cases: Vec<(Incident, u64)> = (0..240)
        .flat_map(|quarter| incidents.map(|incident| (incident, 250 * quarter)))
        .collect();
    let longest = Mutex::new(Duration::ZERO);
    each(&sample(&cases, 15), |(incident, after)| {
        let at = |why: String| format!("{incident:?} after {after} ms: {why}");
        let moment = Moment::After(Duration::from_millis(*after));
        let played = timeless(disturbed(&scenario, *incident, moment));
        let (ending, waited) = played.map_err(at)?;
        let mut longest = longest.lock().unwrap_or_else(PoisonError::into_inner);
        *longest = waited.max(*longest);
        ending.matches(&expected).map_err(at)
    });
    eprintln!("taken over within {:?}", longest.into_inner().unwrap_or_default());
}

#[test]
fn a_write_that_a_freeze_holds_up_is_not_made_after_it() {
    let scenario = named("passing");
    let (_, expected) = play(&scenario, |_| {}).expect("it passes");
    let undisturbed = timeless(async {
        let (mut rig, first, _second) = two(&scenario, Incident::Frozen).await;
        rig.until(LIMIT, scenario.over).await.map(|()| first.acts())
    });
    let writes = undisturbed.expect("it passes");
    assert!(writes.len() >= 20, "{} writes", writes.len());
    each(&sample(&writes, 5), |made| {
        let call = &made.call;
        let at = |why: String| {
            format!(
                "frozen before call {}, {} {}: {why}",
                made.number, call.verb, call.resource
            )
        };
        let played = timeless(disturbed(&scenario, Incident::Frozen, Moment::BeforeCall(made.number)));
        let (ending, _) = played.map_err(at)?;
        ending.matches(&expected).map_err(at)
    });
}
