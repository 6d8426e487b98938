use kube::ResourceExt as _;
use perfval_api::{
    Finding, Gate, GateStatus, Leftovers, PerfValidation, PerfValidationStatus, Phase, Verdict, quantity,
};
use perfval_verdict::environment;
use perfval_verdict::history::in_words;
use perfval_verdict::trials::claim;
use rust_decimal::prelude::ToPrimitive as _;

use super::layout::{INDENT, PageLayout};
use super::parts::{evidence, next, trials, workers};
use super::unreadable;
use crate::draw::{BAR, age, gate_result, span, wrap};
use crate::table::Table;

impl PageLayout {
    pub fn render(&self, object: &PerfValidation) -> String {
        let fresh = PerfValidationStatus::default();
        let status = object.status.as_ref().unwrap_or(&fresh);
        let parts = [
            self.head(object, status),
            self.gates(object, status),
            trials(self, status),
            workers(self, status),
            self.findings(status),
            self.compared(object, status),
            self.ran_on(status),
            evidence(self, object, status),
            next(self, object, status),
        ];
        let written: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        written.join("\n")
    }

    fn head(&self, object: &PerfValidation, status: &PerfValidationStatus) -> String {
        let name = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
        let verdict = status.verdict.map(Verdict::as_str);
        let phase = status.phase.unwrap_or(Phase::Pending).as_str();
        let headline = match (verdict, status.phase) {
            (Some(verdict), Some(Phase::Completed)) => verdict.to_owned(),
            (Some(verdict), _) => format!("{verdict}, {phase}"),
            (None, _) => phase.to_owned(),
        };
        let reason = status.reason.as_deref().filter(|reason| *reason != headline);
        let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
        let mut text = self.title(&format!("{name}: {headline}{reason}"));
        if let Some(message) = &status.message {
            text += &self.below(message);
        }
        if let Some(run) = &status.run {
            let took = match run.completed_at {
                Some(end) => format!(
                    "took {}, ended {} ago",
                    span((end - run.started_at).num_seconds()),
                    age(self.now - end)
                ),
                None => format!("began {} ago", age(self.now - run.started_at)),
            };
            text += &self.below(&format!("run {} ({:?}) {took}", run.number, run.trigger));
            if is_edited(object) {
                text += &self.below("the spec was edited: this page shows the result before the edit");
            }
            match status.state.leftovers {
                Some(Leftovers::Kept) => {
                    text += &self.below(&format!(
                        "everything is kept, GPUs included: `kubectl perfval clean-up {} -n {}{}` removes it",
                        object.name_any(),
                        object.namespace().unwrap_or_default(),
                        self.flags
                    ));
                }
                Some(Leftovers::Overdue) => {
                    text += &self.below("the operator could not remove all objects in time, and keeps trying");
                }
                None => {}
            }
        }
        if let Some(blocked) = &status.state.blocked {
            text += &self.below(&format!("blocked, {}: {}", blocked.reason, blocked.message));
        }
        // The message of an object without a run is this one.
        let shown = status.message.as_ref();
        if let Some(stalled) = unreadable(object).filter(|stalled| shown != Some(&stalled.message)) {
            text += &self.below(&format!("the operator cannot run it: {}", stalled.message));
        }
        text
    }

    fn gates(&self, object: &PerfValidation, status: &PerfValidationStatus) -> String {
        if status.gates.is_empty() {
            return String::new();
        }
        let table = |bar| {
            let mut table = Table::default();
            for gate in &status.gates {
                let spec = object.spec.gates.iter().find(|spec| spec.name == gate.name);
                table.row(self.gate(gate, spec, bar));
            }
            table
        };
        let whole = table(BAR);
        let table = if whole.fits(self.columns, INDENT) {
            whole
        } else {
            table(BAR / 2)
        };
        let which = match status.verdict {
            Some(_) => "in the trial that decided",
            None => "in the last valid trial",
        };
        let title = format!("Gates, {which} (the mark is the threshold)");
        self.title(&title) + &table.within(self.columns, INDENT)
    }

    fn gate(&self, gate: &GateStatus, spec: Option<&Gate>, bar: usize) -> [String; 5] {
        let sign = spec.map_or("against", |spec| spec.operator.sign());
        let unit = spec.map_or("", |spec| spec.metric.unit());
        let observed = gate.observed.as_deref().unwrap_or("-");
        let ratio = (|| {
            let observed = quantity::parse(gate.observed.as_deref()?)?.to_f64()?;
            let effective = quantity::parse(&gate.effective)?.to_f64()?;
            (effective > 0.0).then_some(observed / effective)
        })();
        let margin = gate.margin_percent.as_deref().map_or(String::new(), |margin| {
            let sign = if margin.starts_with('-') { "" } else { "+" };
            format!("{sign}{margin} %")
        });
        [
            gate.name.clone(),
            ratio.map_or(String::new(), |ratio| self.ink.against(ratio, bar)),
            format!("{observed} {sign} {} {unit}", gate.effective)
                .trim_end()
                .to_owned(),
            margin,
            gate_result(gate.result).to_owned(),
        ]
    }

    fn findings(&self, status: &PerfValidationStatus) -> String {
        if status.diagnosis.is_empty() {
            return String::new();
        }
        let mut text = "Findings\n".to_owned();
        for Finding {
            cause,
            severity,
            evidence,
            remedy,
        } in &status.diagnosis
        {
            let weight = format!("{severity:?}").to_lowercase();
            text += &self.below(&format!("{cause} ({weight})"));
            text += &wrap(evidence, self.columns, "    ");
            let arrow = if self.ink.unicode { "→" } else { "->" };
            text += &wrap(&format!("{arrow} {remedy}"), self.columns, "    ");
        }
        text
    }

    fn compared(&self, object: &PerfValidation, status: &PerfValidationStatus) -> String {
        let mut text = String::new();
        if let Some(comparison) = &status.state.comparison {
            text += &self.title("Comparison");
            text += &self.below(&in_words(comparison));
            for difference in comparison.differs.iter().filter(|_| comparison.differs.len() > 1) {
                text += &self.below(difference);
            }
        }
        // The distances of the trials are in the order of the gates of the run.
        let passed = status.verdict == Some(Verdict::Passed) && !is_edited(object);
        if let Some(claim) = claim(&object.spec, status).filter(|_| passed) {
            text += &wrap(
                &format!("A pass rules this out: {}.", claim.in_words()),
                self.columns,
                "",
            );
        }
        text
    }

    fn ran_on(&self, status: &PerfValidationStatus) -> String {
        let (Some(placement), Some(on)) = (&status.placement, &status.state.environment) else {
            return String::new();
        };
        let mut table = Table::default();
        let product = placement.product.as_deref().unwrap_or("GPUs of an unknown product");
        let cells = self.ink.cells(
            usize::try_from(placement.gpus).unwrap_or_default().min(64),
            usize::try_from(placement.node_gpus).unwrap_or_default().min(64),
        );
        let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "not known".to_owned());
        for (what, value) in [
            (
                "node",
                format!(
                    "{} {cells} {} of {} GPUs, {product}, by {}",
                    placement.node, placement.gpus, placement.node_gpus, placement.allocation
                ),
            ),
            ("model", on.model.clone()),
            ("image", on.image.clone()),
            ("image digest", dash(&on.image_digest)),
            ("Dynamo, AIPerf", format!("{}, {}", dash(&on.dynamo), dash(&on.aiperf))),
            (
                "Kubernetes, driver",
                format!("{}, {}", dash(&on.kubernetes), dash(&on.gpu_driver)),
            ),
            ("environment", environment::digest(on)),
        ] {
            table.row([what.to_owned(), value]);
        }
        self.title("Ran on") + &table.within(self.columns, INDENT)
    }
}

/// Returns true if the spec was edited after the run began.
fn is_edited(object: &PerfValidation) -> bool {
    let run = object.status.as_ref().and_then(|status| status.run.as_ref());
    run.zip(object.metadata.generation)
        .is_some_and(|(run, generation)| run.generation != generation)
}
