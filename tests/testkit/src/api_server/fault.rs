use std::collections::BTreeMap;

use super::call::Call;
use super::refusal::reason;

/// Something that goes wrong with matching requests.
#[derive(Clone, Debug)]
pub struct Fault {
    verb: &'static str,
    resource: String,
    asked_with: String,
    /// Only requests for this object, or only in this namespace.
    name: Option<String>,
    namespace: Option<String>,
    skip: usize,
    times: usize,
    pub(super) effect: Effect,
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// The request is refused.
    Refuse { code: u16, reason: String, message: String },
    /// The request is never answered, and does nothing.
    Hang,
    /// The request does what it asks for, and is never answered.
    LoseAnswer,
}

impl Fault {
    /// Refuses requests; `resource` is the plural with its subresource, `*` stands for any verb or resource.
    pub fn refuse(verb: &'static str, resource: &str, code: u16) -> Self {
        let message = match code {
            403 => format!("{resource} is forbidden: User \"operator\" cannot {verb} resource \"{resource}\""),
            _ => format!("{verb} {resource}: fault {code}"),
        };
        let reason = reason(code).to_owned();
        Self::new(verb, resource, Effect::Refuse { code, reason, message })
    }

    /// Never answers requests, and does nothing.
    pub fn hang(verb: &'static str, resource: &str) -> Self {
        Self::new(verb, resource, Effect::Hang)
    }

    /// Does what requests ask for, and never answers.
    pub fn lose_answer(verb: &'static str, resource: &str) -> Self {
        Self::new(verb, resource, Effect::LoseAnswer)
    }

    fn new(verb: &'static str, resource: &str, effect: Effect) -> Self {
        Self {
            verb,
            resource: resource.into(),
            asked_with: String::new(),
            name: None,
            namespace: None,
            skip: 0,
            times: usize::MAX,
            effect,
        }
    }

    /// The refusal's text.
    #[must_use]
    pub fn saying(mut self, text: &str) -> Self {
        if let Effect::Refuse { message, .. } = &mut self.effect {
            text.clone_into(message);
        }
        self
    }

    /// Only requests with a query parameter that begins so, such as `continue=` for pages after the first.
    #[must_use]
    pub fn asked_with(mut self, query: &str) -> Self {
        query.clone_into(&mut self.asked_with);
        self
    }

    /// Only requests for an object of this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only requests in this namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Lets the first requests through.
    #[must_use]
    pub fn skip(mut self, requests: usize) -> Self {
        self.skip = requests;
        self
    }

    /// Goes away after so many requests.
    #[must_use]
    pub fn times(mut self, requests: usize) -> Self {
        self.times = requests;
        self
    }

    /// Whether it refuses a call for lack of rights, asked beforehand.
    pub(super) fn forbids(&self, call: &Call) -> bool {
        let matches = |pattern: &str, word: &str| pattern == "*" || pattern == word;
        let refuses = matches!(self.effect, Effect::Refuse { code: 403, .. });
        let is_there = self.namespace.is_none() || self.namespace == call.namespace;
        refuses
            && is_there
            && self.skip == 0
            && self.times > 0
            && matches(self.verb, call.verb)
            && matches(&self.resource, &call.resource)
    }

    /// Whether it strikes; counts the request.
    pub(super) fn strikes(&mut self, call: &Call, query: &BTreeMap<String, String>) -> bool {
        let matches = |pattern: &str, word: &str| pattern == "*" || pattern == word;
        let asks = |(key, value): (&String, &String)| format!("{key}={value}").starts_with(&self.asked_with);
        let asked = self.asked_with.is_empty() || query.iter().any(asks);
        let is_there = |wanted: &Option<String>, is: &Option<String>| wanted.is_none() || wanted == is;
        let is_about_it = is_there(&self.name, &call.name) && is_there(&self.namespace, &call.namespace);
        if !matches(self.verb, call.verb) || !matches(&self.resource, &call.resource) || !asked || !is_about_it {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        if self.times == 0 {
            return false;
        }
        self.times -= 1;
        true
    }
}
