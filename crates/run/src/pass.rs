//! One pass under decision: the draft of the next status, and the effects to carry out.

mod looks;
mod step;

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use perfval_api::{
    Finding, GpuCheck, PerfValidationStatus, Phase, Reason, Severity, Trigger, Verdict, Why, Word, condition,
};
use perfval_sizing::holds_node;
use perfval_verdict::{close, conclusion, environment};

use crate::attendance::{self, LONGEST_PAUSE, Limit};
use crate::decision::{Decision, Effect, Event};
use crate::diagnosis::blame::blamed;
use crate::edit;
use crate::observed::{Need, Needs, Observed};
use crate::queue;
use crate::run::Run;
use crate::secret::Redactor;
use crate::status;
use crate::time;

pub(crate) use step::Step;

/// One pass under decision.
pub(crate) struct Pass<'a> {
    pub(crate) run: &'a Run<'a>,
    pub(crate) seen: &'a Observed,
    pub(crate) now: DateTime<Utc>,
    /// The next status, as far as it is decided.
    pub(crate) status: PerfValidationStatus,
    effects: Vec<Effect>,
    events: Vec<Event>,
    recheck: Option<Duration>,
    /// Reads that are missing.
    reads: BTreeSet<Need>,
    /// Time of the look before this pass, if known.
    last_look: Option<DateTime<Utc>>,
    /// True if a limit would have passed, but this is the first look after a pause.
    looks_once_more: bool,
}

/// Watches wake us up; this is for what no watch shows, and for lost events. A pass may rest on copies for up to 90 s after such a
/// loss.
const SAFETY: Duration = LONGEST_PAUSE;
/// GPUs that others give back are seen by looking; one look serves the whole queue.
const QUEUE_POLL: Duration = Duration::from_secs(30);
/// Longest pause between looks at a removal that hangs for longer than `timeouts.cleanup`; the pauses grow up to it.
const OVERDUE_POLL: Duration = Duration::from_mins(1);
/// Message of the condition `CleanedUp` while the run removes its objects.
pub(crate) const REMOVING: &str = "removal is under way";
/// Findings that are published as Events at the end of a run.
const PUBLISHED: usize = 3;

impl<'a> Pass<'a> {
    pub(crate) fn new(run: &'a Run<'a>, seen: &'a Observed, now: DateTime<Utc>) -> Self {
        let mut status = run.status().clone();
        status.observed_generation = run.generation();
        edit::adopt(run, &mut status);
        let heartbeat = status.state.last_looked_at;
        Self {
            run,
            seen,
            now,
            status,
            effects: Vec::new(),
            events: Vec::new(),
            recheck: None,
            reads: BTreeSet::new(),
            // A later look that wrote nothing may be remembered.
            last_look: heartbeat.and(heartbeat.max(seen.looked_before)),
            looks_once_more: false,
        }
    }

    /// Requests reads that the pass lacks, and decides nothing without them.
    pub(crate) fn read(&mut self, needs: impl IntoIterator<Item = Need>) -> Step {
        self.reads.extend(needs);
        Step::Wait(self.last_why())
    }

    /// Reason and message of the last pass.
    pub(crate) fn last_why(&self) -> Why {
        Why::new(
            Reason::from_word(self.status.reason.as_deref().unwrap_or_default()),
            self.status.message.clone().unwrap_or_default(),
        )
    }

    /// Adds an effect.
    pub(crate) fn act(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Adds an event of this run: without the run's number, the recorder would merge it with that of a run before, and keep the
    /// first text.
    pub(crate) fn note(&mut self, mut notice: Event) {
        if let Some(run) = &self.status.run {
            notice.action = format!("{}{}", notice.action, run.number).into();
        }
        self.events.push(notice);
    }

    /// Looks again after `delay` at the latest.
    pub(crate) fn look_again_in(&mut self, delay: Duration) {
        self.recheck = Some(self.recheck.map_or(delay, |set| set.min(delay)));
    }

    /// Sets a condition of this run; `None` is `Unknown`.
    pub(crate) fn condition(&mut self, name: &str, value: impl Into<Option<bool>>, why: &Why) {
        status::set_condition(&mut self.status, name, value.into(), why, self.now);
    }

    /// The deployment is not ready. `gpu_check`: what there is to find out about its GPUs.
    pub(crate) fn not_ready(&mut self, gpu_check: Option<GpuCheck>) {
        let state = &mut self.status.state;
        state.ready_since = None;
        // An answer from before is none of the next start.
        state.unanswered = None;
        state.gpu_check = gpu_check;
    }

    /// Keeps one finding per cause: the newest evidence of it.
    pub(crate) fn find(&mut self, finding: Finding) {
        close::keep(&mut self.status.diagnosis, finding);
    }

    /// Turns the phase's step into the outcome of the pass. `limit` is that of the wait the pass ends in.
    pub(crate) fn finish(mut self, step: Step, limit: Option<Limit>) -> Decision {
        // A deleted object that another's finalizer holds rests in `CleaningUp`, and needs no heartbeat.
        let limit = limit.filter(|_| step != Step::Rest);
        if !matches!(step, Step::Wait(_) | Step::Work(_) | Step::Rest) {
            // What the phase wanted to create is not wanted any more: the next one would only have to remove it.
            self.effects.retain(|effect| !effect.creates());
        }
        match step {
            Step::Rest => {}
            Step::Wait(why) | Step::Work(why) => {
                // A verdict's reason stays; only the message of a run without verdict describes the wait.
                if self.status.verdict.is_none() {
                    status::explain(&mut self.status, &why);
                }
                let poll = if queue::is_queued(&self.status) {
                    QUEUE_POLL
                } else if status::is_overdue(&self.status) {
                    OVERDUE_POLL
                } else {
                    SAFETY
                };
                self.look_again_in(limit.map_or(poll, |limit| poll.min(limit.heartbeat)));
                let left = limit.map(|limit| time::until(attendance::deadline(&self.status, &limit), self.now));
                if let Some(left) = left.filter(|left| !left.is_zero()) {
                    self.look_again_in(left.max(Duration::from_millis(100)));
                }
            }
            Step::Go(phase, why) => self.go(phase, &why),
            Step::End(verdict, why) => self.end(verdict, &why),
            Step::Begin(trigger) => self.begin(trigger),
        }
        let redactor = Redactor::new(self.run.spec());
        redactor.redact_status(&mut self.status);
        for event in &mut self.events {
            event.note = redactor.redact_cut(&event.note);
        }
        self.status.state.settled = self.status.phase == Some(Phase::Completed) && !holds_node(&self.status);
        status::summarize(&mut self.status, self.now);
        status::publish(&mut self.status);
        status::fit(&mut self.status);
        self.record_look(limit);
        Decision {
            status: self.status,
            effects: self.effects,
            events: self.events,
            recheck: self.recheck,
            reads: Needs::new(self.reads),
        }
    }

    fn go(&mut self, phase: Phase, why: &Why) {
        let left = self.status.phase;
        if self.status.verdict.is_none() {
            status::explain(&mut self.status, why);
        }
        status::enter(&mut self.status, phase, self.now);
        if phase == Phase::CleaningUp {
            let begins = Why::new(Reason::Running, REMOVING);
            self.condition(condition::CLEANED_UP, false, &begins);
        }
        if phase == Phase::Completed
            && let Some(run) = &mut self.status.run
        {
            run.completed_at.get_or_insert(self.now);
        }
        if publishes_event(left, phase, why) {
            // Another action for each phase: a second Event of the same action and reason loses its text.
            self.note(Event::normal(why.reason, phase.as_str(), why.message.clone()));
        }
        self.look_again_in(SAFETY);
    }

    fn end(&mut self, verdict: Verdict, why: &Why) {
        self.status.verdict = Some(verdict);
        if let Some(environment) = &mut self.status.state.environment {
            environment.digest = Some(environment::digest(environment));
        }
        status::explain(&mut self.status, why);
        let good = matches!(verdict, Verdict::Passed | Verdict::Skipped);
        let summary = format!("{}: {}", verdict.as_str(), why.message);
        self.note(Event {
            warning: !good,
            ..Event::warning(why.reason, "Judge", summary.clone())
        });
        if verdict == Verdict::Error {
            // The reason that ended the run decides its verdict.
            self.find(blamed(&self.status.diagnosis, why));
        }
        self.publish_remedies(good);
        if self.status.state.judged_run.is_some() {
            // It created nothing; what the run before it may have left is looked after from there.
            self.go(Phase::Completed, &Why::new(Reason::RunOver, summary));
        } else {
            self.go(Phase::CleaningUp, &Why::new(Reason::Running, summary));
        }
    }

    /// One event per word: why, and what to do. Of a run that ended well only what may become a fault, such as a GPU that
    /// is slower than its peers.
    fn publish_remedies(&mut self, ended_well: bool) {
        let worth_it = |finding: &&Finding| !ended_well || finding.severity != Severity::Info;
        let mut events: Vec<Event> = Vec::new();
        for finding in self.status.diagnosis.iter().filter(worth_it).take(PUBLISHED) {
            let reason = Word::parse(&finding.cause).unwrap_or(Word::Running);
            let warning = finding.severity != Severity::Info;
            let note = format!("{}; what to do: {}", finding.evidence, finding.remedy);
            match events.iter_mut().find(|event| event.reason == reason) {
                Some(event) => {
                    event.warning |= warning;
                    event.note = format!("{}; {note}", event.note);
                }
                None => events.push(Event {
                    warning,
                    reason,
                    action: "Diagnose".into(),
                    note,
                }),
            }
        }
        for event in events {
            self.note(event);
        }
    }

    fn begin(&mut self, trigger: Trigger) {
        let outages = status::end_gaps(&mut self.status);
        // What the last run left keeps its node until it is removed.
        let left = self
            .status
            .placement
            .clone()
            .filter(|_| self.status.state.leftovers.is_some());
        self.status = status::begin_run(self.run, trigger, self.now);
        if left.is_some() {
            self.status.placement = left;
        }
        // The time of a run that gave way counts for the next one, without the outages of its removal.
        if trigger == Trigger::Preempted {
            self.status.state.unattended_seconds += outages;
        }
        let number = self.status.run.as_ref().map_or(0, |run| run.number);
        let asked = match self.status.state.judged_run {
            Some(judged) => {
                format!("judges the saved trials of run {judged} by the changed gates; nothing is measured")
            }
            None => conclusion::asked(self.run.spec()),
        };
        let why = Why::new(Reason::Running, format!("run {number} begins ({trigger:?}): {asked}"));
        status::explain(&mut self.status, &why);
        if trigger != Trigger::Created {
            self.note(Event::normal(why.reason, "BeginRun", why.message));
        }
    }
}

/// Returns true if a step to another phase is published as an Event: the placement, and everything but the usual course. The
/// status shows each phase, and each Event is a write.
fn publishes_event(left: Option<Phase>, phase: Phase, why: &Why) -> bool {
    match phase {
        Phase::Deploying | Phase::Suspended => true,
        Phase::Sizing => left != Some(Phase::Pending),
        Phase::WaitingForReady => left != Some(Phase::Deploying),
        Phase::CleaningUp => why.reason != Reason::Running,
        Phase::Pending | Phase::Benchmarking | Phase::Evaluating | Phase::Completed => false,
    }
}
