//! Assertions on a run.

use std::fmt::Display;

use Phase::{Benchmarking, CleaningUp, Completed, Deploying, Evaluating, Pending, Sizing, Suspended, WaitingForReady};
use perfval_api::{Phase, Trigger, Verdict};
use perfval_run::Run;

use super::Story;

/// Every arrow of the machine; `None` is an object that was never looked at.
pub const ARROWS: [(Option<Phase>, Phase); 29] = [
    (None, Pending),
    (None, Suspended),
    (None, CleaningUp),
    (Some(Pending), Sizing),
    (Some(Pending), CleaningUp),
    (Some(Sizing), Deploying),
    (Some(Sizing), CleaningUp),
    (Some(Deploying), WaitingForReady),
    (Some(Deploying), Sizing),
    (Some(Deploying), CleaningUp),
    (Some(WaitingForReady), Benchmarking),
    (Some(WaitingForReady), Sizing),
    (Some(WaitingForReady), Evaluating),
    (Some(WaitingForReady), CleaningUp),
    (Some(Benchmarking), WaitingForReady),
    (Some(Benchmarking), Evaluating),
    (Some(Benchmarking), CleaningUp),
    (Some(Evaluating), CleaningUp),
    (Some(Evaluating), Completed),
    (Some(Evaluating), Pending),
    (Some(CleaningUp), Completed),
    (Some(CleaningUp), Suspended),
    (Some(CleaningUp), Pending),
    (Some(CleaningUp), Evaluating),
    (Some(Completed), Pending),
    (Some(Completed), CleaningUp),
    (Some(Completed), Evaluating),
    (Some(Suspended), Pending),
    (Some(Suspended), CleaningUp),
];

impl Story {
    /// Asserts that the run stayed in its phase, or took an arrow.
    pub(super) fn assert_arrow(&self, before: Option<Phase>) {
        let after = Run::new(&self.object, &self.settings).phase();
        let is_arrow = after.is_some_and(|after| ARROWS.contains(&(before, after)));
        assert!(before == after || is_arrow, "{before:?} → {after:?}");
    }

    /// Asserts verdict and reason; `case` is shown if they differ.
    #[track_caller]
    pub fn assert_verdict(&self, verdict: Option<Verdict>, reason: &str, case: impl Display) {
        let found = (self.verdict(), self.reason());
        assert_eq!(found, (verdict, reason.to_owned()), "{case}");
    }

    /// Asserts that the run ended with an error of this reason.
    #[track_caller]
    pub fn assert_error(&self, reason: &str) {
        self.assert_verdict(Some(Verdict::Error), reason, "");
    }

    /// Asserts number and trigger of the run.
    #[track_caller]
    pub fn assert_run(&self, number: i64, trigger: Trigger) {
        let run = self.status().run.expect("a run");
        assert_eq!((run.number, run.trigger), (number, trigger));
    }

    /// Steps to the end of the run, and asserts that it passed.
    #[track_caller]
    pub fn assert_passes(&mut self) {
        self.until(Phase::Completed);
        assert_eq!(self.verdict(), Some(Verdict::Passed), "{}", self.reason());
    }

    /// Steps to the end of the run, and asserts that it is an error of this reason.
    #[track_caller]
    pub fn assert_ends_in(&mut self, reason: &str) {
        self.until(Phase::Completed).assert_error(reason);
    }

    /// Asserts that the run is in this phase for this reason.
    #[track_caller]
    pub fn assert_at(&self, phase: Phase, reason: &str) {
        assert_eq!((self.phase(), self.reason()), (Some(phase), reason.to_owned()));
    }

    /// Asserts that the message contains this text.
    #[track_caller]
    pub fn assert_message(&self, text: &str) {
        assert!(self.message().contains(text), "{}", self.message());
    }
}
