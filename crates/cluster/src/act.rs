//! Changes: the calls of each [`Effect`]. Every one may be repeated, because a crash or a time-out repeats it.

mod create;
pub(crate) mod delete;
mod finalizer;
mod results;

use kube::core::ObjectMeta;
use perfval_run::{Effect, Run};

use crate::{Cluster, Error};

impl Cluster {
    /// Carries out effects in their order, and stops at the first failure. A failed delete does not stop further deletes: a
    /// Job that may not be deleted must not leave the deployment its GPUs.
    ///
    /// Returns the metadata of the run's own object, if an effect changed it.
    pub async fn act(&self, run: &Run<'_>, effects: &[Effect]) -> Result<Option<ObjectMeta>, Error> {
        let mut metadata = None;
        let mut not_deleted = Ok(());
        for effect in effects {
            let deletes = matches!(effect, Effect::Delete(_));
            if not_deleted.is_err() && !deletes {
                break;
            }
            match self.carry_out(run, effect).await {
                Ok(None) => {}
                Ok(changed) => metadata = changed,
                Err(failed) if deletes => not_deleted = not_deleted.and(Err(failed)),
                Err(failed) => return Err(failed),
            }
        }
        not_deleted.map(|()| metadata)
    }

    async fn carry_out(&self, run: &Run<'_>, effect: &Effect) -> Result<Option<ObjectMeta>, Error> {
        let done = match effect {
            Effect::EnsureFinalizer => return self.ensure_finalizer(run).await,
            Effect::ReleaseFinalizer => return self.release_finalizer(run).await,
            Effect::CreateClaimTemplate(template) => self.create(run, &**template).await,
            Effect::CreateCacheClaim(claim) => self.create_cache_claim(run, claim).await,
            Effect::CreateCacheJob(job) => self.create(run, job.as_ref()).await,
            Effect::CreateTrialJob(job) => self.create_trial_job(run, job).await,
            Effect::CreateWorkersService(service) => self.create(run, service.as_ref()).await,
            Effect::CreateNetworkPolicy(policy) => self.create(run, policy.as_ref()).await,
            Effect::CreateDeployment(deployment) => self.create_deployment(run, deployment).await,
            Effect::Probe(request) => {
                self.probes.send(run, request);
                Ok(())
            }
            Effect::SaveResults(results) => self.save_results(run, results).await,
            Effect::Delete(child) => self.delete_child(run, child).await,
            Effect::DeleteSelf => self.delete_self(run).await,
        };
        done.map(|()| None)
    }
}

/// `namespace/name` of an object of the run, for errors.
fn in_namespace(run: &Run<'_>, name: &str) -> String {
    format!("{}/{name}", run.namespace())
}
