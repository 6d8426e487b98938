//! One look at the cluster for the whole queue: what sizing counts is read once, what depends on the run once for each
//! kind of wish.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use k8s_openapi::api::resource::v1::DeviceClass;
use perfval_api::PerfValidationSpec;
use perfval_run::queue::{Contender, Line};
use perfval_run::{Settings, build};
use perfval_sizing::inventory::{CacheVolume, Inventory};
use perfval_sizing::{Seen, warnings};

use crate::Cluster;
use crate::call::seen;

/// What the planner reads.
pub struct Look {
    /// All runs that hold or want a node.
    pub line: Seen<Line>,
    inventory: Inventory,
    of_runs: BTreeMap<Wish, OfRun>,
    /// Volumes of model caches, by namespace and claim; read for the runs that are about to get a node.
    volumes: BTreeMap<(String, String), Seen<CacheVolume>>,
}

/// What decides what is read for one run alone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wish {
    pub(crate) namespace: String,
    pub(crate) device_class: String,
}

/// What sizing reads for one run alone.
#[derive(Clone)]
pub(crate) struct OfRun {
    pub(crate) device_class: Seen<DeviceClass>,
    pub(crate) quotas: Seen<Vec<ResourceQuota>>,
    pub(crate) limit_ranges: Seen<Vec<LimitRange>>,
}

impl Wish {
    pub(crate) fn of(namespace: &str, spec: &PerfValidationSpec) -> Self {
        Self {
            namespace: namespace.to_owned(),
            device_class: spec.placement.device_class_name.clone(),
        }
    }

    fn of_contender(run: &Contender) -> Option<Self> {
        Some(Self::of(&run.namespace, run.wants.as_ref()?))
    }
}

impl OfRun {
    /// Puts the answers for one run in place of those for another.
    fn put_into(&self, inventory: &mut Inventory) {
        let Self {
            device_class,
            quotas,
            limit_ranges,
        } = self.clone();
        (inventory.device_class, inventory.quotas, inventory.limit_ranges) = (device_class, quotas, limit_ranges);
    }
}

impl Look {
    /// What sizing counts for a run that waits.
    pub fn inventory_for(&mut self, run: &Contender, settings: &Settings) -> &Inventory {
        self.inventory.naming = settings.naming(&run.namespace);
        if let Some(of_run) = Wish::of_contender(run).and_then(|wish| self.of_runs.get(&wish)) {
            of_run.put_into(&mut self.inventory);
        }
        let volume = cache_of(run).and_then(|claim| self.volumes.get(&claim));
        self.inventory.cache_volume = volume.cloned().unwrap_or(Seen::Absent);
        &self.inventory
    }

    /// Reads where the model caches of some runs are. Whether any of them was not known before: then the plan has to be
    /// made again. A thousand runs that wait cost no read.
    pub async fn locate_caches(&mut self, cluster: &Cluster, runs: impl Iterator<Item = &Contender>) -> bool {
        let unread: BTreeSet<_> = runs
            .filter_map(cache_of)
            .filter(|claim| !self.volumes.contains_key(claim))
            .collect();
        for (namespace, claim) in &unread {
            let volume = cluster.cache_volume(namespace, Some(claim)).await;
            self.volumes.insert((namespace.clone(), claim.clone()), volume);
        }
        !unread.is_empty()
    }

    /// What is odd about the devices, as it is reported to a run of this namespace.
    pub fn oddities(&mut self, namespace: &str, settings: &Settings) -> Vec<String> {
        self.inventory.naming = settings.naming(namespace);
        warnings(&self.inventory)
    }
}

/// Namespace and name of the volume claim with a run's model cache.
fn cache_of(run: &Contender) -> Option<(String, String)> {
    let claim = build::cache_claim_name(&run.name, run.wants.as_ref()?)?;
    Some((run.namespace.clone(), claim))
}

impl Cluster {
    /// The queue, and what sizing counts for all of it. The queue is read first: a run that gives its node back in
    /// between is seen as holding it, never the other way round.
    pub async fn look(&self) -> Look {
        let line = seen(self.line().await);
        let runs = line.present().map_or(&[][..], |line| line.runs.as_slice());
        let mut wishes: Vec<Wish> = runs.iter().filter_map(Wish::of_contender).collect();
        wishes.sort();
        wishes.dedup();
        let Some(first) = wishes.pop() else {
            return Look {
                line,
                inventory: Inventory::default(),
                of_runs: BTreeMap::new(),
                volumes: BTreeMap::new(),
            };
        };
        // Holders are read last, after everything that may make a device free.
        let others = wishes
            .into_iter()
            .map(async |wish| (wish.clone(), self.of_run(&wish).await));
        let mut of_runs: BTreeMap<Wish, OfRun> = join_all(others).await.into_iter().collect();
        let inventory = Box::pin(self.inventory(&first, None)).await;
        of_runs.insert(
            first,
            OfRun {
                device_class: inventory.device_class.clone(),
                quotas: inventory.quotas.clone(),
                limit_ranges: inventory.limit_ranges.clone(),
            },
        );
        Look {
            line,
            inventory,
            of_runs,
            volumes: BTreeMap::new(),
        }
    }
}
