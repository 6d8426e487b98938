//! Assertions on a run.

use std::fmt::Display;

use perfval_api::{Phase, Trigger, Verdict};

use super::Story;

impl Story {
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
