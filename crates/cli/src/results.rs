//! Results of a run: from the status while it is the last one, from the results ConfigMap for any run that is kept.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _};
use perfval_api::{PerfValidation, PerfValidationStatus, TrialOutcome, TrialState};
use perfval_run::build::read_summary;
use perfval_run::names;

use crate::error::Error;
use crate::session::Session;

/// Facts of one run.
#[derive(Debug)]
pub struct RunOutcome {
    /// Object and number, such as `demo/2`.
    pub label: String,
    /// Status of that run. Saved results have only the part that no later phase changes.
    pub status: PerfValidationStatus,
}

impl RunOutcome {
    /// Trials that measured.
    pub fn measured(&self) -> impl Iterator<Item = &TrialState> {
        let measured = |trial: &&TrialState| matches!(trial.outcome, Some(TrialOutcome::Pass | TrialOutcome::Miss));
        self.status.state.trials.iter().filter(measured)
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
    let number = number.parse::<i64>().ok().filter(|_| !name.is_empty());
    let number = number.ok_or_else(|| {
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
        "run {number} of {name} has no saved results: {} lists its runs, and spec.resultsHistoryLimit sets how many are kept; a run \
         that only judged again has none",
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
    let status = object.status.as_ref();
    let Some((status, run)) = status.and_then(|status| status.run.as_ref().map(|run| (status, run))) else {
        return Err(not_run(session, &name));
    };
    match number.filter(|number| *number != run.number) {
        Some(number) => {
            let saved = saved(session, object, number).await?;
            saved.ok_or_else(|| not_saved(session, &name, number))
        }
        None => Ok(RunOutcome {
            label: format!("{name}/{}", run.number),
            status: status.clone(),
        }),
    }
}

/// An earlier run, if its results are saved.
pub async fn saved(session: &Session, object: &PerfValidation, number: i64) -> Result<Option<RunOutcome>, Error> {
    let Some(results) = config_map(session, object, number).await? else {
        return Ok(None);
    };
    let summary = read_summary(&results).map_err(|why| {
        let results = results.name_any();
        Error::BadInput(format!("the results of run {number} ({results}) cannot be read: {why}"))
    })?;
    Ok(Some(RunOutcome {
        label: format!("{}/{number}", object.name_any()),
        status: summary.status,
    }))
}

/// The results ConfigMap of a run.
pub async fn config_map(session: &Session, object: &PerfValidation, number: i64) -> Result<Option<ConfigMap>, Error> {
    named_config_map(session, &config_map_name(object, number)).await
}

/// Name of the results ConfigMap of a run. For the last run it is the name in the status, also if an object was copied
/// or restored with its status and has another UID now.
pub fn config_map_name(object: &PerfValidation, number: i64) -> String {
    let status = object.status.as_ref();
    let is_last = |status: &&PerfValidationStatus| status.run.as_ref().is_some_and(|run| run.number == number);
    let named = status.filter(is_last).and_then(|status| status.results_ref.as_ref());
    named.map_or_else(
        || {
            let id = names::run_id(object.metadata.uid.as_deref().unwrap_or_default(), number);
            names::results(&object.name_any(), &id)
        },
        |named| named.name.clone(),
    )
}

pub async fn named_config_map(session: &Session, name: &str) -> Result<Option<ConfigMap>, Error> {
    let api: Api<ConfigMap> = Api::namespaced(session.client.clone(), &session.namespace);
    let found = api.get_opt(name).await;
    found.map_err(|error| Error::from_call("read ConfigMaps", error))
}
