//! `judge`: recorded results judged without a cluster, by the operator's own code.

mod recorded;
mod report;

use std::collections::BTreeMap;

use perfval_api::{Gate, Scaling};
use perfval_verdict::gate::Share;
use perfval_verdict::judge;

use crate::args::JudgeArgs;
use crate::error::Error;
use crate::screen::Screen;
use crate::{exit, manifest, output};

use recorded::RecordedTrial;

/// Judges the files of the arguments and prints the answer.
pub fn run(screen: &mut Screen, args: &JudgeArgs) -> Result<u8, Error> {
    let object = manifest::read(&args.manifest)?;
    let mut trials = Vec::new();
    let mut placed = None;
    for path in &args.exports {
        let file = recorded::read(path)?;
        placed = placed.or(file.share);
        trials.extend(file.trials);
    }
    given_once(&trials)?;
    let share = share((args.gpus, args.node_gpus), placed, &object.spec.gates)?;
    let recorded: Vec<judge::Recorded> = trials.iter().map(|trial| trial.record.clone().into()).collect();
    let judgement = judge::judge(&object, share, &recorded, chrono::Utc::now());
    let report = report::JudgeReport::new(&object.spec, &judgement, &trials);
    let text = output::written(&report, args.output)?.unwrap_or_else(|| report.to_string());
    screen.answer(&text)?;
    Ok(exit::code(judgement.verdict))
}

/// A trial that is counted twice would decide what it did not show.
fn given_once(trials: &[RecordedTrial]) -> Result<(), Error> {
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

/// The GPUs that thresholds scale by: the flags, or the number in the saved results. Never guessed.
pub fn share(
    (gpus, node_gpus): (Option<i64>, Option<i64>),
    placed: Option<Share>,
    gates: &[Gate],
) -> Result<Option<Share>, Error> {
    let gpus = gpus.or(placed.map(|share| share.gpus));
    let node_gpus = node_gpus.or(placed.map(|share| share.node_gpus));
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
