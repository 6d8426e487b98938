//! docs/reference.md: tables printed from the enums and flags that they describe.

use std::fmt::Write as _;

use clap::CommandFactory as _;
use perfval_api::{Phase, condition, meta};
use perfval_operator::cli::OperatorCli;

use crate::page::section;
use crate::roles;

/// The whole page.
pub fn reference() -> String {
    let mut page = String::from(
        "<!-- Generated from the code: run `just generate`. -->\n# Phases, conditions, labels, flags, rights\n",
    );
    section(
        &mut page,
        "Phases",
        "Values of `status.phase`.",
        &["phase", "what happens", "ends"],
        phases(),
    );
    section(
        &mut page,
        "Conditions",
        "kstatus reads `Ready`, `Reconciling` and `Stalled`. A condition is about the spec of its `observedGeneration`.",
        &["condition", "true when"],
        conditions(),
    );
    section(
        &mut page,
        "Labels and annotations",
        "You set the first two on a `PerfValidation`, the operator the others.",
        &["name", "kind", "meaning"],
        metadata(),
    );
    let _ = write!(
        page,
        "\n## Flags of `run`\n\nEach flag has a variable: `--log-format` is `PERFVAL_LOG_FORMAT`. The flag takes precedence.\n\n{}",
        flags()
    );
    section(
        &mut page,
        "Permissions",
        "Roles `perfvalidation-operator-…` under `config/rbac`, where comments give the reasons. `system:basic-user` permits the SelfSubjectAccessReviews.",
        &["role", "verbs", "resources"],
        roles::table(),
    );
    page
}

/// The flags as a Markdown table.
fn flags() -> String {
    let cli = OperatorCli::command();
    let run = cli
        .find_subcommand("run")
        .into_iter()
        .flat_map(clap::Command::get_arguments);
    let mut table = String::from("| flag | default | |\n|---|---|---|\n");
    for flag in run.filter(|flag| flag.get_env().is_some()) {
        let default: Vec<_> = flag
            .get_default_values()
            .iter()
            .map(|value| value.to_string_lossy())
            .collect();
        let default = if default.is_empty() {
            "–".to_owned()
        } else {
            format!("`{}`", default.join(","))
        };
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(
            table,
            "| `--{}` | {default} | {help} |",
            flag.get_long().unwrap_or_default()
        );
    }
    table
}

fn phases() -> impl Iterator<Item = [String; 3]> {
    Phase::ALL.iter().map(|phase| {
        let (what, ends) = match phase {
            Phase::Pending => (
                "Check of namespace, gates, Dynamo, versions and images.",
                "`timeouts.prerequisites`",
            ),
            Phase::Sizing => ("Two counts of free GPUs, and choice of a node.", "`timeouts.sizing`"),
            Phase::Deploying => (
                "Creation of the claim template, Service, model cache and DynamoGraphDeployment.",
                "120 s, plus `timeouts.modelCache` to fill a cache",
            ),
            Phase::WaitingForReady => (
                "Start of the components, and first answer.",
                "`timeouts.workloadReady`, then `timeouts.endpointReady`",
            ),
            Phase::Benchmarking => (
                "One AIPerf Job per trial.",
                "`timeouts.benchmark` per trial, plus the soak's length",
            ),
            Phase::Evaluating => ("Saving of verdict and results.", "120 s"),
            Phase::CleaningUp => ("Confirmed deletion of everything.", "`timeouts.cleanup`"),
            Phase::Completed => ("The run is over.", "another run, or deletion"),
            Phase::Suspended => ("No next run.", "`spec.suspend: false`"),
        };
        [phase.as_str().to_owned(), what.to_owned(), ends.to_owned()]
    })
}

fn conditions() -> impl Iterator<Item = [String; 2]> {
    [
        (condition::PASSED, "the verdict is Passed"),
        (condition::CLEANED_UP, "all objects of the run are confirmed gone"),
        (condition::COMPLETE, "the run is over, and its GPUs are free, or kept on request"),
        (condition::READY, "the run passed or was skipped, and its objects are gone"),
        (condition::RECONCILING, "the run is in progress, or blocked for less than ten minutes"),
        (condition::STALLED, "the run did not pass, its removal is past `timeouts.cleanup`, it was blocked for ten minutes, or the object cannot be parsed"),
    ]
    .into_iter()
    .map(|(name, when)| [name.to_owned(), when.to_owned()])
}

fn metadata() -> impl Iterator<Item = [String; 3]> {
    [
        (meta::RERUN, "annotation", "a new value starts a new run"),
        (meta::NO_CLEANUP, "annotation", "`true` keeps a run's objects and GPUs"),
        (
            meta::DUE_REASON,
            "annotation",
            "reason for which a policy's node was due",
        ),
        (
            meta::ERRORS_BEFORE,
            "annotation",
            "earlier runs in a row that measured nothing",
        ),
        (meta::POLICY_LABEL, "label", "policy of a validation"),
        (meta::NODE_LABEL, "label", "its node, by hostname"),
        (meta::NAME_LABEL, "label", "validation of a run's object"),
        (meta::RUN_LABEL, "label", "id of the run"),
        (meta::FINALIZER, "finalizer", "stays until the objects are gone"),
    ]
    .into_iter()
    .map(|(name, kind, meaning)| [format!("`{name}`"), kind.to_owned(), meaning.to_owned()])
}
