//! What others quote of a spec reaches no message.

use Phase::{CleaningUp, Deploying};
use perfval_api::Phase;
use perfval_run::observed::DryRunResult;
use perfval_sizing::Seen;
use serde_json::json;

use super::moments::{at, changed};

const VALUE: &str = "plain-but-secret-value";

#[test]
fn a_refusal_that_quotes_a_secret_reaches_no_message() {
    for name in [
        "SSH_PRIVATE_KEY",
        "LICENSE_KEY",
        "REGISTRY_CREDENTIAL",
        "NGC_APIKEY",
        "DOCKER_AUTH_CONFIG",
        "MY_BEARER",
    ] {
        let words = format!(
            "spec.env[0].value: Invalid value: \"{VALUE}\": by \u{202e}policy; nvapi-0123456789abcdef, LICENSE_KEY=abcdefgh; {VALUE}"
        );
        let mut story = changed(at(Deploying), |story| {
            story.object.spec.dynamo_mut().env =
                serde_json::from_value(json!([{"name": name, "value": VALUE}])).expect("variables");
            story.admission = Seen::Present(DryRunResult::Rejected(words.clone()));
        });
        let decision = story.step();
        assert_eq!(decision.status.phase, Some(CleaningUp));
        let notes: Vec<&str> = decision.events.iter().map(|event| event.note.as_str()).collect();
        let status = serde_json::to_string(&decision.status).expect("JSON");
        let shown = format!("{status} {}", notes.join(" "));
        for secret in [VALUE, "nvapi-0123456789abcdef", "abcdefgh", "\u{202e}"] {
            assert!(!shown.contains(secret), "{name}: {secret} is in {shown}");
        }
        assert!(
            shown.contains("refuses the deployment") && shown.contains("[hidden]"),
            "{shown}"
        );
    }
}

#[test]
fn a_long_refusal_that_is_cut_in_a_secret_shows_no_part_of_it() {
    for filler in 930..1_010 {
        let mut story = changed(at(Deploying), |story| {
            story.object.spec.dynamo_mut().env =
                serde_json::from_value(json!([{"name": "LICENSE_KEY", "value": VALUE}])).expect("variables");
            let words = format!("{} {VALUE} is refused", "x".repeat(filler));
            story.admission = Seen::Present(DryRunResult::Rejected(words));
        });
        let shown = serde_json::to_string(&story.step().status).expect("JSON");
        assert!(!shown.contains("plain-bu"), "{filler}: {shown}");
    }
}
