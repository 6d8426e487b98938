//! Reads: the calls of each [`Need`]. Never fails; a read that could not be made is `Seen::Unknown`.

mod bind_requests;
mod children;
pub mod dynamo;
mod exporter;
mod inventory;
mod line;
mod log;
mod permission;
mod strays;
mod surroundings;
mod trial;
mod workload;

use futures::future::join_all;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, ListParams};
use kube::core::{DeserializeGuard, ResourceExt as _};
use parking_lot::Mutex;
use perfval_api::Phase;
use perfval_api::fleet::PerfBaseline;
use perfval_run::observed::{Child, Need, TrialSeen};
use perfval_run::{Needs, Observed, Run, job, names};
use perfval_sizing::Seen;

pub(crate) use dynamo::deployments_at;
pub use permission::{own_right, resource_attributes};

use workload::WorkloadSeen;

use crate::Cluster;
use crate::call::{Read, Unread, one_look, read, seen};
use crate::copies::RunCopies;

impl Cluster {
    /// Reads what a pass needs, all parts at once, and answers within a minute: what did not come by then is unknown.
    pub async fn observe(&self, run: &Run<'_>, needs: &Needs) -> Observed {
        if !needs.parts.contains(&Need::Probe) {
            self.probes.forget(run);
        }
        let copies = self.copies_for(run, needs);
        let mut observed = Observed {
            began: Some(self.now()),
            ..Observed::default()
        };
        // On the heap, as many reads at once.
        Box::pin(self.read_parts(run, needs, &copies, &mut observed)).await;
        observed.rests_on_copies = copies.is_used();
        observed
    }

    /// Reads parts that a decision lacks, into what a pass has seen.
    pub async fn observe_more(&self, run: &Run<'_>, needs: &Needs, observed: &mut Observed) {
        self.read_parts(run, needs, &RunCopies::default(), observed).await;
    }

    /// Reads everything again, because the decision on copies changes something. The answer of a probe is given once.
    pub async fn observe_again(&self, run: &Run<'_>, needs: &Needs, observed: &mut Observed) {
        let mut again = needs.clone();
        again.parts.remove(&Need::Probe);
        self.copies.begin_again(run);
        self.read_parts(run, &again, &RunCopies::default(), observed).await;
        observed.rests_on_copies = false;
    }

    /// Copies for a pass over a run that waits, unless the run may go on now.
    fn copies_for(&self, run: &Run<'_>, needs: &Needs) -> RunCopies {
        if !run.phase().is_some_and(Phase::is_measured) {
            self.copies.forget_object(run.object);
            return RunCopies::default();
        }
        let waits = |need: &Need| matches!(need, Need::Workload | Need::Trial | Need::Deployment | Need::Probe);
        let copies = self.copies.begin(run);
        let job_runs = |number| {
            let job = copies.last_known::<Job>(&names::trial_job(&run.id(), number));
            job.is_some_and(|job| !job::is_over(&job))
        };
        let goes_on = match needs.trial {
            Some(number) => !job_runs(number),
            None => self.probes.has_completion(run),
        };
        if goes_on || !needs.parts.iter().all(waits) {
            return RunCopies::default();
        }
        copies
    }

    async fn read_parts(&self, run: &Run<'_>, needs: &Needs, copies: &RunCopies, observed: &mut Observed) {
        let observed = Mutex::new(observed);
        let reads = needs
            .parts
            .iter()
            .map(|need| Box::pin(self.read_part(run, needs, *need, copies, &observed)));
        Box::pin(one_look(join_all(reads))).await;
    }

    /// Pods of the run and its open trial: one list shows both. A Job that has changed is read first. Most of its changes show
    /// nothing new about the pods, but its end needs new reads of everything.
    async fn measuring(&self, run: &Run<'_>, number: i64, copies: &RunCopies) -> (WorkloadSeen, Read<TrialSeen>) {
        let none = RunCopies::default();
        let (workload, job) = if copies.has_changed::<Job>(&names::trial_job(&run.id(), number)) {
            let job = self.trial_job(run, number, copies).await;
            let goes_on = job.as_ref().is_ok_and(|job| !job::is_over(job));
            (self.workload(run, if goes_on { copies } else { &none }).await, job)
        } else {
            futures::join!(self.workload(run, copies), self.trial_job(run, number, copies))
        };
        let trial = Box::pin(self.trial(run, number, job, workload.pods.present())).await;
        (workload, trial)
    }

    async fn trial_job(&self, run: &Run<'_>, number: i64, copies: &RunCopies) -> Read<Job> {
        let name = names::trial_job(&run.id(), number);
        if let Some(copy) = copies.get(&name) {
            return Ok(copy);
        }
        let job = self.job(run, &name).await?;
        self.copies
            .keep(run, &job.resource_version().unwrap_or_default(), [&job]);
        Ok(job)
    }

    async fn read_part(
        &self,
        run: &Run<'_>,
        needs: &Needs,
        need: Need,
        copies: &RunCopies,
        observed: &Mutex<&mut Observed>,
    ) {
        // Locked for one assignment, whose value is read before.
        let observed = || observed.lock();
        match need {
            Need::Permission => {
                let answer = self.may_run_in(run.namespace()).await;
                observed().permission = seen(read("ask for the operator's own right", answer));
            }
            Need::Dynamo => {
                observed().dynamo = seen(self.dynamo().await);
                observed().kubernetes = self.version().await.ok();
            }
            Need::StorageClasses => observed().storage_classes = seen(self.storage_classes().await),
            Need::Holders => observed().holders = seen(self.holders().await),
            // On the heap, as all four with many calls at once.
            Need::Inventory => {
                let inventory = Box::pin(self.inventory_for(run)).await;
                observed().inventory = Seen::Present(inventory);
            }
            Need::Devices => {
                let node = run.placement().map_or("", |plan| &plan.node);
                let known = match &run.status().state.gpu_check {
                    None => Box::pin(self.known_devices_of(node)).await,
                    Some(_) => None,
                };
                let mut inventory = match known {
                    Some(known) => known,
                    None => Box::pin(self.devices_of(node)).await,
                };
                inventory.naming = run.settings.naming(run.namespace());
                observed().devices = Seen::Present(inventory);
            }
            // On the heap: four lists at once.
            Need::Children => {
                let (children, failed) = Box::pin(self.children(run)).await;
                let mut observed = observed();
                (observed.children, observed.listed_children) = match failed {
                    Ok(()) => (Seen::Present(children), Vec::new()),
                    Err(unread) => (seen(Err(unread)), children),
                };
            }
            Need::Deployment => observed().deployment = seen(self.deployment(run, copies).await),
            Need::DryRun => observed().dry_run = seen(self.dry_run(run).await),
            Need::Workload => {
                let workload = if let Some(number) = needs.trial {
                    // On the heap: six reads at once.
                    let (workload, trial) = Box::pin(self.measuring(run, number, copies)).await;
                    observed().trial = seen(trial);
                    workload
                } else {
                    self.workload(run, copies).await
                };
                put_workload(&mut observed(), workload);
            }
            Need::Claims => observed().claims = seen(self.claims_of(run).await),
            Need::Probe => observed().probe = self.probes.take(run),
            // Read with the pods, which a phase with a trial needs too.
            Need::Trial => {}
            Need::GpuExporter => observed().gpu_exporter = seen(Box::pin(self.gpu_exporter(run)).await),
            Need::Results => {
                if let Some(written) = self.take_written(run) {
                    let (all, is_there) = self.find_results(run, &written).await;
                    if is_there {
                        observed().saved_results = all;
                        observed().written_results = Some(written);
                        return;
                    }
                }
                let (saved, trials) =
                    futures::join!(self.saved_results(run), self.packed_trials(run, &needs.finished_trials));
                observed().results = seen(saved);
                observed().packed_trials = trials;
            }
            Need::SavedRun => observed().saved_run = seen(self.saved_run(run).await),
            Need::SavedResults => observed().saved_results = seen(self.results_of_all_runs(run).await),
            Need::CacheJob => observed().cache_job = seen(self.job(run, &names::cache_job(&run.id())).await),
            Need::Baselines => observed().baselines = seen(self.baselines().await),
        }
    }

    async fn storage_classes(&self) -> Read<Vec<StorageClass>> {
        let api: Api<StorageClass> = Api::all(self.client.clone());
        read("list StorageClasses", self.list(&api, ListParams::default()).await)
    }

    /// Unknown if one of them cannot be parsed: it may be that of this environment.
    async fn baselines(&self) -> Read<Vec<PerfBaseline>> {
        let api: Api<DeserializeGuard<PerfBaseline>> = Api::all(self.client.clone());
        let listed = read("list PerfBaselines", self.list(&api, ListParams::default()).await)?;
        let parsed = listed.into_iter().map(|DeserializeGuard(baseline)| {
            baseline.map_err(|invalid| {
                let name = invalid.metadata.name.unwrap_or_default();
                let why = invalid.error;
                Unread::Unknown(format!(
                    "this version cannot parse PerfBaseline {name}: {why}; correct or delete it"
                ))
            })
        });
        parsed.collect()
    }

    async fn job(&self, run: &Run<'_>, name: &str) -> Read<Job> {
        let api: Api<Job> = Api::namespaced(self.client.clone(), run.namespace());
        let call = format!("get Job {}/{name}", run.namespace());
        read(&call, self.bounded(api.get(name)).await)
    }

    /// The results that the status refers to, with their content.
    async fn saved_run(&self, run: &Run<'_>) -> Read<ConfigMap> {
        let name = run.status().results_ref.as_ref().map_or("", |results| &results.name);
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), run.namespace());
        let call = format!("get ConfigMap {}/{name}", run.namespace());
        read(&call, self.bounded(api.get(name)).await)
    }

    /// Digest of the results that were just written for this object as it is; given once.
    fn take_written(&self, run: &Run<'_>) -> Option<String> {
        let (version, sha256) = self.written.take(&run.uid().to_owned())?;
        (version.is_some() && version == run.object.resource_version()).then_some(sha256)
    }

    /// The results of every run, and true if those of this run are there with this digest.
    async fn find_results(&self, run: &Run<'_>, sha256: &str) -> (Seen<Vec<Child>>, bool) {
        match self.results_with_digests(run).await {
            Ok(all) => {
                let name = names::results(run.name(), &run.id());
                let is_there = all
                    .iter()
                    .any(|(child, digest)| child.id.name == name && digest.as_deref() == Some(sha256));
                let all = all.into_iter().map(|(child, _)| child).collect();
                (Seen::Present(all), is_there)
            }
            // Without the list, a read of every trial's log is still saved.
            Err(unread) => {
                let saved = self.saved_results(run).await.ok().flatten();
                (seen(Err(unread)), saved.as_deref() == Some(sha256))
            }
        }
    }

    /// The digest that the results ConfigMap carries, without its content.
    async fn saved_results(&self, run: &Run<'_>) -> Read<Option<String>> {
        let name = names::results(run.name(), &run.id());
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), run.namespace());
        let call = format!("get ConfigMap {}/{name}", run.namespace());
        let found = read(&call, self.bounded(api.get_metadata(&name)).await)?;
        Ok(children::digest(&found))
    }
}

fn put_workload(observed: &mut Observed, workload: WorkloadSeen) {
    let reports = workload.reports;
    observed.pods = workload.pods;
    (observed.pod_events, observed.pod_logs) = (reports.events, reports.logs);
    (observed.refusals, observed.node) = (reports.refusals, workload.node);
    (observed.endings, observed.error_logs) = (reports.endings, workload.error_logs);
    observed.preemptions = reports.preemptions;
}
