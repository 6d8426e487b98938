//! A run that judges the saved trials of an earlier one by changed gates. It creates nothing and measures nothing.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use perfval_api::{PerfValidationStatus, Phase, Reason, Trigger, Why};
use perfval_sizing::Seen;
use perfval_verdict::rejudge::rejudge;
use perfval_verdict::saved::SavedRun;

use crate::build;
use crate::decision::Event;
use crate::interruption;
use crate::norms::norms;
use crate::pass::{Pass, Step};
use crate::secret::Redactor;
use crate::{status, time};

/// Pauses between two reads of results that cannot be read.
const SOON: Duration = Duration::from_secs(2);
const SELDOM: Duration = Duration::from_mins(1);

/// Judges the saved trials; if they do not suffice, the next run measures. While they cannot be read, only a trigger
/// of a new measurement ends the wait.
pub(super) fn step(pass: &mut Pass<'_>, judged_run: i64) -> Step {
    let norms = match norms(pass) {
        Seen::Present(norms) => norms,
        unread => return wait(pass, judged_run, unread.unknown().unwrap_or("no answer")),
    };
    let saved = match &pass.seen.saved_run {
        Seen::Present(results) => read(results, pass.run.status()),
        Seen::Absent => Err("the ConfigMap of status.resultsRef is gone".to_owned()),
        unread => return wait(pass, judged_run, unread.unknown().unwrap_or("no answer")),
    };
    let redactor = Redactor::new(pass.run.spec());
    let judged = saved.and_then(|mut saved| {
        saved
            .records
            .values_mut()
            .for_each(|record| redactor.redact_record(record));
        rejudge(pass.run.spec(), &mut pass.status, &saved, &norms, pass.now)
    });
    match judged {
        Ok((verdict, why)) => {
            let message = format!(
                "{} (trials of run {judged_run}, judged again; nothing was measured)",
                why.message
            );
            Step::End(verdict, Why { message, ..why })
        }
        Err(why) => measure(pass, judged_run, &why),
    }
}

fn wait(pass: &mut Pass<'_>, judged_run: i64, why: &str) -> Step {
    let next = interruption::next_trigger(pass.run).filter(|_| !pass.run.spec().suspend);
    if let Some(trigger @ (Trigger::Rerun | Trigger::SpecChanged)) = next {
        return Step::Begin(trigger);
    }
    let began = status::phase_started_at(&pass.status).unwrap_or(pass.now);
    pass.look_again_in((time::until(pass.now, began) / 10).clamp(SOON, SELDOM));
    Step::wait(
        Reason::Running,
        format!("the saved results of run {judged_run} are not judged yet: {why}"),
    )
}

/// The saved trials of a run, if they are still what it saved.
fn read(results: &ConfigMap, status: &PerfValidationStatus) -> Result<SavedRun, String> {
    let expected = status.results_ref.as_ref().map(|results| results.sha256.as_str());
    if expected != Some(build::results_sha256(results).as_str()) {
        return Err("the ConfigMap of status.resultsRef was changed: its SHA-256 is another one".to_owned());
    }
    let summary = results.data.iter().flatten().find(|(key, _)| *key == build::SUMMARY);
    let (_, summary) = summary.ok_or("the ConfigMap of status.resultsRef has no summary")?;
    let saved: SavedRun =
        serde_json::from_str(summary).map_err(|error| format!("the summary cannot be read: {error}"))?;
    let packed = results.binary_data.iter().flatten();
    saved.with(packed.map(|(key, bytes)| (key.as_str(), bytes.0.as_slice())))
}

/// Ends this run without a verdict: the next one measures, once it may.
fn measure(pass: &mut Pass<'_>, judged_run: i64, why: &str) -> Step {
    if pass.run.spec().suspend {
        return Step::Go(Phase::CleaningUp, interruption::suspension());
    }
    pass.note(Event::warning(
        Reason::Interrupted,
        "Judge",
        format!("run {judged_run} cannot be judged again, so the next run measures: {why}"),
    ));
    Step::Begin(Trigger::SpecChanged)
}
