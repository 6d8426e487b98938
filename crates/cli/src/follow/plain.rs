//! One line for each change: for logs of pipelines, pipes and terminals that cannot move their cursor.

use chrono::{DateTime, Utc};
use perfval_api::text::number_of;
use perfval_api::{PerfValidation, PerfValidationStatus, Phase, TrialProgress};
use perfval_verdict::history::run_end;

use crate::draw::span;

/// Lines that were printed last.
#[derive(Debug, Default)]
pub struct Lines {
    began: Option<DateTime<Utc>>,
    last: Option<String>,
}

impl Lines {
    /// The line for what changed; empty if nothing did.
    pub fn changed(&mut self, object: &PerfValidation, now: DateTime<Utc>) -> String {
        let status = object.status.as_ref();
        let phase = status.and_then(|status| status.phase);
        let word = phase.map_or("-", Phase::as_str);
        let message = status.and_then(message);
        let message = message.unwrap_or_else(|| "waiting for the operator".to_owned());
        let progress = status.and_then(|status| status.state.progress.as_ref());
        let progress = progress.map_or_else(String::new, |progress| format!("; {}", trial_text(progress)));
        let line = format!("{word:<16} {message}{progress}");
        if self.last.as_ref() == Some(&line) {
            return String::new();
        }
        let run = status.and_then(|status| status.run.as_ref());
        let began = run.map(|run| run.started_at).or(self.began).unwrap_or(now);
        self.began = Some(began);
        let end = status.and_then(run_end).unwrap_or(now);
        let text = format!("{:>7}  {line}\n", span((end - began).num_seconds().max(0)));
        self.last = Some(line);
        text
    }
}

/// Message of a run, with the obstacle that keeps the operator from acting on it.
pub fn message(status: &PerfValidationStatus) -> Option<String> {
    let message = status.message.clone()?;
    Some(match &status.state.blocked {
        Some(blocked) => format!("{message}; blocked, {}: {}", blocked.reason, blocked.message),
        None => message,
    })
}

/// Progress of a trial, in words.
pub fn trial_text(progress: &TrialProgress) -> String {
    let done = match progress.expected {
        Some(expected) => format!("{} of {expected} requests", progress.requests),
        None => format!("{} requests", progress.requests),
    };
    let percent = progress
        .shown
        .percent
        .map_or_else(String::new, |percent| format!(" ({percent} %)"));
    let rate = progress
        .shown
        .output_tokens_per_second
        .map_or_else(String::new, |rate| format!(", {rate} tok/s"));
    let errors = number_of(progress.failed_requests, "error");
    format!("{done}{percent}, {errors}{rate}")
}
