//! Following one validation to its end: a picture that is redrawn on a terminal, one line for each change elsewhere.

mod live;
mod picture;
mod plain;

use std::mem;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use perfval_api::{Leftovers, PerfValidation, PerfValidationStatus, Phase, Verdict, condition, meta};
use perfval_run::{Run, Settings};
use tokio::time::{Instant, sleep, sleep_until};

use crate::args::WatchArgs;
use crate::describe;
use crate::error::Error;
use crate::exit::{self, NOT_OVER};
use crate::keys::Muted;
use crate::screen::Screen;
use crate::session::Session;

use live::Live;
use picture::Picture;
use plain::Lines;

/// Between two pictures: seconds are shown.
const TICK: Duration = Duration::from_secs(1);
/// Pause before the next look, or before a failed call is tried again.
pub const PAUSE: Duration = Duration::from_secs(2);
/// Time after which a call that fails is given up.
const PATIENCE: Duration = Duration::from_mins(5);

/// End of following.
pub enum End {
    /// The run is over, with this exit code.
    Over(u8),
    /// A person pressed Ctrl-C.
    Interrupted,
}

/// `watch`: follows a validation until its run is over.
pub async fn run(screen: &mut Screen, session: &Session, args: &WatchArgs) -> Result<u8, Error> {
    let object = session.pick(args.name.as_deref()).await?;
    Box::pin(to_the_end(screen, session, object, args.timeout)).await
}

/// Follows to the end of the run and prints what came of it. Ctrl-C leaves it running.
pub async fn to_the_end(
    screen: &mut Screen,
    session: &Session,
    object: PerfValidation,
    timeout: Option<Duration>,
) -> Result<u8, Error> {
    let name = object.name_any();
    match Box::pin(follow(screen, session, object, timeout)).await? {
        End::Over(code) => Ok(code),
        End::Interrupted => {
            screen.note(&format!(
                "{name} goes on without you; {} would stop it and free its GPUs.",
                session.command("suspend", &name)
            ));
            Ok(NOT_OVER)
        }
    }
}

/// Follows to the end of the run, or to Ctrl-C.
pub async fn follow(
    screen: &mut Screen,
    session: &Session,
    mut object: PerfValidation,
    timeout: Option<Duration>,
) -> Result<End, Error> {
    screen.hear();
    let name = object.name_any();
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = pin!(watcher(session.validations(), config).default_backoff());
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut shown = Shown::new(screen);
    let mut live = Live::new(session);
    let (mut listed, mut is_noted, mut is_waiting) = (false, false, false);
    shown.show(screen, &object, &live)?;
    loop {
        if is_over(&object) {
            shown.finish();
            screen.print(&format!("\n{}", describe::page(screen, session, &object)))?;
            let status = object.status.as_ref();
            if let Some(left) = status.and_then(overdue) {
                screen.note(&format!(
                    "{name} is over, but objects of it are left: {}.",
                    left.message
                ));
            }
            let verdict = status.and_then(|status| status.verdict);
            return Ok(End::Over(verdict.map_or(NOT_OVER, exit::code)));
        }
        check_readable(session, &object)?;
        let no_room = describe::unreadable(&object).map(|stalled| &stalled.message);
        if let Some(why) = no_room.filter(|_| !mem::replace(&mut is_waiting, true)) {
            shown.finish();
            screen.note(&format!("{name} waits: {why}."));
        }
        if is_suspended(&object) {
            shown.finish();
            screen.note(&format!(
                "{name} is suspended; {} lets it run.",
                session.command("resume", &name)
            ));
            return Ok(End::Over(NOT_OVER));
        }
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(Event::Apply(seen) | Event::InitApply(seen))) => {
                    (object, listed, is_noted) = (seen, true, false);
                    shown.show(screen, &object, &live)?;
                }
                Some(Ok(Event::Init)) => listed = false,
                Some(Ok(Event::InitDone)) if listed => {}
                Some(Ok(Event::InitDone | Event::Delete(_))) => {
                    shown.finish();
                    return Err(Error::Vanished(format!("{}/{name}", session.namespace)));
                }
                Some(Err(error)) => {
                    let note = retried(error)?.filter(|_| !mem::replace(&mut is_noted, true));
                    if let Some(note) = note {
                        shown.finish();
                        screen.note(&format!("{note}. The run does not depend on it."));
                    }
                }
                None => return Err(Error::Vanished(name)),
            },
            Some(()) = screen.interrupts.next() => {
                shown.finish();
                return Ok(End::Interrupted);
            }
            () = sleep(TICK), if shown.is_picture() => {
                live.read(&object).await;
                shown.show(screen, &object, &live)?;
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                shown.finish();
                let phase = object.status.as_ref().and_then(|status| status.phase).map_or("Pending", Phase::as_str);
                return Err(Error::NotOver(format!(
                    "{name} is not over in time: it is {phase}, and goes on; follow it with {}",
                    session.command("watch", &name)
                )));
            }
        }
    }
}

/// Note about a watch that broke off and is tried again; `None` if only its events were too old.
///
/// # Errors
///
/// A watch that is not allowed is not tried again.
pub fn retried(error: watcher::Error) -> Result<Option<String>, Error> {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => note_retry(Error::from_call("read PerfValidations", error)).map(Some),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => Ok(None),
    }
}

/// Note about a call that is tried again.
///
/// # Errors
///
/// A call that is refused is not tried again.
pub fn note_retry(error: Error) -> Result<String, Error> {
    match error {
        Error::Unreachable { why, .. } => Ok(format!("The cluster does not answer ({why}); trying again")),
        Error::Overloaded { code, why, .. } => Ok(format!("The cluster answered {code} ({why}); trying again")),
        refused => Err(refused),
    }
}

/// Result of a call after a long run. It is tried again while the cluster does not answer; Ctrl-C makes the next try the
/// last.
pub async fn persist<T>(screen: &mut Screen, call: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    let (began, mut is_noted, mut is_last) = (Instant::now(), false, false);
    loop {
        let error = match call().await {
            Err(error) if !is_last && began.elapsed() < PATIENCE => error,
            last => return last,
        };
        let why = note_retry(error)?;
        if !is_noted {
            screen.note(&format!("{why}."));
        }
        is_noted = true;
        tokio::select! {
            () = sleep(PAUSE) => {}
            Some(()) = screen.interrupts.next() => is_last = true,
        }
    }
}

/// Returns true if the run that was last requested is over. A node that broke may keep its objects for days.
pub fn is_over(object: &PerfValidation) -> bool {
    let Some(status) = &object.status else { return false };
    let settings = Settings::default();
    let generation = Run::new(object, &settings).generation();
    status.phase == Some(Phase::Completed)
        && (condition::is_true(status, condition::COMPLETE) || overdue(status).is_some())
        && status.observed_generation == generation
        // The operator observes also an edit that it cannot read. The conditions of the run before stay.
        && status.run.as_ref().is_some_and(|run| run.generation == generation)
        && has_begun(object)
}

/// Condition that lists the objects that the run could not remove in time.
fn overdue(status: &PerfValidationStatus) -> Option<&Condition> {
    let is_overdue = status.state.leftovers == Some(Leftovers::Overdue);
    condition::find(status, condition::CLEANED_UP).filter(|_| is_overdue)
}

/// Returns true if no run goes on, and none begins by itself.
pub fn rests(object: &PerfValidation) -> bool {
    is_over(object) || is_suspended(object) || unreadable_until_edited(object).is_some()
}

fn unreadable_until_edited(object: &PerfValidation) -> Option<&Condition> {
    describe::unreadable(object).filter(|stalled| !stalled.message.ends_with(condition::TRIED_AGAIN))
}

/// Refuses to wait for a run of an object that the operator cannot read.
pub fn check_readable(session: &Session, object: &PerfValidation) -> Result<(), Error> {
    let Some(stalled) = unreadable_until_edited(object) else {
        return Ok(());
    };
    Err(Error::NotMeasured {
        code: exit::code(Verdict::Error),
        why: format!(
            "the operator cannot run {}/{}: {}",
            session.namespace,
            object.name_any(),
            stalled.message
        ),
    })
}

/// Returns true if the run that was last requested has begun.
pub fn has_begun(object: &PerfValidation) -> bool {
    let settings = Settings::default();
    let run = object.status.as_ref().and_then(|status| status.run.as_ref());
    let handled = run.and_then(|run| run.rerun_token.as_deref());
    run.is_some()
        && (Run::new(object, &settings).rerun_token() == handled || !object.annotations().contains_key(meta::RERUN))
}

/// Returns true if it is stopped. A requested run leaves the phase of a completed one as it is.
fn is_suspended(object: &PerfValidation) -> bool {
    let phase = object.status.as_ref().and_then(|status| status.phase);
    object.spec.suspend && matches!(phase, Some(Phase::Suspended | Phase::Completed))
}

/// Display of changes.
enum Shown {
    Picture(Picture, Option<Muted>),
    Lines(Lines),
}

impl Shown {
    fn new(screen: &Screen) -> Self {
        match (screen.size)() {
            Some(size) => Self::Picture(Picture::new(size, screen.unicode), None),
            None => Self::Lines(Lines::default()),
        }
    }

    fn is_picture(&self) -> bool {
        matches!(self, Self::Picture(..))
    }

    fn show(&mut self, screen: &mut Screen, object: &PerfValidation, live: &Live) -> Result<(), Error> {
        let now = screen.now();
        match self {
            Self::Picture(picture, muted) => {
                if screen.echoes {
                    muted.get_or_insert_with(Muted::start).again();
                }
                // It moves the cursor.
                let drawn = picture.draw((screen.size)(), object, live, now);
                screen.write(drawn.as_bytes())
            }
            Self::Lines(lines) => screen.print(&lines.changed(object, now)),
        }
    }

    /// Leaves the picture in place; the next text goes below it, and typed keys are visible again.
    fn finish(&mut self) {
        if let Self::Picture(picture, muted) = self {
            picture.leave();
            *muted = None;
        }
    }
}
