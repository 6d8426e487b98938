use std::collections::BTreeMap;

use http::Method;

/// One request, as authorisation sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// Verb.
    pub verb: &'static str,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, with its subresource.
    pub resource: String,
    /// Namespace; `None` for the whole cluster.
    pub namespace: Option<String>,
    /// Name, where the request has one.
    pub name: Option<String>,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
}

impl Call {
    /// Whether it changes something.
    pub fn writes(&self) -> bool {
        !self.dry_run && !self.reads() && self.verb != "watch" && !self.resource.ends_with("/proxy")
    }

    /// Whether it reads once. A question about a right is a creation that stores nothing.
    pub fn reads(&self) -> bool {
        matches!(self.verb, "get" | "list") && !self.resource.ends_with("/proxy")
            || self.resource == "selfsubjectaccessreviews"
    }
}

/// Where a request goes.
pub(super) enum Target {
    Version,
    /// `/apis/<group>/<version>` or `/api/v1`.
    Discovery {
        group: String,
        version: String,
    },
    Resource(Address),
}

/// A resource or a collection.
pub(super) struct Address {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// What follows the subresource, for a proxy.
    pub rest: String,
    pub query: BTreeMap<String, String>,
}

impl Target {
    pub(super) fn of(uri: &http::Uri) -> Option<Self> {
        let parts: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["version"] => return Some(Self::Version),
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let [plural, rest @ ..] = rest else {
            return Some(Self::Discovery {
                group: group.into(),
                version: version.into(),
            });
        };
        let own = |part: &&str| (*part).to_owned();
        Some(Self::Resource(Address {
            group: group.into(),
            version: version.into(),
            plural: (*plural).into(),
            namespace: namespace.map(Into::into),
            name: rest.first().map(own),
            subresource: rest.get(1).map(own),
            rest: rest.get(2..).unwrap_or_default().join("/"),
            query: query(uri),
        }))
    }
}

impl Address {
    pub(super) fn call(&self, method: &Method) -> Option<Call> {
        let proxied = self.subresource.as_deref() == Some("proxy");
        let verb = match *method {
            Method::GET if self.query.get("watch").is_some_and(|watch| watch != "false") => "watch",
            Method::GET if self.name.is_none() => "list",
            Method::GET => "get",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if self.name.is_some() || proxied => "delete",
            _ => return None,
        };
        let resource = match &self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.plural),
            None => self.plural.clone(),
        };
        Some(Call {
            verb,
            group: self.group.clone(),
            resource,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            dry_run: self.is_dry_run(),
        })
    }

    pub(super) fn is_dry_run(&self) -> bool {
        self.query.contains_key("dryRun")
    }
}

fn query(uri: &http::Uri) -> BTreeMap<String, String> {
    form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
        .into_owned()
        .collect()
}
