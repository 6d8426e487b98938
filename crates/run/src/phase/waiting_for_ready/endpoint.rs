//! Check of the endpoint: a real completion, or the reason why none comes back.

use std::time::Duration;

use perfval_api::{Finding, Reason, RunFailure, Why, text};

use crate::decision::{Effect, ProbeRequest};
use crate::diagnosis::log::silence;
use crate::diagnosis::pods::Trouble;
use crate::names::dynamo::{FRONTEND_PORT, frontend_service};
use crate::observed::{Probe, ProbeAnswer};
use crate::obstacle::{Obstacle, Response};
use crate::pass::{Pass, Step};
use crate::phase::benchmarking;
use crate::readiness::Pods;
use crate::time;

/// Pause between two probes.
const PROBE_AGAIN: Duration = Duration::from_secs(2);
/// Time that a ready frontend may need to see its workers; only then its log is read for the reason of its silence.
const SILENCE: Duration = Duration::from_secs(10);

/// Requests a completion.
pub(super) fn ask(pass: &mut Pass<'_>) {
    pass.act(Effect::Probe(ProbeRequest {
        namespace: pass.run.namespace().to_owned(),
        service: frontend_service(&pass.run.id()),
        port: FRONTEND_PORT,
        model: pass.run.spec().model.name.clone(),
        timeout: time::duration(&pass.run.spec().timeouts.endpoint_probe),
    }));
}

/// Steps by the answer of the endpoint.
pub(super) fn probe(pass: &mut Pass<'_>, pods: &Pods<'_>) -> Step {
    let refused = match &pass.seen.probe {
        Probe::Answered(ProbeAnswer::Completion) => return completed(pass, pods),
        Probe::Answered(ProbeAnswer::OtherModels(served)) => return other_models(pass, served),
        Probe::Answered(ProbeAnswer::Empty) => Some("the completion was empty".to_owned()),
        Probe::Answered(ProbeAnswer::Refused(code, body)) => Some(format!("HTTP {code}{}", refusal_text(body))),
        Probe::Answered(ProbeAnswer::Failed(error)) => Some(error.clone()),
        Probe::InFlight(_) => None,
        Probe::Idle => {
            ask(pass);
            None
        }
    };
    if let Some(answer) = refused {
        return unanswered(pass, &answer);
    }
    // While the next probe is under way, the last answer stays the one to show.
    match &pass.status.state.unanswered {
        Some(last) => Step::wait(Reason::from_word(&last.reason), last.message.clone()),
        None => Step::wait(Reason::Running, "asking the frontend for a completion"),
    }
}

/// The endpoint serves.
fn completed(pass: &mut Pass<'_>, pods: &Pods<'_>) -> Step {
    // What kept it from answering, and might pass, is over.
    let is_over = |finding: &Finding| {
        let mut known = Obstacle::ALL.iter();
        known.any(|known| known.response() == Response::Wait && known.as_str() == finding.cause)
    };
    pass.status.diagnosis.retain(|finding| !is_over(finding));
    pass.status.state.unanswered = None;
    benchmarking::begin(pass, pods)
}

/// No completion yet: the reason in the frontend's log if it has one, else the frontend's answer.
fn unanswered(pass: &mut Pass<'_>, answer: &str) -> Step {
    pass.look_again_in(PROBE_AGAIN);
    let silence_found = silence(&pass.seen.pod_logs).filter(|_| silent_for(pass) >= SILENCE);
    let trouble = match silence_found {
        Some((obstacle, line)) => Trouble {
            obstacle,
            evidence: format!("frontend: {line}; its last answer: {answer}"),
        },
        None => Trouble {
            obstacle: Obstacle::CompletionsFail,
            evidence: format!("no completion yet; the last answer: {answer}"),
        },
    };
    // A frontend that has just become ready refuses for a moment in every run: advice then only alarms.
    let why = if trouble.obstacle == Obstacle::CompletionsFail && silent_for(pass) < SILENCE {
        Why::new(trouble.obstacle.reason(), trouble.evidence.as_str())
    } else {
        trouble.why()
    };
    record(pass, &why);
    if trouble.obstacle != Obstacle::CompletionsFail {
        // The answer of a starting frontend changes with every probe.
        pass.find(trouble.obstacle.finding(&trouble.evidence));
    }
    if trouble.obstacle.response() == Response::GiveUp {
        Step::End(perfval_api::Verdict::Error, why)
    } else {
        Step::Wait(why)
    }
}

/// The frontend serves, but not this model; a worker of another one may only have been the first.
fn other_models(pass: &mut Pass<'_>, served: &[String]) -> Step {
    pass.look_again_in(PROBE_AGAIN);
    // Any program may choose the ids, so control characters of a terminal are escaped.
    let served: Vec<String> = served.iter().map(|id| id.escape_debug().to_string()).collect();
    let served = text::cut(&served.join(", "), text::HEADLINE);
    let asked = &pass.run.spec().model.name;
    let trouble = Trouble {
        obstacle: Obstacle::ModelNotServed,
        evidence: format!("the frontend serves {served}, not {asked}"),
    };
    let why = trouble.why();
    let last = pass.run.status().state.unanswered.as_ref();
    let is_first = last.is_none_or(|last| last.reason != why.reason.name());
    record(pass, &why);
    if !is_first && silent_for(pass) >= trouble.obstacle.patience() {
        return Step::End(perfval_api::Verdict::Error, why);
    }
    Step::Wait(why)
}

/// Keeps an answer that is no completion: it is shown until the next one.
fn record(pass: &mut Pass<'_>, why: &Why) {
    let (reason, message) = (why.reason.name().to_owned(), text::bounded(&why.message));
    pass.status.state.unanswered = Some(RunFailure { reason, message });
}

/// Time for which every component has been ready, while the operator looked: it requested no completion in between.
fn silent_for(pass: &Pass<'_>) -> Duration {
    let ready = pass.status.state.ready_since;
    ready.map_or(Duration::ZERO, |ready| pass.attended_since(ready))
}

/// Text of a refusal: a frontend without workers answers 404 and an empty body.
fn refusal_text(body: &str) -> String {
    if body.trim().is_empty() {
        return String::new();
    }
    format!(": {body:?}")
}
