//! Keeps secrets out of logs, messages, reports and bundles: one list of names, one of tokens, for all of them.

mod line;
mod name;

use perfval_api::text::{bounded, reorders};
use perfval_api::{GpuMetrics, PerfValidationSpec, PerfValidationStatus};
use perfval_verdict::frame::{Payload, TrialRecord};
use serde_json::Value;
use serde_json::value::RawValue;

pub use self::line::HIDDEN;
use self::line::SHORTEST;
use self::name::{is_flag, is_secret, is_secret_variable};

/// Annotation of `kubectl apply`: the whole object once more, as one text.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// End of the first and of the last line of a private key in PEM.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// Hides secrets in texts and objects of one validation, by their names, by well-known tokens, and by the values that its spec
/// gives to variables and flags with secret names.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    /// Values of the spec, the longest first: one may be part of another.
    values: Vec<String>,
}

impl Redactor {
    /// A redactor for the texts of this spec's runs.
    pub fn new(spec: &PerfValidationSpec) -> Self {
        let dynamo = spec.dynamo();
        let variables = dynamo.env.iter().filter(|var| is_secret_variable(&var.name));
        let variables = variables.filter_map(|var| var.value.as_deref());
        let lines = [
            &dynamo.worker.command,
            &dynamo.worker.args,
            &dynamo.frontend.args,
            &spec.benchmark.extra_args,
        ];
        let flags = lines.into_iter().flat_map(|words| flag_values(words));
        let mut values: Vec<String> = variables
            .chain(flags)
            .filter(|value| value.len() >= SHORTEST)
            .map(str::to_owned)
            .collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values }
    }

    /// A text without secrets: values of the spec, private keys, well-known tokens, values after secret names and flags, and
    /// what a URL holds in addition to its host and path. Also without characters that reorder the text around them.
    pub fn redact(&self, text: &str) -> String {
        // First of all: such a character in the middle of a value would keep it from being found.
        let text = text.replace(reorders, "");
        let text = without_private_keys(&self.hide_values(&text));
        let mut shown = String::with_capacity(text.len());
        for (number, line) in text.lines().enumerate() {
            if number > 0 {
                shown.push('\n');
            }
            line::redact(line, &mut shown);
        }
        shown
    }

    /// A text without the values that the spec gives.
    pub(super) fn hide_values(&self, text: &str) -> String {
        let values = self.values.iter().filter(|value| text.contains(value.as_str()));
        values.fold(text.to_owned(), |text, value| text.replace(value, HIDDEN))
    }

    /// Redacts what AIPerf and servers wrote into a record.
    pub fn redact_record(&self, record: &mut TrialRecord) {
        for text in record.outcome.texts_mut() {
            *text = self.redact_cut(text);
        }
    }

    /// Redacts what a run saves. An export that contains a value of the spec is left out: the record has every judged number.
    pub fn redact_payload(&self, payload: &mut Payload) {
        self.redact_record(&mut payload.record);
        let export = payload.aiperf.as_deref().map_or("", RawValue::get);
        // JSON escapes the quotes and backslashes of a value.
        let escaped = |value: &str| Value::from(value).to_string();
        let has = |value: &String| export.contains(value) || export.contains(escaped(value).trim_matches('"'));
        if self.values.iter().any(has) {
            payload.aiperf = None;
        }
    }

    /// Redacts the texts of a status. The API server, webhooks and Dynamo's operator quote in their answers what they refuse.
    pub fn redact_status(&self, status: &mut PerfValidationStatus) {
        let findings = status.diagnosis.iter_mut();
        let findings = findings.flat_map(|finding| [&mut finding.evidence, &mut finding.remedy]);
        let source = status
            .workload
            .iter_mut()
            .filter_map(|workload| workload.gpu_metrics.as_mut());
        let conditions = status.conditions.iter_mut().map(|condition| &mut condition.message);
        let state = &mut status.state;
        let failures = state.failure.iter_mut().chain(&mut state.unanswered);
        let failure = failures.map(|failure| &mut failure.message);
        // The URL of the GPU metrics stays, because the next trial reads it.
        let recorded = state
            .deployment
            .iter_mut()
            .filter_map(|deployment| deployment.gpu_metrics.as_mut());
        let missing = recorded.filter_map(|source| match source {
            GpuMetrics::Missing(why) => Some(why),
            GpuMetrics::Endpoint(_) => None,
        });
        for text in status
            .message
            .iter_mut()
            .chain(conditions)
            .chain(findings)
            .chain(failure)
            .chain(source)
            .chain(missing)
        {
            *text = bounded(&self.redact_cut(text));
        }
    }

    /// Redacts a text that may have been cut. The beginning of a value or of a private key before each cut is hidden, too.
    pub fn redact_cut(&self, text: &str) -> String {
        let text = self.hide_values(text);
        let Some((cut, rest)) = text.rsplit_once('…') else {
            return self.redact(&text);
        };
        let pieces: Vec<String> = cut.split('…').map(|piece| self.hide_beginning(piece)).collect();
        self.redact(&format!("{}…{rest}", pieces.join("…")))
    }

    /// A text without the beginning of a secret at its end.
    fn hide_beginning(&self, text: &str) -> String {
        let beginnings = self.values.iter().filter_map(|value| {
            let lengths = (SHORTEST..value.len()).rev();
            lengths
                .filter(|length| value.is_char_boundary(*length))
                .find(|length| text.ends_with(&value[..*length]))
        });
        let length = beginnings.chain(open_key(text)).max().unwrap_or(0);
        let hidden = if length > 0 { HIDDEN } else { "" };
        format!("{}{hidden}", &text[..text.len() - length])
    }

    /// Redacts an object of Kubernetes: values of variables, fields and flags with secret names, and every text in it. The
    /// copies that clients leave in its metadata are removed. References to Secrets stay, because they are names.
    pub fn redact_object(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact(text),
            Value::Array(items) => {
                let mut hide_next = false;
                for item in items {
                    match item.as_str() {
                        Some(text) if hide_next && !is_flag(text) => *item = HIDDEN.into(),
                        _ => self.redact_object(item),
                    }
                    hide_next = item.as_str().is_some_and(|text| is_flag(text) && is_secret(text));
                }
            }
            Value::Object(fields) => {
                fields.retain(|name, _| name != "managedFields" && name != LAST_APPLIED);
                let variable = fields
                    .get("name")
                    .and_then(Value::as_str)
                    .is_some_and(is_secret_variable);
                for (name, value) in fields {
                    if is_secret(name) || (name == "value" && variable) {
                        self.hide(value);
                    } else {
                        self.redact_object(value);
                    }
                }
            }
            _ => {}
        }
    }

    /// Hides the texts of a field with a secret name; an object there has names of its own.
    fn hide(&self, value: &mut Value) {
        match value {
            Value::String(_) => *value = HIDDEN.into(),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide(item)),
            _ => self.redact_object(value),
        }
    }
}

/// Values that a command line gives to flags with secret names.
fn flag_values(words: &[String]) -> impl Iterator<Item = &str> {
    let next = words.iter().skip(1).map(Some).chain([None]);
    words
        .iter()
        .zip(next)
        .filter_map(|(word, next)| match word.split_once('=') {
            Some((name, value)) => (is_flag(name) && is_secret(name)).then_some(value),
            None => next
                .filter(|next| is_flag(word) && is_secret(word) && !is_flag(next))
                .map(String::as_str),
        })
}

/// Length of a private key in PEM without its last line, behind the first line.
fn open_key(text: &str) -> Option<usize> {
    let (_, key) = text.rsplit_once("-----BEGIN ")?;
    let (_, body) = key.split_once(PRIVATE_KEY)?;
    (!body.contains(PRIVATE_KEY)).then_some(body.len())
}

/// A text without private keys in PEM, from the first line of each to its last.
fn without_private_keys(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(PRIVATE_KEY) {
        let (head, body) = rest.split_at(begin + PRIVATE_KEY.len());
        shown.push_str(head);
        rest = body;
        if let Some(end) = body.find(PRIVATE_KEY)
            && body[..end].contains("-----END ")
        {
            shown.push_str(HIDDEN);
            rest = &body[end + PRIVATE_KEY.len()..];
        }
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests;
