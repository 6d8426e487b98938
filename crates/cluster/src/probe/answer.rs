use perfval_run::observed::ProbeAnswer;
use serde_json::Value;

/// Bytes of an endpoint's text that are kept.
const KEPT: usize = 200;
/// Most models of a frontend whose names are in a message.
const MODELS: usize = 5;

/// Reads the body of a 200. A reasoning model may spend all its tokens on thinking, so that counts as text.
pub(super) fn read_completion(body: &[u8]) -> ProbeAnswer {
    let Ok(completion) = serde_json::from_slice::<Value>(body) else {
        return ProbeAnswer::Refused(200, beginning(body));
    };
    let message = &completion["choices"][0]["message"];
    let has_text = |field: &str| message[field].as_str().is_some_and(|text| !text.is_empty());
    if ["content", "reasoning_content", "reasoning"].into_iter().any(has_text) {
        ProbeAnswer::Completion
    } else {
        ProbeAnswer::Empty
    }
}

/// A few ids of `/v1/models`; none if `model` is among all of them, or if the body is no list.
pub(super) fn other_models(body: &[u8], model: &str) -> Vec<String> {
    let list: Value = serde_json::from_slice(body).unwrap_or_default();
    let models = list["data"].as_array().into_iter().flatten();
    let ids: Vec<&str> = models.filter_map(|served| served["id"].as_str()).collect();
    if ids.contains(&model) {
        return Vec::new();
    }
    let few = ids.into_iter().take(MODELS);
    few.map(|id| beginning(id.as_bytes())).collect()
}

/// The message of a refusal. Frontends and the API server, which relays for an operator outside the cluster, put it into JSON.
pub(super) fn refusal(body: &[u8]) -> String {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = json["message"].as_str().or_else(|| json["error"]["message"].as_str());
    message.map_or_else(|| beginning(body), |message| beginning(message.as_bytes()))
}

/// The beginning of a body, as text.
pub(super) fn beginning(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(KEPT)]);
    text.trim_end_matches('\u{fffd}').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_and_reasoning_are_completions_and_nothing_else_is() {
        let message = |message: Value| json!({"choices": [{"message": message}]}).to_string();
        let cases = [
            (message(json!({"content": "Hello"})), ProbeAnswer::Completion),
            (
                message(json!({"content": null, "reasoning_content": "Well"})),
                ProbeAnswer::Completion,
            ),
            (
                message(json!({"content": "", "reasoning": "Well"})),
                ProbeAnswer::Completion,
            ),
            (message(json!({"content": ""})), ProbeAnswer::Empty),
            (json!({"choices": []}).to_string(), ProbeAnswer::Empty),
            ("<html>".into(), ProbeAnswer::Refused(200, "<html>".into())),
        ];
        for (body, answer) in cases {
            assert_eq!(read_completion(body.as_bytes()), answer, "{body}");
        }
    }

    #[test]
    fn a_refusal_in_json_is_read_by_its_message() {
        let status = json!({"kind": "Status", "message": "services \"f\" is forbidden", "code": 403}).to_string();
        let error = json!({"error": {"message": "model not found"}}).to_string();
        for (body, text) in [
            (status.as_str(), "services \"f\" is forbidden"),
            (error.as_str(), "model not found"),
            ("Model not found", "Model not found"),
            ("", ""),
        ] {
            assert_eq!(refusal(body.as_bytes()), text);
        }
    }

    #[test]
    fn a_model_with_a_long_name_or_behind_many_others_is_served() {
        let long = "m".repeat(253);
        let mut ids: Vec<String> = (0..MODELS).map(|number| number.to_string()).collect();
        ids.push(long.clone());
        let models: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        let body = json!({"data": models}).to_string();
        assert!(other_models(body.as_bytes(), &long).is_empty());
        assert_eq!(other_models(body.as_bytes(), "m"), ids[..MODELS]);
        assert!(other_models(b"<html>", "m").is_empty());
    }

    #[test]
    fn only_the_beginning_of_a_long_text_is_kept() {
        let kept = beginning("ä".repeat(300).as_bytes());
        assert_eq!(kept, "ä".repeat(100));
        assert_eq!(
            beginning(format!("a{}", "ä".repeat(300)).as_bytes()),
            format!("a{}", "ä".repeat(99))
        );
    }
}
