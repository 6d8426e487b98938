//! Results of a run: from the status while it is the last one, from the results ConfigMap for any run that is kept.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _};
use perfval_api::{
    Environment, GateStatus, Metrics, PerfValidation, PerfValidationStatus, PlacementStatus, TrialOutcome, TrialState,
    Verdict,
};
use perfval_run::names;
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;
use crate::session::Session;

/// Key of the summary in a results ConfigMap.
const SUMMARY: &str = perfval_run::build::SUMMARY;

/// Facts of one run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub struct RunOutcome {
    /// Object and number, such as `demo/2`.
    #[serde(skip)]
    pub label: String,
    /// Verdict of the run.
    pub verdict: Option<Verdict>,
    /// Reason of the verdict.
    pub reason: Option<String>,
    /// Headline numbers of the deciding trial.
    pub metrics: Option<Metrics>,
    /// Each gate, judged on the deciding trial.
    pub gates: Vec<GateStatus>,
    /// Every trial.
    pub trials: Vec<TrialState>,
    /// What it ran on.
    pub environment: Option<Environment>,
    /// The node and GPUs.
    pub placement: Option<PlacementStatus>,
}

impl RunOutcome {
    /// Outcome of the current or last run, from the status.
    fn from_status(object: &PerfValidation) -> Option<Self> {
        let status = object.status.clone()?;
        let number = status.run.as_ref()?.number;
        Some(Self {
            label: format!("{}/{number}", object.name_any()),
            verdict: status.verdict,
            reason: status.reason,
            metrics: status.state.metrics,
            gates: status.gates,
            trials: status.state.trials,
            environment: status.state.environment,
            placement: status.placement,
        })
    }

    /// Trials that measured.
    pub fn measured(&self) -> impl Iterator<Item = &TrialState> {
        let measured = |trial: &&TrialState| matches!(trial.outcome, Some(TrialOutcome::Pass | TrialOutcome::Miss));
        self.trials.iter().filter(measured)
    }
}

/// The run that `NAME` or `NAME/RUN` names.
pub async fn find(session: &Session, text: &str) -> Result<RunOutcome, Error> {
    let (name, number) = named(Some(text))?;
    let object = session.pick(name).await?;
    read_run(session, &object, number).await
}

/// Name and run in a `NAME` or `NAME/RUN`.
pub fn named(text: Option<&str>) -> Result<(Option<&str>, Option<i64>), Error> {
    let Some((name, number)) = text.and_then(|text| text.split_once('/')) else {
        return Ok((text, None));
    };
    let number = number.parse().map_err(|_| {
        let text = text.unwrap_or_default();
        Error::BadInput(format!(
            "{text} is no run: write NAME, or NAME/RUN with the number of a run"
        ))
    })?;
    Ok((Some(name), Some(number)))
}

/// There is nothing of an earlier run.
pub fn not_saved(session: &Session, name: &str, number: i64) -> Error {
    Error::BadInput(format!(
        "run {number} of {name} has no saved results: {} lists its runs, and spec.resultsHistoryLimit sets how many are kept",
        session.command("history", name)
    ))
}

/// There is nothing of any run.
pub fn not_run(session: &Session, name: &str) -> Error {
    Error::BadInput(format!(
        "{name} has not run yet: {} shows the reason",
        session.command("describe", name)
    ))
}

/// The run of a number; the last one without.
pub async fn read_run(session: &Session, object: &PerfValidation, number: Option<i64>) -> Result<RunOutcome, Error> {
    let name = object.name_any();
    let last = object
        .status
        .as_ref()
        .and_then(|status| status.run.as_ref())
        .map(|run| run.number);
    let Some(last) = last else {
        return Err(not_run(session, &name));
    };
    match number {
        None => {}
        Some(number) if number == last => {}
        Some(number) => return saved(session, object, number).await,
    }
    RunOutcome::from_status(object).ok_or_else(|| not_run(session, &name))
}

/// The results ConfigMap of a run. For the last run it is the ConfigMap whose name is in the status, also if an
/// object was copied or restored with its status and has another UID now.
pub async fn config_map(session: &Session, object: &PerfValidation, number: i64) -> Result<Option<ConfigMap>, Error> {
    let status = object.status.as_ref();
    let is_last = |status: &&PerfValidationStatus| status.run.as_ref().is_some_and(|run| run.number == number);
    let named = status.filter(is_last).and_then(|status| status.results_ref.as_ref());
    let name = named.map_or_else(
        || {
            let id = names::run_id(object.metadata.uid.as_deref().unwrap_or_default(), number);
            names::results(&object.name_any(), &id)
        },
        |named| named.name.clone(),
    );
    let api: Api<ConfigMap> = Api::namespaced(session.client.clone(), &session.namespace);
    let found = api.get_opt(&name).await;
    found.map_err(|error| Error::from_call("read ConfigMaps", error))
}

async fn saved(session: &Session, object: &PerfValidation, number: i64) -> Result<RunOutcome, Error> {
    let name = object.name_any();
    let Some(results) = config_map(session, object, number).await? else {
        return Err(not_saved(session, &name, number));
    };
    let mut outcome = read(&results).map_err(|why| {
        let results = results.name_any();
        Error::BadInput(format!("the results of run {number} ({results}) cannot be read: {why}"))
    })?;
    outcome.label = format!("{name}/{number}");
    Ok(outcome)
}

/// The summary of a results ConfigMap, also if another version wrote it.
fn read(results: &ConfigMap) -> Result<RunOutcome, String> {
    let text = results.data.as_ref().and_then(|data| data.get(SUMMARY));
    let text = text.ok_or("it has no summary.json; another version of the operator wrote it")?;
    let value: Value = serde_json::from_str(text).map_err(|error| format!("summary.json is no JSON: {error}"))?;
    serde_json::from_value(value)
        .map_err(|error| format!("summary.json is of another version than this program: {error}"))
}
