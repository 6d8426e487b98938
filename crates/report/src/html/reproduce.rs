use maud::{Markup, html};
use perfval_api::text::quoted;
use serde_json::json;

use super::parts::scrolling;
use crate::facts::Facts;

pub(super) fn steps(facts: &Facts) -> Markup {
    let manifest = manifest(facts);
    let namespace = facts.namespace.as_deref().unwrap_or("default");
    let (namespace, name) = (quoted(namespace), quoted(&facts.name));
    let redactor = facts.redactor();
    let commands: Vec<(i64, String)> = facts
        .trials
        .iter()
        .filter_map(|trial| Some((trial.status.number, trial.export(&["run_info", "cli_command"])?)))
        .collect();
    html! {
        @match &manifest {
            Some(manifest) => {
                p { "Save this as " code { "perfvalidation.yaml" } "; values that may be secrets are hidden." }
                details { summary { "The manifest" } pre tabindex="0" { code { (manifest) } } }
            },
            None => p { strong { "Not recorded" } ": the manifest is not in the results." },
        }
        h3 { "Run it again" }
        pre tabindex="0" { code {
            @if manifest.is_some() { "kubectl perfval run -f perfvalidation.yaml" }
            @else { "kubectl perfval rerun -n " (namespace) " " (name) " --watch   # measures its present spec" }
        } }
        @if let Some(saved) = &facts.saved {
            h3 { "Judge the same trials again" }
            pre tabindex="0" { code {
                "kubectl get configmap -n " (namespace) " " (quoted(&saved.name)) " -o json > results.json\n"
                "kubectl perfval judge results.json -f perfvalidation.yaml"
                @if manifest.is_none() { "   # your manifest" }
            } }
        }
        @if !commands.is_empty() {
            h3 { "The load generator's own command" }
            details { summary { "AIPerf, trial by trial" }
                @for (number, command) in &commands { p { "Trial " (number) } pre tabindex="0" { code { (redactor.redact(command)) } } }
            }
        }
        (digests(facts))
    }
}

fn digests(facts: &Facts) -> Markup {
    let environment = facts.status.state.environment.clone().unwrap_or_default();
    let digests = facts.status.state.digests.as_ref();
    let saved = facts.saved.as_ref();
    let rows: Vec<(String, String)> = [
        ("Results ConfigMap", saved.map(|saved| saved.name.clone())),
        ("SHA-256 of its content", saved.map(|saved| saved.sha256.clone())),
        ("Workload image", environment.image_digest),
        ("Flags and load", environment.settings),
        ("Environment", environment.digest),
        (
            "Digest of the measured part of the spec",
            digests.map(|spec| spec.measured.clone()),
        ),
        (
            "Digest of the judging part of the spec",
            digests.map(|spec| spec.judged.clone()),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .chain(facts.trials.iter().filter_map(|trial| {
        let seed = trial.status.seed?;
        Some((format!("Seed of trial {}", trial.status.number), seed.to_string()))
    }))
    .collect();
    if rows.is_empty() {
        return html! {};
    }
    html! {
        h3 { "Digests and seeds" }
        (scrolling("Digests", &html! {
            table {
                caption { "Digests and seeds of this run" }
                tbody { @for (name, value) in &rows { tr { th scope="row" { (name) } td.digest { (value) } } } }
            }
        }))
    }
}

/// Spec of the run, as a manifest that can be applied again.
fn manifest(facts: &Facts) -> Option<String> {
    let mut spec = serde_json::to_value(facts.spec.as_ref()?).ok()?;
    facts.redactor().redact_object(&mut spec);
    let mut metadata = json!({"name": facts.name});
    if let Some(namespace) = &facts.namespace {
        metadata["namespace"] = json!(namespace);
    }
    let manifest = json!({
        "apiVersion": "perfvalidation.dev/v1alpha1",
        "kind": "PerfValidation",
        "metadata": metadata,
        "spec": spec,
    });
    serde_saphyr::to_string(&manifest).ok()
}
