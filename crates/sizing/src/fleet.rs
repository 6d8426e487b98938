//! A cluster as all runs of one look see it: read, sorted and indexed once.
//!
//! One look sizes five thousand runs on five thousand nodes, because a run looks only at the nodes that its selector
//! admits, and counts the GPUs only of those that it could have.

use std::cell::{Cell, OnceCell, RefCell};
use std::hash::Hash;
use std::rc::Rc;

use foldhash::{HashMap, HashMapExt as _};
use perfval_api::PerfValidationSpec;

use super::busy_devices::Odd;
use super::dra::{Devices, SelectedClass};
use super::examine::Circumstances;
use super::pods::PodsByNode;
use super::seen::first_unread;
use crate::inventory::{Inventory, Node, OfRun, PodUse};
use crate::{Granted, HeldNodes, Naming, Seen};

/// A cluster, for all runs of one look.
pub struct Fleet<'a> {
    /// Fails with the reason if a part of the cluster is unknown, so that it cannot be counted.
    pub(crate) readable: Result<(), String>,
    pub(crate) has_slices: bool,
    /// By name.
    pub(crate) nodes: Vec<&'a Node>,
    pods: PodsByNode<'a>,
    pods_by_name: OnceCell<Vec<&'a PodUse>>,
    all_pods: &'a [PodUse],
    devices: Devices<'a>,
    classes: Cache<String, SelectedClass<'a>>,
    labels: Cache<String, ByValue<'a>>,
    gpu_nodes: Cache<[String; 2], [usize]>,
    totals: Cache<String, [i64]>,
    odd: OnceCell<Vec<Odd<'a>>>,
    examined: Cell<usize>,
}

/// Values that are made at their first use.
type Cache<K, V> = RefCell<HashMap<K, Rc<V>>>;

/// Nodes by the value of one label, each as its place among all.
type ByValue<'a> = HashMap<&'a str, Vec<usize>>;

impl<'a> Fleet<'a> {
    /// Sorts the inventory. Parts that were read for one run alone are ignored.
    pub fn new(inventory: &'a Inventory) -> Self {
        let mut nodes: Vec<&Node> = inventory.nodes.present().into_iter().flatten().collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let all_pods = inventory.pods.present().map(Vec::as_slice).unwrap_or_default();
        Self {
            readable: check_reads(inventory),
            has_slices: !inventory.slices.is_absent(),
            nodes,
            pods: PodsByNode::new(all_pods),
            pods_by_name: OnceCell::new(),
            all_pods,
            devices: Devices::read(inventory),
            classes: Cache::default(),
            labels: Cache::default(),
            gpu_nodes: Cache::default(),
            totals: Cache::default(),
            odd: OnceCell::new(),
            examined: Cell::new(0),
        }
    }

    /// Number of nodes examined until now, for all runs together.
    pub fn examined(&self) -> usize {
        self.examined.get()
    }

    /// Oddities of the allocations, in words for people: devices that are held but no longer published, and devices that
    /// two claims hold. They do not change the count.
    pub fn warnings(&self, naming: &Naming) -> Vec<String> {
        if !self.has_slices {
            return Vec::new();
        }
        let odd = self.odd.get_or_init(|| self.devices.odd());
        odd.iter().map(|odd| odd.in_words(naming)).collect()
    }

    pub(crate) fn examines(&self) {
        self.examined.set(self.examined.get() + 1);
    }

    /// The class of a run. There is one of each name in a cluster.
    pub(crate) fn class(&self, of_run: OfRun<'_>, spec: &PerfValidationSpec) -> Rc<SelectedClass<'a>> {
        let name = &spec.placement.device_class_name;
        let class = || Rc::new(self.devices.class(of_run.device_class, name));
        cached(&self.classes, name.clone(), class)
    }

    /// The cluster as one run sees it.
    pub(crate) fn world<'w>(
        &'w self,
        class: &'w SelectedClass<'w>,
        of_run: OfRun<'w>,
        spec: &'w PerfValidationSpec,
        held: &'w HeldNodes,
        granted: &[Granted<'_>],
    ) -> Circumstances<'w> {
        let has_quotas = of_run.quotas.present().is_some_and(|quotas| !quotas.is_empty());
        let others: Vec<(Granted<'_>, usize)> = granted
            .iter()
            .filter(|_| has_quotas)
            .map(|run| (*run, run.pods.map_or(0, |prefix| self.pods_named(prefix))))
            .collect();
        Circumstances::new(
            self.devices.select(class, &spec.placement),
            &self.pods,
            of_run,
            spec,
            held,
            &others,
        )
    }

    /// Number of pods whose name begins with `prefix`, without the pod that fills the model cache.
    fn pods_named(&self, prefix: &str) -> usize {
        let pods = self.pods_by_name.get_or_init(|| {
            let mut pods: Vec<&PodUse> = self.all_pods.iter().collect();
            pods.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            pods
        });
        let from = pods.partition_point(|pod| *pod.name < *prefix);
        let named = pods[from..].iter().map_while(|pod| pod.name.strip_prefix(prefix));
        named.filter(|rest| !rest.starts_with("cache-")).count()
    }

    /// The nodes that have a label, in order.
    pub(crate) fn labelled(&self, key: &str, value: &str) -> Vec<usize> {
        let by_value = cached(&self.labels, key.to_owned(), || {
            let mut by_value = ByValue::new();
            for (index, node) in self.nodes.iter().enumerate() {
                if let Some(value) = node.label(key) {
                    by_value.entry(value).or_default().push(index);
                }
            }
            Rc::new(by_value)
        });
        by_value.get(value).cloned().unwrap_or_default()
    }

    /// The nodes that have GPUs for a run or claim to have some, as indexes in order.
    pub(crate) fn gpu_nodes(&self, world: &Circumstances<'_>) -> Rc<[usize]> {
        let placement = &world.spec.placement;
        let key = [placement.device_class_name.clone(), placement.resource_name.clone()];
        cached(&self.gpu_nodes, key, || {
            let all = 0..self.nodes.len();
            all.filter(|index| world.has_gpus(self.nodes[*index])).collect()
        })
    }

    /// The GPUs that each node shows to a run; none where they cannot be counted.
    pub(crate) fn totals(&self, world: &Circumstances<'_>) -> Rc<[i64]> {
        let placement = &world.spec.placement;
        let key = format!(
            "{} {} {:?} {:?}",
            placement.device_class_name, placement.resource_name, placement.allocation, placement.device_tolerations
        );
        let total = |node: &&Node| world.total(node);
        cached(&self.totals, key, || self.nodes.iter().map(total).collect())
    }
}

fn cached<K: Eq + Hash, V: ?Sized>(cache: &Cache<K, V>, key: K, build: impl FnOnce() -> Rc<V>) -> Rc<V> {
    if let Some(known) = cache.borrow().get(&key) {
        return known.clone();
    }
    let made = build();
    cache.borrow_mut().insert(key, made.clone());
    made
}

/// Fails with the unknown part of a cluster, and the reason.
fn check_reads(inventory: &Inventory) -> Result<(), String> {
    let Inventory {
        slices,
        taint_rules,
        nodes,
        pods,
        promises,
        claims,
        device_class: _,
        quotas: _,
        limit_ranges: _,
        cache_volume: _,
        naming: _,
    } = inventory;
    first_unread([
        ("resource slices", slices.unknown()),
        ("device taint rules", taint_rules.unknown()),
        ("nodes", nodes.unknown()),
        ("pods", pods.unknown()),
        ("bind requests", promises.unknown()),
        ("resource claims", claims.unknown()),
    ])?;
    if slices.present().is_some() && claims.is_absent() {
        return Err("resource slices are served, but resource claims are not".to_owned());
    }
    match (nodes, pods) {
        (Seen::Present(_), Seen::Present(_)) => Ok(()),
        _ => Err("the API server serves no nodes or no pods".to_owned()),
    }
}

/// Fails with the unknown part among the reads for one run, and the reason.
pub(crate) fn check_reads_of_run(of_run: OfRun<'_>) -> Result<(), String> {
    let OfRun {
        device_class,
        quotas,
        limit_ranges,
        cache_volume,
        naming: _,
    } = of_run;
    first_unread([
        ("device class", device_class.unknown()),
        ("resource quotas", quotas.unknown()),
        ("limit ranges", limit_ranges.unknown()),
        ("model cache", cache_volume.unknown()),
    ])
}
