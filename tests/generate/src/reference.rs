//! docs/reference.md: tables printed from the enums and flags that they describe.

use std::fmt::Write as _;

use clap::CommandFactory as _;
use perfval_api::{Phase, condition};
use perfval_operator::cli::Cli;

use crate::page::section;
use crate::roles;

/// The whole page.
pub fn reference() -> String {
    let mut page = String::from(
        "<!-- Generated from the code: run `just generate`. -->\n# Phases, conditions, flags and rights\n\n[API](api.md) lists the fields, and [Reasons and causes](reasons.md) the words of a status.\n",
    );
    section(
        &mut page,
        "Phases",
        "`status.phase` shows the progress of a run.",
        &["phase", "what happens", "ends"],
        phases(),
    );
    section(
        &mut page,
        "Conditions",
        "`status.conditions`. kstatus reads `Ready`, `Reconciling` and `Stalled`. `observedGeneration` is the generation of the spec that a \
         condition is true of; a spec that was not measured and judged is never `Ready`, `Passed` or `Complete`.",
        &["condition", "true when"],
        conditions(),
    );
    let _ = write!(
        page,
        "\n## Flags of `run`\n\nEach flag has a variable in the environment. The flag takes precedence.\n\n{}",
        flags()
    );
    section(
        &mut page,
        "Permissions",
        "Rights of the roles under `config/rbac`, with the calls that need them. The roles contain no Secrets and no wildcards.",
        &["role", "resource", "verbs", "for"],
        roles::table(),
    );
    page
}

/// The flags as a Markdown table.
fn flags() -> String {
    let cli = Cli::command();
    let run = cli
        .find_subcommand("run")
        .into_iter()
        .flat_map(clap::Command::get_arguments);
    let mut table = String::from("| flag | environment | default | |\n|---|---|---|---|\n");
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
        let (long, env) = (
            flag.get_long().unwrap_or_default(),
            flag.get_env().unwrap_or_default().to_string_lossy(),
        );
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(table, "| `--{long}` | `{env}` | {default} | {help} |");
    }
    table
}

fn phases() -> impl Iterator<Item = [String; 3]> {
    Phase::ALL.iter().map(|phase| {
        let (what, ends) = match phase {
            Phase::Pending => (
                "The operator checks gates, Dynamo's operator, versions and images.",
                "`timeouts.prerequisites`",
            ),
            Phase::Sizing => (
                "The operator counts free GPUs twice and chooses a node.",
                "`timeouts.sizing`",
            ),
            Phase::Deploying => (
                "The operator creates the claim template, Service, model cache and DynamoGraphDeployment.",
                "120 s; with a model cache to fill, `timeouts.modelCache` more",
            ),
            Phase::WaitingForReady => (
                "The components start, and the endpoint answers a request.",
                "`timeouts.workloadReady`, then `timeouts.endpointReady`",
            ),
            Phase::Benchmarking => (
                "AIPerf runs, with one Job per trial.",
                "`timeouts.benchmark` per trial, the soak its own length more",
            ),
            Phase::Evaluating => ("The operator saves the verdict and the results.", "120 s"),
            Phase::CleaningUp => (
                "The operator deletes everything and confirms that it is gone.",
                "`timeouts.cleanup`",
            ),
            Phase::Completed => (
                "The run is over.",
                "a spec that asks for another run, a rerun, or deletion",
            ),
            Phase::Suspended => ("`spec.suspend` prevents the next run.", "`spec.suspend: false`"),
        };
        [phase.as_str().to_owned(), what.to_owned(), ends.to_owned()]
    })
}

fn conditions() -> impl Iterator<Item = [String; 2]> {
    [
        (condition::PASSED, "the verdict is Passed, for this spec"),
        (condition::CLEANED_UP, "everything the run created is confirmed gone"),
        (condition::COMPLETE, "the run is over, it measured and judged what this spec asks for, and its GPUs are back unless the user asked to keep them"),
        (condition::READY, "the run is over, it passed or was skipped, and everything that it created is gone"),
        (condition::RECONCILING, "the run is going on, and nothing has blocked it for ten minutes; while the API server does not let the operator act, or the object reaches a bug of the operator, reason and message contain the call or the error, and what to do"),
        (condition::STALLED, "the run is over and did not pass; or its removal is past `timeouts.cleanup`; or it has been blocked for ten minutes; or the object cannot be parsed"),
    ]
    .into_iter()
    .map(|(name, when)| [name.to_owned(), when.to_owned()])
}
