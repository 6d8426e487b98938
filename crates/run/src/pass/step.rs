use kube::core::{Resource, ResourceExt as _};
use perfval_api::{Phase, Reason, Trigger, Verdict, Why};
use perfval_sizing::Seen;

/// Result of a phase's step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Another component has to act first; the phase's time limit applies.
    Wait(Why),
    /// The operator itself has something in hand; the time limit applies, plus a grace.
    Work(Why),
    /// On to another phase.
    Go(Phase, Why),
    /// The run has its verdict; what it created is removed next.
    End(Verdict, Why),
    /// A new run begins.
    Begin(Trigger),
    /// Nothing to do until the user acts.
    Rest,
}

impl Step {
    pub(crate) fn wait(reason: Reason, message: impl Into<String>) -> Self {
        Self::Wait(Why::new(reason, message))
    }

    pub(crate) fn work(reason: Reason, message: impl Into<String>) -> Self {
        Self::Work(Why::new(reason, message))
    }

    pub(crate) fn go(phase: Phase, reason: Reason, message: impl Into<String>) -> Self {
        Self::Go(phase, Why::new(reason, message))
    }

    pub(crate) fn error(reason: Reason, message: impl Into<String>) -> Self {
        Self::End(Verdict::Error, Why::new(reason, message))
    }

    /// Waits for something that could not be read. Its message is `what`, and why.
    pub(crate) fn unread<T>(reason: Reason, what: &str, part: &Seen<T>) -> Self {
        Self::wait(reason, format!("{what}: {}", part.unknown().unwrap_or("no answer")))
    }

    /// An object that the run needs has a name that is taken; its content is not read.
    pub(crate) fn name_taken(kind: &str, taken: &impl Resource) -> Self {
        let name = taken.name_any();
        let message = format!("{kind} {name} belongs to another owner: remove it, then run again");
        Self::error(Reason::NameTaken, message)
    }
}
