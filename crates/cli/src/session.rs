//! The cluster of the command line, and the validations in it.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use kube::api::{ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::DeserializeGuard;
use kube::{Api, Client, Config, ResourceExt as _};
use perfval_api::PerfValidation;
use perfval_api::admission::is_name;
use serde_json::Value;
use tokio::time::timeout;

use crate::args::Target;
use crate::error::{Error, READ_ALL, WRONG_TOKEN, is_missing_kind, without_secrets};
use crate::listed::{keep_readable, unreadable};
use crate::screen::Screen;

/// Time-out of a server's connection: a context of a cluster that is gone must not hang.
const CONNECT: Duration = Duration::from_secs(10);
/// Call that lists the validations of a namespace.
const READ: &str = "read PerfValidations";
/// Time that a person who pressed the tab key waits.
const TAB: Duration = Duration::from_secs(3);
/// Names in a message.
const NAMED: usize = 5;
/// Longest name that the CRD admits.
const NAME: usize = 63;
/// Beginning of the text with which the HTTP library panics on a token that no header can have.
const TOKEN_PANIC: &str = "token is not valid header";

/// A cluster and a namespace in it.
#[derive(Clone)]
pub struct Session {
    /// The way to the API server.
    pub client: Client,
    /// The namespace of the flags, or of the context.
    pub namespace: String,
    /// Flags that chose the cluster and the user, for commands to type next.
    pub flags: String,
}

/// Names of the validations, for completions; none where the cluster does not answer at once.
pub async fn names(target: &Target) -> Vec<String> {
    let list = async {
        let objects = Session::open(target).await?.list_guarded(READ).await?;
        Ok::<_, Error>(objects.iter().map(kube::ResourceExt::name_any).collect())
    };
    match timeout(TAB, Box::pin(list)).await {
        Ok(Ok(names)) => names,
        _ => Vec::new(),
    }
}

/// A flag. An empty one is none, as with kubectl.
fn non_empty(flag: Option<&String>) -> Option<String> {
    flag.filter(|text| !text.is_empty()).cloned()
}

/// The kubeconfig, where the flags choose something in it; without one, what a pod has will do too.
fn kubeconfig(target: &Target, chosen: &KubeConfigOptions) -> Result<Option<Kubeconfig>, Error> {
    let read = match &target.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None if [&chosen.context, &chosen.cluster, &chosen.user]
            .iter()
            .all(|flag| flag.is_none()) =>
        {
            return Ok(None);
        }
        None => Kubeconfig::read(),
    };
    let kubeconfig = read.map_err(|error| no_cluster(&error))?;
    // The loader treats a missing user as anonymous.
    let is_there = |user: &String| kubeconfig.auth_infos.iter().any(|known| known.name == *user);
    match chosen.user.as_ref().filter(|user| !is_there(user)) {
        Some(user) => Err(Error::NoCluster(format!("the kubeconfig has no user {user}"))),
        None => Ok(Some(kubeconfig)),
    }
}

/// Error of a configuration.
fn no_cluster(error: &(dyn std::error::Error + 'static)) -> Error {
    Error::NoCluster(without_secrets(error).unwrap_or_else(|| error.to_string()))
}

/// Client of a configuration.
fn connect(config: Config) -> Result<Client, Error> {
    // The HTTP library would panic at the first call.
    if config.cluster_url.scheme().is_none() {
        return Err(Error::NoCluster(
            "the server in the kubeconfig has no scheme: write https:// before it".to_owned(),
        ));
    }
    // It panics on a token that no header can have. Only here the token of a credential plugin is read.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let client = panic::catch_unwind(AssertUnwindSafe(|| Client::try_from(config)));
    panic::set_hook(hook);
    match client {
        Ok(client) => client.map_err(|error| no_cluster(&error)),
        Err(panic) => Err(Error::NoCluster(explain_panic(&*panic).to_owned())),
    }
}

/// Text for a panic of the HTTP library. Its own text may have secrets.
fn explain_panic(panic: &(dyn Any + Send)) -> &'static str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    if text.is_some_and(|text| text.starts_with(TOKEN_PANIC)) {
        return WRONG_TOKEN;
    }
    "the HTTP library failed on this kubeconfig: report it as a bug, without the secrets of the kubeconfig"
}

/// Refuses a name that no validation can have.
pub fn check_name(name: &str) -> Result<(), Error> {
    if is_name(name) && name.len() <= NAME {
        return Ok(());
    }
    Err(Error::BadInput(format!(
        "{name:?} is not a valid name for a PerfValidation: write at most {NAME} lower-case letters, digits, '-' and '.'"
    )))
}

/// Namespace of a manifest, or else of the flags, as with kubectl. The two may not differ.
pub fn common_namespace(object: &PerfValidation, flag: Option<&str>) -> Result<Option<String>, Error> {
    match (object.namespace(), flag) {
        (Some(namespace), Some(flag)) if namespace != flag => Err(Error::BadInput(format!(
            "the manifest has namespace {namespace}, and the flags have {flag}: leave one of them out"
        ))),
        (namespace, flag) => Ok(namespace.or_else(|| flag.map(str::to_owned))),
    }
}

impl Session {
    /// Connects to what the flags name.
    pub async fn open(target: &Target) -> Result<Self, Error> {
        let chosen = KubeConfigOptions {
            context: non_empty(target.context.as_ref()),
            cluster: non_empty(target.cluster.as_ref()),
            user: non_empty(target.user.as_ref()),
        };
        let mut config = match kubeconfig(target, &chosen)? {
            Some(kubeconfig) => {
                let config = Config::from_custom_kubeconfig(kubeconfig, &chosen).await;
                config.map_err(|error| no_cluster(&error))?
            }
            None => Config::infer().await.map_err(|error| no_cluster(&error))?,
        };
        if let Some(user) = non_empty(target.impersonate.as_ref()) {
            config.auth_info.impersonate = Some(user);
            config.auth_info.impersonate_groups = Some(target.groups.clone());
        } else if !target.groups.is_empty() {
            return Err(Error::BadInput(
                "--as-group needs --as: name the user to impersonate too".to_owned(),
            ));
        }
        config.connect_timeout = Some(CONNECT);
        // A person would rather read that the server is busy than wait for minutes.
        config.default_retry = false;
        let namespace = target.namespace().unwrap_or(&config.default_namespace).to_owned();
        let client = connect(config)?;
        let flags = target.cluster_flags();
        Ok(Self {
            client,
            namespace,
            flags,
        })
    }

    /// The validations of the namespace.
    pub fn validations(&self) -> Api<PerfValidation> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A validation by its name.
    pub async fn get(&self, name: &str) -> Result<PerfValidation, Error> {
        check_name(name)?;
        let read = self.validations().get(name).await;
        read.map_err(|error| self.missing(name, READ, error))
    }

    /// Validations of the namespace, or of all, and the exit code. A note names each that cannot be parsed.
    pub async fn list(&self, screen: &mut Screen, all: bool) -> Result<(Vec<PerfValidation>, u8), Error> {
        let call = if all { READ_ALL } else { READ };
        let listed = self.list_guarded(call).await?;
        Ok(keep_readable(screen, call, &self.flags, listed))
    }

    /// Validations of the namespace, or of all if the call is `READ_ALL`, each parsed on its own.
    async fn list_guarded(&self, call: &str) -> Result<Vec<DeserializeGuard<PerfValidation>>, Error> {
        let client = self.client.clone();
        let api: Api<DeserializeGuard<PerfValidation>> = if call == READ_ALL {
            Api::all(client)
        } else {
            Api::namespaced(client, &self.namespace)
        };
        let list = api.list(&ListParams::default()).await;
        Ok(list.map_err(|error| Error::from_call(call, error))?.items)
    }

    /// The validation of this name, or the only one.
    pub async fn pick(&self, name: Option<&str>) -> Result<PerfValidation, Error> {
        if let Some(name) = name {
            return self.get(name).await;
        }
        let mut all = self.list_guarded(READ).await?;
        let namespace = &self.namespace;
        match all.len() {
            0 => Err(Error::BadInput(format!(
                "there is no PerfValidation in namespace {namespace}: `kubectl perfval get -A` lists all"
            ))),
            1 => {
                let DeserializeGuard(only) = all.remove(0);
                only.map_err(|invalid| unreadable(READ, &invalid))
            }
            count => {
                let names: Vec<_> = all.iter().take(NAMED).map(kube::ResourceExt::name_any).collect();
                let more = if count > NAMED { ", …" } else { "" };
                Err(Error::BadInput(format!(
                    "namespace {namespace} has {count} PerfValidations: name one of {}{more}",
                    names.join(", ")
                )))
            }
        }
    }

    /// A command to type about a validation, wherever it is.
    pub fn command(&self, verb: &str, name: &str) -> String {
        format!("`kubectl perfval {verb} {name} -n {}{}`", self.namespace, self.flags)
    }

    /// Changes a validation by a merge patch.
    pub async fn patch(&self, object: &PerfValidation, change: &Value) -> Result<PerfValidation, Error> {
        let name = object.name_any();
        let patched = self
            .validations()
            .patch(&name, &PatchParams::default(), &Patch::Merge(change))
            .await;
        patched.map_err(|error| self.missing(&name, "change PerfValidations", error))
    }

    /// The error of a call for an object that may not exist.
    pub fn missing(&self, name: &str, call: &str, error: kube::Error) -> Error {
        match error {
            kube::Error::Api(status) if status.code == 404 && !is_missing_kind(&status) => Error::NoSuchObject {
                namespace: self.namespace.clone(),
                name: name.to_owned(),
            },
            other => Error::from_call(call, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_about_something_else_is_not_blamed_on_the_token_and_shows_no_text() {
        let token = format!("{TOKEN_PANIC}: InvalidHeaderValue");
        assert_eq!(explain_panic(&token), WRONG_TOKEN);
        let others: [&(dyn Any + Send); 3] = [&"t-secret", &"t-secret".to_owned(), &5];
        for other in others {
            let text = explain_panic(other);
            assert!(
                text.contains("report it as a bug") && !text.contains("t-secret"),
                "{text}"
            );
        }
    }
}
