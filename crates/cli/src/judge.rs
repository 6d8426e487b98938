//! `judge`: recorded results judged without a cluster, by the operator's own code.

mod recorded;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use perfval_api::{Gate, PerfValidation, Scaling};
use perfval_run::secret::Redactor;
use perfval_verdict::diagnosis::cause::Cause;
use perfval_verdict::frame::{Failure, Outcome, TrialRecord};
use perfval_verdict::gate::Share;
use perfval_verdict::judge::{self, Judgement};
use perfval_verdict::trial::Evidence;

use crate::args::JudgeArgs;
use crate::error::Error;
use crate::screen::Screen;
use crate::{exit, input, manifest, output};

use recorded::{RecordedFile, RecordedRun};
pub use recorded::{RecordedTrial, is_of_another_kind};

/// Remedy for a broken file. The pod that wrote it may be long gone.
const OF_A_BROKEN_FILE: &str = "download the export again, or check that it is profile_export_aiperf.json";

/// Judges the files of the arguments and prints the answer.
pub fn run(screen: &mut Screen, args: &JudgeArgs) -> Result<u8, Error> {
    let files = args.exports.iter().chain([&args.manifest]);
    input::check_stdin(files.map(PathBuf::as_path))?;
    let object = manifest::read(&args.manifest)?;
    let mut trials = Vec::new();
    for path in &args.exports {
        match recorded::read(path)? {
            RecordedFile::Trial(trial) => trials.push(*trial),
            RecordedFile::Run(run) if args.exports.len() == 1 => {
                let judgement = judge_run(args, &object, path, &run)?;
                return answer(screen, args, &object, &judgement, &run.from);
            }
            RecordedFile::Run(_) => {
                return Err(Error::BadInput(format!(
                    "{} contains all trials of a run: give it without other files",
                    path.display()
                )));
            }
        }
    }
    given_once(&trials)?;
    let share = share((args.gpus, args.node_gpus), &object.spec.gates)?;
    let named = trials.into_iter().map(|trial| (trial.from, trial.record));
    let (from, records): (Vec<String>, Vec<TrialRecord>) = named.unzip();
    let recorded: Vec<_> = records
        .iter()
        .map(|record| Evidence::new(record, Share::UNSCALED))
        .collect();
    let mut judgement = judge::judge(&object, share, &recorded, chrono::Utc::now());
    for (judged, record) in judgement.trials.iter_mut().zip(&records) {
        // The payload of a runner is whole, also if it records a broken export.
        let is_payload = !record.nonce.is_empty();
        let is_broken = !is_payload && matches!(&record.outcome, Outcome::Failure(Failure::Malformed { .. }));
        let failed = judged
            .findings
            .iter_mut()
            .filter(|(cause, _)| is_broken && *cause == Cause::BenchmarkFailed);
        for (_, finding) in failed {
            OF_A_BROKEN_FILE.clone_into(&mut finding.remedy);
        }
    }
    answer(screen, args, &object, &judgement, &from)
}

fn answer(
    screen: &mut Screen,
    args: &JudgeArgs,
    object: &PerfValidation,
    judgement: &Judgement,
    from: &[String],
) -> Result<u8, Error> {
    let report = report::JudgeReport::new(&object.spec, judgement, from);
    let text = output::in_format(&report, args.output)?.unwrap_or_else(|| report.to_string());
    screen.answer(&text)?;
    Ok(exit::code(judgement.verdict))
}

/// Judges a run of the operator as the operator itself does after a change of the gates.
fn judge_run(args: &JudgeArgs, object: &PerfValidation, path: &Path, run: &RecordedRun) -> Result<Judgement, Error> {
    let bad_input = |why: String| Error::BadInput(format!("{}: {why}", path.display()));
    let used = run.status.placement.as_ref();
    if let Some(Share { gpus, node_gpus }) = used.map(|placement| Share::new(placement, &run.status.state.plan)) {
        let agrees = |flag: Option<i64>, known: i64| flag.is_none_or(|flag| flag == known);
        if !agrees(args.gpus, gpus) || !agrees(args.node_gpus, node_gpus) {
            return Err(bad_input(format!(
                "its run used {gpus} of {node_gpus} GPUs: leave out --gpus and --node-gpus"
            )));
        }
    }
    let mut saved = run.saved.clone();
    let redactor = Redactor::new(&object.spec);
    for record in saved.records.values_mut() {
        redactor.redact_record(record);
    }
    judge::judge_run(object, &run.status, &saved, chrono::Utc::now()).map_err(bad_input)
}

/// Refuses a trial that is given twice: it would decide what it did not show.
pub fn given_once(trials: &[RecordedTrial]) -> Result<(), Error> {
    let mut known = BTreeMap::new();
    for trial in trials {
        let Some(fingerprint) = &trial.fingerprint else {
            continue;
        };
        if let Some(first) = known.insert(fingerprint, &trial.from) {
            let second = &trial.from;
            return Err(Error::BadInput(format!(
                "{first} and {second} hold the same trial: give each one once"
            )));
        }
    }
    Ok(())
}

/// The GPUs that thresholds scale by, from the flags. Never guessed.
pub fn share((gpus, node_gpus): (Option<i64>, Option<i64>), gates: &[Gate]) -> Result<Option<Share>, Error> {
    for gate in gates {
        let missing = match gate.scaling {
            Scaling::ByGpuShare if gpus.is_none() || node_gpus.is_none() => "--gpus and --node-gpus",
            Scaling::PerGpu if gpus.is_none() => "--gpus",
            Scaling::None | Scaling::ByGpuShare | Scaling::PerGpu => continue,
        };
        return Err(Error::BadInput(format!(
            "gate {} scales with the GPUs in use: give {missing}",
            gate.name
        )));
    }
    let Some(gpus) = gpus else { return Ok(None) };
    let node_gpus = node_gpus.unwrap_or(gpus);
    if gpus > node_gpus {
        return Err(Error::BadInput(format!(
            "--gpus {gpus} is more than --node-gpus {node_gpus}"
        )));
    }
    Ok(Some(Share { gpus, node_gpus }))
}
