//! Facts of one run from any source.

use k8s_openapi::api::core::v1::ConfigMap;
use perfval_api::{Gate, PerfValidation, PerfValidationSpec, PerfValidationStatus, TrialState};
use perfval_run::build::{SHA256, SUMMARY, Summary, read_summary, results_sha256};
use perfval_run::secret::Redactor;
use perfval_verdict::frame::{Outcome, Payload};
use perfval_verdict::gate::Share;
use perfval_verdict::judge::judge;
use perfval_verdict::requests::RequestTimes;
use perfval_verdict::saved::{MOST_TRIALS, recorded, trial_number};
use perfval_verdict::trial::Evidence;
use serde_json::Value;

use crate::error::Error;

/// Keys of a results ConfigMap that list trials with fewer samples, and trials that did not fit.
const GAPS: [(&str, &str); 2] = [
    ("thinned.txt", "Not every sample is in the results"),
    ("omitted.txt", "Not in the results"),
];

/// A file with results of one trial, for [`RunReport::from_exports`](crate::RunReport::from_exports).
#[derive(Clone, Debug)]
pub struct Export<'a> {
    /// Origin of the record, for people.
    pub name: &'a str,
    /// AIPerf's `profile_export_aiperf.json`, or a payload of the runner; also as gzip.
    pub bytes: &'a [u8],
    /// Times from AIPerf's record of each request, if it is at hand.
    pub requests: Option<RequestTimes>,
}

/// Report of one run.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    /// Spec of the run; not in a results ConfigMap.
    pub(crate) spec: Option<PerfValidationSpec>,
    pub(crate) status: PerfValidationStatus,
    pub(crate) trials: Vec<Trial>,
    pub(crate) saved: Option<SavedResults>,
    /// True if the spec changed after the run began, so that it is another one than the run's.
    pub(crate) edited: bool,
    /// Notes that a reader must see before believing the rest.
    pub(crate) notes: Vec<String>,
}

/// One trial, with its measurements if they are there.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub status: TrialState,
    pub payload: Option<Payload>,
    /// The file that it was read from.
    pub from: Option<String>,
    /// Times of its single requests, if they are recorded.
    pub requests: Option<RequestTimes>,
}

/// The results ConfigMap.
#[derive(Clone, Debug)]
pub(crate) struct SavedResults {
    pub name: String,
    /// Digest over what it holds now.
    pub sha256: String,
}

impl Facts {
    /// Report of the current or last run of an object, with its results ConfigMap. Without one (none yet, or deleted)
    /// there are only the numbers of the status, and the charts are placeholders.
    pub fn new(object: &PerfValidation, results: Option<&ConfigMap>) -> Result<Self, Error> {
        let mut facts = Self::from_object(object);
        let status = object.status.clone().unwrap_or_default();
        let Some(run) = &status.run else {
            return Err(Error::NoRun { name: facts.title() });
        };
        facts.edited = object.metadata.generation.is_some_and(|now| now != run.generation);
        if facts.edited {
            facts
                .notes
                .push("The spec changed after this run began: gates and manifest are the current ones.".to_owned());
        }
        if let Some(results) = results {
            let saved = summary(results)?.status.run.map_or(0, |run| run.number);
            if saved != status.state.judged_run.unwrap_or(run.number) {
                let (name, current) = (Error::name_of(results), run.number);
                return Err(Error::AnotherRun { name, saved, current });
            }
            facts.saved = Some(facts.check(results, status.results_ref.as_ref().map(|named| named.sha256.as_str())));
        } else if let Some(named) = &status.results_ref {
            facts.notes.push(format!(
                "The results ConfigMap {} is not here: there are the numbers of the status, and nothing over time.",
                named.name
            ));
        }
        facts.trials = trials(&status.state.trials, results);
        facts.status = status;
        facts.redact();
        facts.note_gaps(results);
        Ok(facts)
    }

    /// Report of a ConfigMap alone: of an earlier run, or of an object that is gone. The manifest and the history are not
    /// in it.
    pub fn from_results(results: &ConfigMap) -> Result<Self, Error> {
        let Summary { object, status } = summary(results)?;
        let unnamed = || Error::results(results, format!("{SUMMARY} has no object.name"));
        let count = status.state.trials.len();
        if count > MOST_TRIALS {
            let why = format!("{SUMMARY} has {count} trials, more than any run");
            return Err(Error::results(results, why));
        }
        let mut facts = Self {
            namespace: object.namespace,
            name: object.name.ok_or_else(unnamed)?,
            trials: trials(&status.state.trials, Some(results)),
            status,
            ..Self::default()
        };
        let annotated = results.metadata.annotations.as_ref().and_then(|all| all.get(SHA256));
        facts.saved = Some(facts.check(results, annotated.map(String::as_str)));
        facts.redact();
        facts.note_gaps(Some(results));
        Ok(facts)
    }

    /// Report of AIPerf's exports, judged by the object's spec. Gates with scaling use `share`.
    pub fn from_exports(object: &PerfValidation, share: Option<Share>, exports: &[Export<'_>]) -> Result<Self, Error> {
        let mut payloads: Vec<Payload> = exports.iter().map(|export| recorded(export.bytes)).collect();
        let redactor = Redactor::new(&object.spec);
        for payload in &mut payloads {
            redactor.redact_record(&mut payload.record);
        }
        let records: Vec<_> = (payloads.iter())
            .map(|payload| Evidence::new(&payload.record, Share::UNSCALED))
            .collect();
        // No clock: an unrecorded time is the epoch, and is shown as unknown.
        let judgement = judge(object, share, &records, chrono::DateTime::UNIX_EPOCH);
        let mut facts = Self::from_object(object);
        facts.status = PerfValidationStatus {
            verdict: Some(judgement.verdict),
            reason: Some(judgement.reason.as_str().to_owned()),
            message: Some(judgement.message),
            ..judgement.status
        };
        facts.trials = (facts.status.state.trials.iter().zip(payloads).zip(exports))
            .map(|((status, payload), export)| Trial {
                requests: export.requests.clone().or_else(|| payload.requests.clone()),
                status: status.clone(),
                payload: Some(payload),
                from: Some(export.name.to_owned()),
            })
            .collect();
        facts.note_gaps(None);
        if facts.trials.len() < exports.len() {
            facts.notes.push(format!(
                "{} of {} exports were judged: the trial rule had decided by then.",
                facts.trials.len(),
                exports.len()
            ));
        }
        Ok(facts)
    }

    fn from_object(object: &PerfValidation) -> Self {
        Self {
            namespace: object.metadata.namespace.clone(),
            name: object.metadata.name.clone().unwrap_or_else(|| "unnamed".to_owned()),
            spec: Some(object.spec.clone()),
            ..Self::default()
        }
    }

    /// Hides secrets in the texts of this run.
    pub(crate) fn redactor(&self) -> Redactor {
        self.spec.as_ref().map(Redactor::new).unwrap_or_default()
    }

    fn redact(&mut self) {
        let redactor = self.redactor();
        let payloads = self.trials.iter_mut().filter_map(|trial| trial.payload.as_mut());
        payloads.for_each(|payload| redactor.redact_record(&mut payload.record));
        redactor.redact_status(&mut self.status);
    }

    /// `namespace/name`.
    pub(crate) fn title(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }

    /// The gate of that name in the spec.
    pub(crate) fn gate(&self, name: &str) -> Option<&Gate> {
        self.spec.as_ref()?.gates.iter().find(|gate| gate.name == name)
    }

    /// Compares the content with the digest of the operator.
    fn check(&mut self, results: &ConfigMap, expected: Option<&str>) -> SavedResults {
        let saved = SavedResults {
            name: results.metadata.name.clone().unwrap_or_default(),
            sha256: results_sha256(results),
        };
        if expected.is_some_and(|expected| expected != saved.sha256) {
            self.notes.push(format!(
                "ConfigMap {} was changed after it was written: its SHA-256 is {}, and {} was recorded.",
                saved.name,
                saved.sha256,
                expected.unwrap_or_default()
            ));
        }
        saved
    }

    /// Notes measurements that are not in this report.
    fn note_gaps(&mut self, results: Option<&ConfigMap>) {
        let note = |trial: &Trial| {
            let (number, unread) = (trial.status.number, trial.requests.as_ref()?.unread);
            let what = "lines of AIPerf's record of requests that are not understood, and not drawn";
            (unread > 0).then(|| format!("Trial {number}: {what}: {unread}."))
        };
        self.notes.extend(self.trials.iter().filter_map(note));
        let data = results.and_then(|results| results.data.as_ref());
        let listed = |(key, what): (&str, &str)| {
            let lines = data?.get(key)?.trim().replace('\n', "; ");
            Some(format!("{what}: {lines}."))
        };
        self.notes.extend(GAPS.into_iter().filter_map(listed));
    }
}

impl Trial {
    pub fn report(&self) -> Option<&perfval_verdict::aiperf::Report> {
        match &self.payload.as_ref()?.record.outcome {
            Outcome::Report(report) => Some(report),
            Outcome::Failure(_) => None,
        }
    }

    /// A value of AIPerf's export, by its path.
    pub fn export(&self, path: &[&str]) -> Option<String> {
        let export: Value = serde_json::from_str(self.payload.as_ref()?.aiperf.as_ref()?.get()).ok()?;
        let found = path.iter().try_fold(&export, |value, key| value.get(key))?;
        found.as_str().map(str::to_owned)
    }
}

fn summary(results: &ConfigMap) -> Result<Summary, Error> {
    read_summary(results).map_err(|why| Error::results(results, why))
}

/// The trials of a status, each with its payload where the ConfigMap holds one.
fn trials(status: &[TrialState], results: Option<&ConfigMap>) -> Vec<Trial> {
    let packed = |number: i64| {
        let mut all = results.iter().flat_map(|results| results.binary_data.iter().flatten());
        all.find(|(key, _)| trial_number(key) == Some(number))
    };
    let trial = |status: &TrialState| {
        let (key, payload) = packed(status.number)
            .map(|(key, bytes)| (key.clone(), recorded(&bytes.0)))
            .unzip();
        Trial {
            status: status.clone(),
            requests: payload.as_ref().and_then(|payload| payload.requests.clone()),
            payload,
            from: key,
        }
    };
    status.iter().map(trial).collect()
}
