//! Objects of a cluster in the API server in memory, and the way back of what its kubelets report.

use std::collections::{BTreeSet, HashMap, HashSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::{DynamicObject, TypeMeta};
use kube::runtime::watcher::{self, Event, watcher};
use perfval_api::meta::RUN_LABEL;
use perfval_testkit::api_server::ApiServer;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::super::Outcome;
use super::super::real::{Kind, api};

/// Reports under way at once.
const AT_ONCE: usize = 32;
const OURS: &str = "perfvalidation.dev/v1alpha1";

/// Namespace and name.
type Whose = (String, String);

/// A mirror. Between two calls of [`Mirror::follow`] only the kubelets of this program change it.
pub struct Mirror {
    pub server: ApiServer,
    client: Client,
    followed: Vec<Followed>,
    /// Pods that their kubelet has to remove.
    leaving: BTreeSet<String>,
    /// Newest known version of each pod: an older event may come after the answer to a report.
    versions: HashMap<Whose, u64>,
    namespace: &'static str,
}

/// Objects of one kind.
struct Followed {
    plural: &'static str,
    /// Items of a list of built-in kinds have none.
    types: TypeMeta,
    events: UnboundedReceiver<Result<Event<DynamicObject>, watcher::Error>>,
    /// Those of a list that is being read again.
    listed: HashSet<Whose>,
}

impl Mirror {
    /// Follows the operator's objects, and those of the runs in a namespace.
    pub fn start(client: &Client, server: &ApiServer, namespace: &'static str) -> Self {
        let here = Some(namespace);
        let kinds: [(Kind, Option<&str>); 9] = [
            (("v1", "Node", "nodes", None), None),
            (("v1", "Pod", "pods", here), Some(RUN_LABEL)),
            (("batch/v1", "Job", "jobs", here), None),
            (("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", here), None),
            (
                (
                    "resource.k8s.io/v1",
                    "ResourceClaimTemplate",
                    "resourceclaimtemplates",
                    here,
                ),
                None,
            ),
            (
                (
                    "nvidia.com/v1beta1",
                    "DynamoGraphDeployment",
                    "dynamographdeployments",
                    here,
                ),
                None,
            ),
            ((OURS, "PerfValidation", "perfvalidations", here), None),
            ((OURS, "PerfValidationPolicy", "perfvalidationpolicies", None), None),
            ((OURS, "NodePerformance", "nodeperformances", None), None),
        ];
        let followed = kinds.map(|(kind, label)| {
            let config = label.map_or_else(watcher::Config::default, |label| {
                watcher::Config::default().labels(label)
            });
            let (to, events) = unbounded_channel();
            let mut watch = watcher(api(client, kind), config).boxed();
            // A connection hands over its next piece only while somebody waits for it.
            tokio::spawn(async move {
                while let Some(event) = watch.next().await {
                    if to.send(event).is_err() {
                        break;
                    }
                }
            });
            Followed {
                plural: kind.2,
                types: TypeMeta {
                    api_version: kind.0.to_owned(),
                    kind: kind.1.to_owned(),
                },
                events,
                listed: HashSet::new(),
            }
        });
        Self {
            server: server.clone(),
            client: client.clone(),
            followed: followed.into(),
            leaving: BTreeSet::new(),
            versions: HashMap::new(),
            namespace,
        }
    }

    /// Takes over what has changed.
    pub fn follow(&mut self) -> Outcome<()> {
        for place in 0..self.followed.len() {
            while let Ok(event) = self.followed[place].events.try_recv() {
                match event {
                    Ok(event) => self.take(place, event)?,
                    // The watch begins anew.
                    Err(error) => eprintln!("{}: {error}", self.followed[place].plural),
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, place: usize, event: Event<DynamicObject>) -> Outcome<()> {
        match event {
            Event::Init => self.followed[place].listed.clear(),
            Event::InitApply(object) => {
                self.followed[place].listed.insert(whose(&object));
                self.put(place, object)?;
            }
            Event::Apply(object) => self.put(place, object)?,
            Event::Delete(object) => self.remove(place, &whose(&object)),
            Event::InitDone => {
                let followed = &self.followed[place];
                let known = self.server.shared(followed.plural);
                let known = known.iter().map(|object| {
                    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                    (text("namespace"), text("name"))
                });
                let gone: Vec<Whose> = known.filter(|of| !followed.listed.contains(of)).collect();
                for of in gone {
                    self.remove(place, &of);
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, place: usize, mut object: DynamicObject) -> Outcome<()> {
        let of = whose(&object);
        object.types = Some(self.followed[place].types.clone());
        match self.followed[place].plural {
            "pods" => {
                let version = object
                    .metadata
                    .resource_version
                    .as_deref()
                    .unwrap_or_default()
                    .parse()?;
                let known = self.versions.entry(of).or_default();
                if version < *known {
                    return Ok(());
                }
                *known = version;
                let meta = &object.metadata;
                if meta.deletion_timestamp.is_some() && meta.deletion_grace_period_seconds != Some(0) {
                    self.leaving.extend(meta.name.clone());
                }
                self.server.put(serde_json::to_value(object)?);
            }
            // A node is 20 KB and changes with each heartbeat.
            "nodes" => {
                let meta = json!({"name": object.metadata.name, "uid": object.metadata.uid});
                self.server
                    .put(json!({"apiVersion": "v1", "kind": "Node", "metadata": meta}));
            }
            _ => {
                self.server.put(serde_json::to_value(object)?);
            }
        }
        Ok(())
    }

    /// Removes an object, whatever holds it.
    fn remove(&mut self, place: usize, of: &Whose) {
        let (plural, (namespace, name)) = (self.followed[place].plural, of);
        if plural == "pods" {
            self.versions.remove(of);
        }
        if self.server.exists(plural, namespace, name) {
            self.server.edit(plural, namespace, name, |object| {
                object["metadata"]["finalizers"] = Value::Null;
            });
            self.server.delete(plural, namespace, name);
        }
    }

    /// Removes the pods that are to go, and reports the others that have changed since a version of the mirror.
    pub async fn report_pods_since(&mut self, version: u64) -> Outcome<()> {
        let pods = api(&self.client, ("v1", "Pod", "pods", Some(self.namespace)));
        let leaving = std::mem::take(&mut self.leaving).into_iter();
        stream::iter(leaving.map(Ok))
            .try_for_each_concurrent(AT_ONCE, |name| remove(&pods, name))
            .await?;
        let changes = self.server.changes_since(version).into_iter();
        let of_pods = changes.filter(|change| change.plural == "pods" && change.kind != "DELETED");
        let names: BTreeSet<String> = of_pods.map(|change| change.name).collect();
        let known = names
            .iter()
            .filter_map(|name| self.server.get("pods", self.namespace, name));
        let known: Vec<Result<Value, kube::Error>> = known.map(Ok).collect();
        let reports: Vec<Option<DynamicObject>> = stream::iter(known)
            .map_ok(|pod| report(&pods, pod))
            .try_buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let place = self.followed.iter().position(|followed| followed.plural == "pods");
        for pod in reports.into_iter().flatten() {
            self.put(place.unwrap_or_default(), pod)?;
        }
        Ok(())
    }
}

/// Removes a pod, as a kubelet does once its containers have ended.
async fn remove(pods: &kube::Api<DynamicObject>, name: String) -> Result<(), kube::Error> {
    match pods.delete(&name, &DeleteParams::default().grace_period(0)).await {
        Err(kube::Error::Api(refusal)) if refusal.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

/// Writes the status of a pod; `None` if there is another one of its name, or none any more.
async fn report(pods: &kube::Api<DynamicObject>, pod: Value) -> Result<Option<DynamicObject>, kube::Error> {
    let (name, status) = (pod["metadata"]["name"].as_str().unwrap_or_default(), &pod["status"]);
    let body = json!({"metadata": {"uid": pod["metadata"]["uid"]}, "status": {
        "phase": status["phase"], "podIP": status["podIP"], "podIPs": [{"ip": status["podIP"]}],
        "conditions": status["conditions"], "containerStatuses": status["containerStatuses"],
    }});
    let written = pods
        .patch_status(name, &PatchParams::default(), &Patch::Merge(&body))
        .await;
    match written {
        Ok(pod) => Ok(Some(pod)),
        Err(kube::Error::Api(refusal)) if refusal.is_not_found() || refusal.is_conflict() => Ok(None),
        Err(error) => Err(error),
    }
}

fn whose(object: &DynamicObject) -> Whose {
    let meta = &object.metadata;
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn pod(name: &str) -> Value {
        let meta = json!({"namespace": "perf", "name": name, "labels": {RUN_LABEL: "0"}, "finalizers": ["f"]});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": {"phase": "Pending"}})
    }

    async fn until(mirror: &mut Mirror, is_so: impl Fn(&ApiServer) -> bool) {
        for _ in 0..500 {
            mirror.follow().expect("it follows");
            if is_so(&mirror.server) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", mirror.server.objects("pods"));
    }

    #[tokio::test]
    async fn a_mirror_shows_the_cluster_and_reports_its_pods() {
        let (cluster, server) = (ApiServer::new(), ApiServer::new());
        for server in [&cluster, &server] {
            server.install_dynamo(&["v1beta1"], None);
        }
        cluster.put(pod("a"));
        cluster.put(pod("b"));
        let mut mirror = Mirror::start(&cluster.client(), &server, "perf");
        until(&mut mirror, |server| server.objects("pods").len() == 2).await;

        let before = server.version();
        server.edit("pods", "perf", "a", |pod| pod["status"]["phase"] = "Running".into());
        mirror.report_pods_since(before).await.expect("a report");
        let phase = |server: &ApiServer, name: &str| {
            server
                .get("pods", "perf", name)
                .map(|pod| pod["status"]["phase"].clone())
        };
        assert_eq!(phase(&cluster, "a"), Some(json!("Running")));
        assert_eq!(phase(&cluster, "b"), Some(json!("Pending")));

        // Events from before the report do not take it back.
        let old: DynamicObject = serde_json::from_value(pod("a")).expect("a pod");
        let place = mirror
            .followed
            .iter()
            .position(|followed| followed.plural == "pods")
            .expect("pods");
        let old = DynamicObject {
            metadata: kube::core::ObjectMeta {
                resource_version: Some("1".to_owned()),
                ..old.metadata
            },
            ..old
        };
        mirror.put(place, old.clone()).expect("a put");
        assert_eq!(phase(&server, "a"), Some(json!("Running")));

        // A list that is read again lacks what is gone, whatever its finalizers.
        mirror.take(place, Event::Init).expect("a list");
        mirror.take(place, Event::InitApply(old)).expect("a pod");
        mirror.take(place, Event::InitDone).expect("its end");
        assert_eq!((phase(&server, "a").is_some(), phase(&server, "b")), (true, None));
    }
}
