//! Two operators and one lease: which of them acted when, as the API server saw it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::audit::Call;
use crate::lab::{Lab, eventually};

/// Waits until somebody holds the lease.
///
/// # Panics
/// If that takes longer.
pub async fn holds(lab: &Lab, lease: &str, who: &str, within: Duration) {
    let leases: Api<Lease> = Api::namespaced(lab.client.clone(), "default");
    eventually("another holder of the lease", within, || async {
        let found = leases.get(lease).await.map_err(|error| error.to_string())?;
        match found.spec.and_then(|spec| spec.holder_identity) {
            Some(holder) if holder == who => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// An operator that the audit log tells from others: the cluster's admin under another name.
pub struct Account {
    /// Its name, also in the lease.
    pub name: String,
    /// How it reaches the API server.
    pub kubeconfig: NamedTempFile,
}

impl Account {
    /// Under this name, straight to the API server.
    ///
    /// # Panics
    /// If there is no kubeconfig.
    pub async fn of(lab: &Lab, name: &str) -> Self {
        Self::through(lab, name, None).await
    }

    /// Under this name, by another address of the API server.
    ///
    /// # Panics
    /// If there is no kubeconfig.
    pub async fn through(lab: &Lab, name: &str, address: Option<&str>) -> Self {
        let mut config = admin(lab).await;
        let user = &mut config["users"][0]["user"];
        user["as"] = name.into();
        user["as-groups"] = json!(["system:masters"]);
        if let Some(address) = address {
            config["clusters"][0]["cluster"]["server"] = address.into();
        }
        let kubeconfig = NamedTempFile::new().expect("a temporary file");
        std::fs::write(kubeconfig.path(), config.to_string()).expect("write the kubeconfig");
        Self {
            name: name.to_owned(),
            kubeconfig,
        }
    }
}

/// Host and port of the API server.
///
/// # Panics
/// If there is no kubeconfig.
pub async fn api_server(lab: &Lab) -> String {
    let config = admin(lab).await;
    let server = config["clusters"][0]["cluster"]["server"].as_str().expect("a server");
    server.strip_prefix("https://").expect("TLS").to_owned()
}

async fn admin(lab: &Lab) -> Value {
    let config = lab
        .kubectl(&["config", "view", "--raw", "--minify", "--output=json"])
        .await;
    serde_json::from_str(&config).expect("a kubeconfig")
}

/// One operator after the other.
#[derive(Debug, PartialEq, Eq)]
pub struct Takeover {
    /// When the second asked for the lease and got it.
    pub taken: DateTime<Utc>,
    /// Writes of the first, all of them before that.
    pub before: usize,
    /// Writes of the second, all of them after that.
    pub after: usize,
}

impl Takeover {
    /// Reads it off the calls since both were started: each wrote something, and neither in the other's time. Calls that were
    /// refused changed nothing.
    ///
    /// # Errors
    /// What one of them did while the other led.
    pub fn of(calls: &[Call], lease: &str, first: &str, second: &str) -> Result<Self, String> {
        // Whoever asks for its own rights creates nothing that stays.
        let stays = |call: &Call| call.is_write() && call.kind != "selfsubjectaccessreviews";
        let writes = |by: &str| -> Vec<&Call> {
            let is_write = |call: &&Call| call.user == by && stays(call) && call.succeeded();
            calls.iter().filter(is_write).collect()
        };
        let (firsts, seconds) = (writes(first), writes(second));
        let of_lease = |call: &&&Call| call.kind == "leases" && call.name == lease;
        let taking = seconds.iter().find(of_lease);
        let taken = taking.ok_or("the second never had the lease")?.received;
        if let Some(late) = firsts.iter().find(|call| call.received >= taken) {
            return Err(format!("the second has led since {taken}, and the first did {late:?}"));
        }
        if let Some(early) = seconds.iter().find(|call| call.received < taken) {
            return Err(format!("the second led from {taken} on, and did {early:?}"));
        }
        let worked = |writes: &[&Call]| writes.iter().filter(|call| call.kind != "leases").count();
        let (before, after) = (worked(&firsts), worked(&seconds));
        if before == 0 || after == 0 {
            return Err(format!(
                "one of them did nothing: {before} writes before, {after} after"
            ));
        }
        Ok(Self { taken, before, after })
    }
}

/// Objects of a kind that were created in a namespace.
pub fn created(calls: &[Call], kind: &str, namespace: &str) -> usize {
    let is_one = |call: &&Call| call.verb == "create" || (call.verb == "patch" && call.code == 201);
    let of_kind = |call: &&Call| call.kind == kind && call.namespace == namespace && call.succeeded();
    calls.iter().filter(of_kind).filter(is_one).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).expect("a time")
    }

    fn call(user: &str, second: i64, verb: &str, kind: &str, code: u16) -> Call {
        Call {
            user: user.to_owned(),
            verb: verb.to_owned(),
            kind: kind.to_owned(),
            namespace: "perf".to_owned(),
            name: "lease".to_owned(),
            received: at(second),
            answered: at(second + 1),
            code,
            dry_run: false,
        }
    }

    fn story() -> Vec<Call> {
        vec![
            call("first", 0, "create", "leases", 201),
            call("first", 1, "create", "jobs", 201),
            call("second", 2, "get", "leases", 200),
            call("first", 3, "update", "leases", 200),
            call("second", 20, "update", "leases", 200),
            call("second", 21, "patch", "perfvalidations/status", 200),
        ]
    }

    fn judged(more: &[Call]) -> Result<Takeover, String> {
        Takeover::of(&[&story(), more].concat(), "lease", "first", "second")
    }

    #[test]
    fn one_acts_after_the_other() {
        let (before, after) = (1, 1);
        let taken = at(20);
        assert_eq!(judged(&[]), Ok(Takeover { taken, before, after }));
        let refused = call("first", 60, "patch", "perfvalidations/status", 409);
        let read = call("first", 60, "get", "pods", 200);
        let asked = call("second", 0, "create", "selfsubjectaccessreviews", 201);
        assert!(judged(&[refused, read, asked]).is_ok());
    }

    #[test]
    fn what_one_does_in_the_others_time_is_seen() {
        for (case, more) in [
            ("after the second took over", call("first", 20, "create", "jobs", 201)),
            ("before it did", call("second", 19, "create", "jobs", 201)),
        ] {
            assert!(judged(&[more]).is_err(), "{case}");
        }
    }

    #[test]
    fn who_does_nothing_shows_nothing() {
        assert!(Takeover::of(&story()[..4], "lease", "first", "second").is_err());
        assert!(Takeover::of(&story()[..5], "lease", "first", "second").is_err());
    }

    #[test]
    fn objects_are_counted_once_each() {
        let again = [
            call("second", 22, "patch", "jobs", 200),
            call("second", 23, "create", "jobs", 409),
            call("second", 24, "patch", "jobs", 201),
        ];
        assert_eq!(created(&[&story()[..], &again].concat(), "jobs", "perf"), 2);
        assert_eq!(created(&story(), "jobs", "other"), 0);
    }
}
