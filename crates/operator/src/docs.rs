//! docs/reference.md: tables printed from the very enums and flags they describe.

mod api;
mod causes;
mod metrics;
mod troubleshooting;

use std::fmt::Write as _;

use perfval_api::{Phase, Reason, TrialRule, TrialsSpec, Verdict, condition};
use perfval_verdict::trials::{DOCUMENTED, odds};

use crate::blocked::BLOCKED;
use crate::cli::RunArgs;
use crate::rbac;

pub use api::api;
pub use causes::causes;
pub use metrics::metrics;
pub use troubleshooting::troubleshooting;

/// The whole page.
pub fn reference() -> String {
    let mut page = String::from(
        "<!-- Generated from the code: run `just generate`. -->\n# Reference\n\nFields: `kubectl explain perfvalidation.spec --recursive`.\n",
    );
    section(
        &mut page,
        "Phases",
        "`status.phase`: where a run is.",
        &["phase", "what happens", "ends"],
        phases(),
    );
    section(
        &mut page,
        "Verdicts",
        "`status.verdict`: what a run found.",
        &["verdict", "meaning"],
        verdicts(),
    );
    section(
        &mut page,
        "Reasons",
        "`status.reason`, conditions and events. Never reworded once released. What you see of each, and what to do: \
         [Troubleshooting](troubleshooting.md#by-reason).",
        &["reason", "meaning, and what to do"],
        Reason::ALL
            .iter()
            .map(|reason| [reason.as_str().to_owned(), one_line(reason.explanation())]),
    );
    section(
        &mut page,
        "Conditions",
        "`status.conditions`. kstatus reads `Ready`, `Reconciling` and `Stalled`. `observedGeneration` is the generation of the spec that a \
         condition is true of; a spec that was not measured and judged is never `Ready`, `Passed` or `Complete`.",
        &["condition", "true when"],
        conditions(),
    );
    section(
        &mut page,
        "Trial rule",
        &trial_rule(),
        &[
            "true pass rate",
            "passed",
            "failed",
            "inconclusive",
            "trials, mean",
            "`Single` fails",
        ],
        error_table(),
    );
    let _ = write!(
        page,
        "\n## Flags of `run`\n\nEach flag has a twin in the environment; the flag wins.\n\n{}",
        RunArgs::table()
    );
    section(
        &mut page,
        "Permissions",
        "What the roles under `config/rbac` allow, and which call needs it. No secrets, no wildcards.",
        &["role", "resource", "verbs", "for"],
        rbac::table(),
    );
    page
}

fn section<const N: usize>(
    page: &mut String,
    title: &str,
    about: &str,
    head: &[&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) {
    let _ = write!(
        page,
        "\n## {title}\n\n{about}\n\n| {} |\n|{}\n",
        head.join(" | "),
        "---|".repeat(N)
    );
    for row in rows {
        let _ = writeln!(page, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
}

fn phases() -> impl Iterator<Item = [String; 3]> {
    Phase::ALL.into_iter().map(|phase| {
        let (what, ends) = match phase {
            Phase::Pending => (
                "prerequisites are checked: gates, Dynamo's operator, versions, images",
                "`timeouts.prerequisites`",
            ),
            Phase::Sizing => (
                "free GPUs are counted twice; a node and its GPUs are chosen",
                "`timeouts.sizing`",
            ),
            Phase::Deploying => (
                "claim template, Service, model cache and DynamoGraphDeployment are created",
                "120 s; with a model cache to fill, `timeouts.modelCache` more",
            ),
            Phase::WaitingForReady => (
                "components start; a real completion is asked for",
                "`timeouts.workloadReady`, then `timeouts.endpointReady`",
            ),
            Phase::Benchmarking => (
                "AIPerf runs, one Job per trial",
                "`timeouts.benchmark` per trial, the soak its own length more",
            ),
            Phase::Evaluating => ("verdict and results are saved", "120 s"),
            Phase::CleaningUp => ("everything is deleted, and confirmed gone", "`timeouts.cleanup`"),
            Phase::Completed => (
                "the run is over",
                "a spec that asks for another run, a rerun, or deletion",
            ),
            Phase::Suspended => ("`spec.suspend` holds the next run back", "`spec.suspend: false`"),
        };
        [phase.as_str().to_owned(), what.to_owned(), ends.to_owned()]
    })
}

fn verdicts() -> impl Iterator<Item = [String; 2]> {
    [
        Verdict::Passed,
        Verdict::Failed,
        Verdict::Inconclusive,
        Verdict::Skipped,
        Verdict::Error,
    ]
    .into_iter()
    .map(|verdict| {
        let meaning = match verdict {
            Verdict::Passed => "measured, and every enforced gate was met",
            Verdict::Failed => "measured, and below a gate",
            Verdict::Inconclusive => "measured, but not to be trusted",
            Verdict::Skipped => "nothing to judge",
            Verdict::Error => "could not be measured",
        };
        [verdict.as_str().to_owned(), meaning.to_owned()]
    })
}

fn trial_rule() -> String {
    let spec = TrialsSpec::default();
    format!(
        "What `trials.rule: Sequential` makes of a deployment that passes each trial with the given probability, computed exactly for \
         the default of `errorPercent: {}` and `max: {}`. The last column is what one trial alone would do. The whole curve, and what \
         happens near a gate on an average: [How a verdict comes about](verdict.md#what-the-rule-makes-of-a-pass-rate).",
        spec.error_percent, spec.max
    )
}

fn error_table() -> impl Iterator<Item = [String; 6]> {
    let single = TrialsSpec {
        rule: TrialRule::Single,
        ..TrialsSpec::default()
    };
    DOCUMENTED.into_iter().map(move |(rate, what)| {
        let (run, one) = (
            odds(&TrialsSpec::default(), 1.0 - rate, 0.0),
            odds(&single, 1.0 - rate, 0.0),
        );
        [
            format!("{rate:.2}: {what}"),
            format!("{:.3}", run.passed),
            format!("{:.3}", run.failed),
            format!("{:.3}", run.inconclusive),
            format!("{:.1}", run.trials),
            format!("{:.3}", one.failed),
        ]
    })
}

fn conditions() -> impl Iterator<Item = [String; 2]> {
    [
        (condition::PREREQUISITES_MET, "Dynamo is served, and versions and images fit"),
        (condition::PLACED, "a node and its GPUs are chosen"),
        (condition::WORKLOAD_READY, "every worker and the frontend are ready, each worker with a GPU of its own"),
        (condition::ENDPOINT_READY, "a real completion came back"),
        (condition::PASSED, "the verdict is Passed, for this spec"),
        (condition::CLEANED_UP, "everything the run created is confirmed gone"),
        (condition::COMPLETE, "the run is over, and it measured and judged what this spec asks for"),
        (condition::READY, "the run is over, it passed or was skipped, and everything that it created is gone"),
        (condition::RECONCILING, "the run is going on, and nothing has blocked it for ten minutes"),
        (condition::STALLED, "the run is over and did not pass; or its removal is past `timeouts.cleanup`; or it has been `Blocked` for ten minutes; or the object cannot be parsed"),
        (BLOCKED, "the API server does not let the operator act, the object reaches a bug of the operator, or this version cannot parse it; reason and message contain the call or the error, and what to do. Absent otherwise"),
    ]
    .into_iter()
    .map(|(name, when)| [name.to_owned(), when.to_owned()])
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
