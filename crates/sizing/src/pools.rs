//! Pools of devices: which slices of a driver are in force.

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use super::{counters, node_selector};
use crate::inventory::{Device, Node, Slice, SliceTarget};

/// A device of any driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId<'a> {
    pub driver: &'a str,
    pub pool: &'a str,
    pub device: &'a str,
}

/// The slices of one driver and pool name.
pub struct Pool<'a> {
    pub driver: &'a str,
    pub name: &'a str,
    /// State that shows if its devices can be counted.
    pub state: PoolState,
    /// Slices of the highest generation, by name: the order in which the scheduler walks them.
    newest: Vec<&'a Slice>,
    /// Slices of earlier generations, which a driver has not removed yet.
    outdated: Vec<&'a Slice>,
}

/// State of a pool as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolState {
    /// All slices are there.
    Complete,
    /// The driver is still publishing.
    Incomplete { present: usize, announced: i64 },
    /// The scheduler ignores the pool, for this reason.
    Invalid(String),
}

/// All pools, by driver and name, and the way from a node to its own.
pub struct Pools<'a> {
    all: Vec<Pool<'a>>,
    /// Pools with a slice for this one node: nearly all there are.
    of_node: HashMap<&'a str, Vec<usize>>,
    /// Pools with a slice for nodes by any other rule.
    shared: Vec<usize>,
}

impl<'a> Pools<'a> {
    /// Sorts slices into pools.
    pub fn new(slices: &'a [Slice]) -> Self {
        let mut slices: Vec<&Slice> = slices.iter().collect();
        // API lists are sorted by name, so this input is nearly sorted.
        slices.sort_by(|a, b| (&a.driver, &a.pool).cmp(&(&b.driver, &b.pool)));
        let all: Vec<Pool<'a>> = slices
            .chunk_by(|a, b| (&a.driver, &a.pool) == (&b.driver, &b.pool))
            .map(|group| Pool::new(&group[0].driver, &group[0].pool, group.to_vec()))
            .collect();
        let mut of_node: HashMap<&str, Vec<usize>> = HashMap::with_capacity(all.len());
        let mut shared = Vec::new();
        for (index, pool) in all.iter().enumerate() {
            let slices = || pool.newest.iter().chain(&pool.outdated);
            for name in slices().filter_map(|slice| slice.target.node_name.as_deref()) {
                let indices = of_node.entry(name).or_default();
                if indices.last() != Some(&index) {
                    indices.push(index);
                }
            }
            if slices().any(|slice| slice.target.node_name.is_none()) {
                shared.push(index);
            }
        }
        Self { all, of_node, shared }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Pool<'a>> {
        self.all.iter()
    }

    /// Pools that serve a node, or did before the driver's last change.
    pub fn concerning(&self, node: &Node) -> impl Iterator<Item = &Pool<'a>> {
        let own = self.of_node.get(&*node.name).map_or(&[][..], Vec::as_slice);
        let mut own = own.iter().copied().peekable();
        let mut shared = self.shared.iter().copied().peekable();
        // Both are in order, and a pool may be in both.
        let merged = std::iter::from_fn(move || {
            let next = own.peek().into_iter().chain(shared.peek()).min().copied()?;
            own.next_if_eq(&next);
            shared.next_if_eq(&next);
            Some(next)
        });
        merged
            .filter_map(|index| self.all.get(index))
            .filter(move |pool| pool.concerns(node))
    }
}

impl<'a> Pool<'a> {
    fn new(driver: &'a str, name: &'a str, mut slices: Vec<&'a Slice>) -> Self {
        slices.sort_by(|a, b| a.name.cmp(&b.name));
        let generation = slices.iter().map(|slice| slice.generation).max();
        let (newest, outdated) = slices
            .into_iter()
            .partition(|slice| Some(slice.generation) == generation);
        let mut pool = Self {
            driver,
            name,
            state: PoolState::Complete,
            newest,
            outdated,
        };
        pool.state = pool.judge();
        pool
    }

    /// The pool counts as complete only if all its slices are there, also those for other nodes.
    fn judge(&self) -> PoolState {
        let announced = || self.newest.iter().map(|slice| slice.slice_count);
        let present = self.newest.len();
        let count = announced().max().unwrap_or_default();
        if announced().any(|other| other != count) || i64::try_from(present) != Ok(count) {
            return PoolState::Incomplete {
                present,
                announced: count,
            };
        }
        self.fault().map_or(PoolState::Complete, PoolState::Invalid)
    }

    /// Returns true if the pool serves a node, or did a moment ago. A node that appears only in outdated slices still
    /// waits for the new ones.
    fn concerns(&self, node: &Node) -> bool {
        let unsettled = matches!(self.state, PoolState::Incomplete { .. });
        let outdated = self.outdated.iter().filter(|_| unsettled);
        self.newest.iter().chain(outdated).any(|slice| targets(slice, node))
    }

    /// Returns true if a device of a node is attached only once its pod is bound; the scheduler takes such pools
    /// last.
    pub fn binds_later(&self, node: &Node) -> bool {
        self.devices_of(node).any(|(_, device)| device.binds_later)
    }

    /// The devices in force, wherever they are.
    pub fn devices(&self) -> impl Iterator<Item = (DeviceId<'a>, &'a Device)> {
        self.slices_and_devices().map(|(id, _, device)| (id, device))
    }

    /// The devices in force that a node can use.
    pub fn devices_of(&self, node: &Node) -> impl Iterator<Item = (DeviceId<'a>, &'a Device)> {
        self.walked_for(node)
            .filter(|(.., here)| *here)
            .map(|(id, device, _)| (id, device))
    }

    /// The devices that the scheduler examines for a node, in its order, each with true if the node can use it.
    pub fn walked_for(&self, node: &Node) -> impl Iterator<Item = (DeviceId<'a>, &'a Device, bool)> {
        self.slices_and_devices()
            .filter(|(_, slice, _)| targets(slice, node))
            .map(|(id, slice, device)| (id, device, device_targets(slice, device, node)))
    }

    /// The slices in force.
    pub fn slices(&self) -> impl Iterator<Item = &'a Slice> + Clone {
        self.newest.iter().copied()
    }

    fn slices_and_devices(&self) -> impl Iterator<Item = (DeviceId<'a>, &'a Slice, &'a Device)> {
        let (driver, pool) = (self.driver, self.name);
        self.newest.iter().flat_map(move |slice| {
            slice.devices.iter().map(move |device| {
                let id = DeviceId {
                    driver,
                    pool,
                    device: &device.name,
                };
                (id, *slice, device)
            })
        })
    }

    /// Fault that makes the scheduler ignore a complete pool.
    fn fault(&self) -> Option<String> {
        let mut names = HashSet::with_capacity(self.newest.iter().map(|slice| slice.devices.len()).sum());
        if let Some((id, _)) = self.devices().find(|(id, _)| !names.insert(id.device)) {
            return Some(format!("two devices are called {}", id.device));
        }
        let targets = self.newest.iter().flat_map(|slice| {
            let of_devices = slice.devices.iter().filter_map(|device| device.target.as_deref());
            of_devices.chain([&slice.target])
        });
        let mut selectors = targets.filter_map(|target| target.node_selector.as_deref());
        selectors
            .find_map(node_selector::fault)
            .or_else(|| counters::fault(self.slices()))
    }
}

fn targets(slice: &Slice, node: &Node) -> bool {
    let mut devices = slice.devices.iter();
    reaches(&slice.target, node)
        || (slice.target_per_device && devices.any(|device| device_targets(slice, device, node)))
}

fn device_targets(slice: &Slice, device: &Device, node: &Node) -> bool {
    if slice.target_per_device {
        device.target.as_ref().is_some_and(|target| reaches(target, node))
    } else {
        reaches(&slice.target, node)
    }
}

/// Exactly one of the three is set; with none (a newer kind of target) the scheduler ignores the device, and so does
/// sizing.
fn reaches(target: &SliceTarget, node: &Node) -> bool {
    let SliceTarget {
        node_name,
        all_nodes,
        node_selector,
    } = target;
    match (node_name, node_selector) {
        (Some(name), _) => *name == node.name,
        (None, _) if *all_nodes => true,
        (None, Some(selector)) => node_selector::matches(selector, node),
        (None, None) => false,
    }
}
