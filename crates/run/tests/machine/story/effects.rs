//! Effects change the world, unless a switch of it says otherwise.

use perfval_api::meta;
use perfval_run::observed::{Child, ChildKind, ChildRef, Probe};
use perfval_run::{Effect, names};

use super::Story;

impl Story {
    pub(super) fn act(&mut self, effect: Effect) {
        let id = self.id();
        match effect {
            Effect::EnsureFinalizer => self.object.metadata.finalizers = Some(vec![meta::FINALIZER.into()]),
            Effect::ReleaseFinalizer => self.gone = true,
            Effect::CreateClaimTemplate(_) => self.child(ChildKind::ClaimTemplate, &names::deployment(&id)),
            Effect::CreateWorkersService(_) => self.child(ChildKind::Service, &names::workers_service(&id)),
            Effect::CreateNetworkPolicy(_) => self.child(ChildKind::NetworkPolicy, &names::deployment(&id)),
            Effect::CreateDeployment(_) => {
                self.deployed = true;
                self.child(ChildKind::Deployment, &names::deployment(&id));
            }
            Effect::CreateCacheClaim(_) => {}
            Effect::CreateCacheJob(_) => self.cache_job = self.cache_job.or(Some("Complete")),
            Effect::CreateTrialJob(_) => {
                self.trial_job = self.status().state.trials.last().map(|trial| trial.number);
                let name = names::trial_job(&id, self.trial_job.unwrap_or(0));
                self.child(ChildKind::Job, &name);
            }
            Effect::Probe(_) => self.probe = Probe::Answered(self.answer.clone()),
            Effect::SaveResults(map) => {
                if !self.saving_fails {
                    self.saved = Some(perfval_run::build::results_sha256(&map));
                    let name = map.metadata.name.clone().unwrap_or_default();
                    self.results.insert(name, *map);
                }
            }
            Effect::Delete(child) => {
                let deleted = self.children.iter_mut().filter(|existing| existing.id == child);
                deleted.for_each(|child| child.deleting = true);
                self.finish_deletions();
            }
            Effect::DeleteSelf => {
                self.delete();
            }
        }
    }

    /// Removes what is being deleted, unless finalizers hold it.
    pub(super) fn finish_deletions(&mut self) {
        if self.stuck {
            return;
        }
        let is_gone = |child: &Child| child.deleting && child.id.kind == ChildKind::Deployment;
        self.deployed &= !self.children.iter().any(is_gone);
        self.children.retain(|child| !child.deleting);
    }

    fn child(&mut self, kind: ChildKind, name: &str) {
        let id = ChildRef {
            kind,
            name: name.into(),
            uid: format!("uid-{name}"),
        };
        if !self.children.iter().any(|child| child.id == id) {
            self.children.push(Child {
                id,
                deleting: false,
                run: self.id(),
                ours: true,
            });
        }
    }
}
