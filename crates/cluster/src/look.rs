//! One look at the cluster for the whole queue: the common part of the inventory is followed, the rest once for each
//! namespace and each class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use k8s_openapi::api::resource::v1::DeviceClass;
use kube::api::{Api, ListParams};
use kube::core::{Resource, ResourceExt as _};
use perfval_api::PerfValidationSpec;
use perfval_run::Settings;
use perfval_run::queue::{Contender, Line};
use perfval_sizing::inventory::{CacheVolume, Inventory, OfRun};
use perfval_sizing::{Naming, Seen};
use serde::de::DeserializeOwned;

use crate::Cluster;
use crate::call::{ALL, Listed, Read, read, seen};
use crate::followed::LookTurn;

/// Calls at once for single reads. Three thousand at the same moment would wait for one another longer than the
/// time-out of each.
const AT_ONCE: usize = 8;

static EVERY_NODE_REACHES_IT: Seen<CacheVolume> = Seen::Absent;

/// Everything that the planner reads, or that is read for all policies.
#[derive(Default)]
pub struct Look {
    /// All runs that hold or want a node.
    pub line: Seen<Line>,
    classes: BTreeMap<String, Seen<DeviceClass>>,
    namespaces: BTreeMap<String, OfNamespace>,
    /// Volumes of model caches, by namespace and claim; read for the runs that are about to get a node.
    volumes: BTreeMap<(String, String), Seen<CacheVolume>>,
    /// Inventory that all runs share; absent if no run waits.
    turn: Option<LookTurn>,
}

/// Limits of the runs of one namespace, and the names that they may use.
struct OfNamespace {
    quotas: Seen<Vec<ResourceQuota>>,
    limit_ranges: Seen<Vec<LimitRange>>,
    naming: Naming,
}

impl Look {
    /// Returns the inventory that all runs share.
    pub fn inventory(&self) -> &Inventory {
        static NOT_ASKED: LazyLock<Inventory> = LazyLock::new(Inventory::default);
        self.turn.as_ref().map_or(&NOT_ASKED, LookTurn::inventory)
    }

    /// Reads of sizing for a run that waits.
    pub fn for_run(&self, run: &Contender) -> Option<OfRun<'_>> {
        let of_namespace = self.namespaces.get(&run.namespace)?;
        let volume = cache_of(run).and_then(|claim| self.volumes.get(&claim));
        Some(OfRun {
            device_class: self.classes.get(&run.wants.as_ref()?.device_class)?,
            quotas: &of_namespace.quotas,
            limit_ranges: &of_namespace.limit_ranges,
            cache_volume: volume.unwrap_or(&EVERY_NODE_REACHES_IT),
            naming: &of_namespace.naming,
        })
    }

    /// Reads of sizing for a spec of a policy. Quotas are read when a validation gets its GPUs.
    pub fn for_spec(&self, spec: &PerfValidationSpec) -> Option<OfRun<'_>> {
        static NO_QUOTAS: Seen<Vec<ResourceQuota>> = Seen::Present(Vec::new());
        static NO_LIMITS: Seen<Vec<LimitRange>> = Seen::Present(Vec::new());
        static NAMING: Naming = Naming::All;
        Some(OfRun {
            device_class: self.classes.get(&spec.placement.device_class_name)?,
            quotas: &NO_QUOTAS,
            limit_ranges: &NO_LIMITS,
            cache_volume: &EVERY_NODE_REACHES_IT,
            naming: &NAMING,
        })
    }

    /// Reads the places of model caches, by namespace and claim. Returns true if any of them is new: then the plan
    /// has to be made again. A thousand runs that wait cost no read.
    pub async fn locate_caches(&mut self, cluster: &Cluster, claims: BTreeSet<(String, String)>) -> bool {
        let unread = claims.into_iter().filter(|claim| !self.volumes.contains_key(claim));
        let unread: Vec<_> = unread.collect();
        // Futures made here, not in the stream: a borrowing closure in it would not be Send for a spawned plan.
        let reads: Vec<_> = unread
            .iter()
            .map(|(namespace, claim)| async move {
                let volume = cluster.cache_volume(namespace, Some(claim)).await;
                ((namespace.clone(), claim.clone()), volume)
            })
            .collect();
        let read: Vec<_> = stream::iter(reads).buffer_unordered(AT_ONCE).collect().await;
        self.volumes.extend(read);
        !unread.is_empty()
    }
}

/// Namespace and name of the volume claim with the model cache of a run that waits.
pub fn cache_of(run: &Contender) -> Option<(String, String)> {
    let claim = run.wants.as_ref()?.cache_claim.clone()?;
    Some((run.namespace.clone(), claim))
}

impl Cluster {
    /// The queue, and what sizing counts for all of it. The queue is read first: a run that gives its node back in
    /// between is seen as holding it, never the other way round. `can_move`: see [`Line::leave_out`].
    pub async fn look(&self, settings: &Settings, can_move: impl Fn(&str) -> Option<bool>) -> Look {
        let mut line = seen(self.line().await);
        if let Seen::Present(line) = &mut line {
            line.leave_out(can_move);
        }
        let runs = line.present().map_or(&[][..], |line| line.runs.as_slice());
        let waiting = || runs.iter().filter_map(|run| Some((run, run.wants.as_ref()?)));
        let namespaces: BTreeSet<&str> = waiting().map(|(run, _)| run.namespace.as_str()).collect();
        let classes: BTreeSet<&str> = waiting().map(|(_, wish)| wish.device_class.as_str()).collect();
        if namespaces.is_empty() {
            return Look {
                line,
                ..Look::default()
            };
        }
        // Holders are read last, after everything that may make a device free.
        let of_runs = async {
            futures::join!(
                self.classes(&classes),
                self.list_by_namespace::<ResourceQuota>("list ResourceQuotas", &namespaces),
                self.list_by_namespace::<LimitRange>("list LimitRanges", &namespaces),
            )
        };
        let ((classes, quotas, limit_ranges), turn) = Box::pin(self.counted(of_runs)).await;
        let of_namespace = |namespace: &&str| {
            let found = OfNamespace {
                quotas: in_namespace(&quotas, namespace),
                limit_ranges: in_namespace(&limit_ranges, namespace),
                naming: settings.naming(namespace),
            };
            ((*namespace).to_owned(), found)
        };
        let namespaces = namespaces.iter().map(of_namespace).collect();
        Look {
            line,
            classes,
            namespaces,
            turn: Some(turn),
            ..Look::default()
        }
    }

    /// Reads the inventory and the device classes of these specs. It waits while another look holds the inventory.
    pub async fn survey(&self, specs: &[&PerfValidationSpec]) -> Look {
        let names = specs.iter().map(|spec| spec.placement.device_class_name.as_str());
        let names: BTreeSet<&str> = names.collect();
        let (classes, turn) = Box::pin(self.counted(self.classes(&names))).await;
        Look {
            classes,
            turn: Some(turn),
            ..Look::default()
        }
    }

    pub(crate) async fn classes(&self, names: &BTreeSet<&str>) -> BTreeMap<String, Seen<DeviceClass>> {
        let reads: Vec<_> = names
            .iter()
            .map(|&name| async move { (name.to_owned(), seen(self.device_class(name).await)) })
            .collect();
        stream::iter(reads).buffer_unordered(AT_ONCE).collect().await
    }

    /// The objects of a kind in these namespaces, by one list for all of them.
    async fn list_by_namespace<K>(&self, call: &str, namespaces: &BTreeSet<&str>) -> Seen<BTreeMap<String, Vec<K>>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let kept = |(): &mut (), mut object: K| {
            object.meta_mut().managed_fields = None;
            let namespace = object.namespace()?;
            namespaces.contains(namespace.as_str()).then_some((namespace, object))
        };
        let all = self.list_as(ALL, api.resource_url(), ListParams::default(), (), kept);
        let by_namespace = |all: Listed<(String, K)>| {
            let mut by_namespace: BTreeMap<String, Vec<K>> = BTreeMap::new();
            for (namespace, object) in all.items {
                by_namespace.entry(namespace).or_default().push(object);
            }
            by_namespace
        };
        let all: Read<_> = read(call, all.await);
        seen(all.map(by_namespace))
    }
}

fn in_namespace<K: Clone>(all: &Seen<BTreeMap<String, Vec<K>>>, namespace: &str) -> Seen<Vec<K>> {
    all.map(|all| all.get(namespace).cloned().unwrap_or_default())
}
