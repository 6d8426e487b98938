//! One node: how many GPUs a run could have there, or what rules it out.

use perfval_api::{Allocation, AllocationMode, DeviceStatus, ExpectedGpus, PerfValidationSpec, PlacementStatus};

use super::devices::{NodeDevices, attribute, count};
use super::dra::Dra;
use super::namespace::Namespace;
use super::naming::{Holder, Naming};
use super::node::{ineligible, says_it_has_gpus, tolerations};
use super::plugin::{self, PluginGpus};
use super::pods::PodsByNode;
use super::report::{NodeReport, Obstacle};
use super::room::room;
use super::taken::Taken;
use super::{expected, mixed_allocation, separation, sharing};
use crate::OtherRun;
use crate::inventory::{Attribute, CacheVolume, Inventory, Node, PodUse};

/// Everything that a node is judged by.
pub struct World<'a> {
    pub dra: Dra<'a>,
    pub pods: PodsByNode<'a>,
    /// What the namespace says of workers that ask for claims.
    pub by_claims: Namespace,
    /// What it says of workers that ask a device plugin.
    pub by_plugin: Namespace,
    pub spec: &'a PerfValidationSpec,
    pub naming: &'a Naming,
    pub busy: &'a [OtherRun],
    /// The volume of the model cache, where not every node can reach it.
    pub cache: Option<&'a CacheVolume>,
}

/// The GPUs of a node, as the one who gives them out counts them.
enum Gpus<'a> {
    ByClaims {
        devices: NodeDevices<'a>,
        /// CEL that the claims carry in addition to their class.
        selectors: Vec<String>,
    },
    ByPlugin(PluginGpus),
}

impl<'a> World<'a> {
    /// The cluster as a run of this spec sees it; `pods` are those of the inventory.
    pub fn of(
        inventory: &'a Inventory,
        pods: &'a [PodUse],
        spec: &'a PerfValidationSpec,
        busy: &'a [OtherRun],
    ) -> Self {
        Self {
            dra: Dra::read(inventory, &spec.placement),
            pods: PodsByNode::of(pods, &spec.placement.resource_name),
            by_claims: Namespace::read(inventory, spec, true),
            by_plugin: Namespace::read(inventory, spec, false),
            spec,
            naming: &inventory.naming,
            busy,
            cache: inventory.cache_volume.present(),
        }
    }

    /// What a node offers, and what rules it out.
    pub fn report(&self, node: &Node) -> NodeReport {
        let counted = self.count(node);
        let mut report = NodeReport {
            node: node.name.to_string(),
            ..NodeReport::default()
        };
        if let Ok(gpus) = &counted {
            report.allocation = Some(gpus.allocation());
            (report.total, report.free) = (gpus.total(), gpus.free());
            report.taken = gpus.taken(&self.dra, self.naming);
            let expected = self.expected(node, gpus);
            report.expected = Some(expected).filter(|expected| expected.gpus > report.healthy());
        }
        report.obstacle = match counted.err() {
            Some(Obstacle::NoGpus) => Some(Obstacle::NoGpus),
            uncounted => ineligible(node, self.spec, self.cache)
                .or_else(|| self.held_by_run(node))
                .or(uncounted)
                .or_else(|| self.too_few(&report))
                .or_else(|| self.fill(&mut report, node)),
        };
        report
    }

    /// The plan of a run on a node without obstacle.
    pub fn plan(&self, node: &Node, report: &NodeReport, most: i64) -> Option<PlacementStatus> {
        let gpus = self.count(node).ok()?;
        let max = self.spec.placement.max_gpus.map_or(i64::MAX, i64::from);
        let plan = PlacementStatus {
            node: report.node.clone(),
            allocation: gpus.allocation(),
            gpus: report.usable.min(max).min(most),
            node_gpus: report.total,
            faulty_gpus: report.faulty(),
            expected: report.expected,
            neighbours: self.neighbours(node),
            tolerations: tolerations(node, self.spec),
            ..PlacementStatus::default()
        };
        Some(match gpus {
            Gpus::ByClaims { devices, selectors } => PlacementStatus {
                selectors,
                ..described(plan, &devices)
            },
            Gpus::ByPlugin(_) => PlacementStatus {
                product: node.label(expected::PRODUCT).map(str::to_owned),
                driver_version: node.label("nvidia.com/cuda.driver-version.full").map(str::to_owned),
                ..plan
            },
        })
    }

    /// What a node should have as far as the spec and the node itself say.
    fn expected(&self, node: &Node, gpus: &Gpus<'_>) -> ExpectedGpus {
        let class_holds_all = match gpus {
            Gpus::ByClaims { .. } => {
                self.dra.gpus_of(node).count() == usize::try_from(gpus.total()).unwrap_or_default()
            }
            Gpus::ByPlugin(_) => true,
        };
        expected::by_itself(self.spec.placement.expect_gpus, node, gpus.total(), class_holds_all)
    }

    /// The product of a node's GPUs.
    pub fn product<'n>(&self, node: &'n Node) -> Option<&'n str>
    where
        'a: 'n,
    {
        let of_device = |(id, device)| attribute(&id, device, "productName")?.text();
        let published = self.dra.gpus_of(node).find_map(of_device);
        published.or_else(|| node.label(expected::PRODUCT))
    }

    fn count(&self, node: &Node) -> Result<Gpus<'a>, Obstacle> {
        let plugin = plugin::count(
            node,
            &self.spec.placement.resource_name,
            self.pods.users_on(node),
            self.naming,
        );
        let unsettled = self.dra.unsettled(node);
        let has_devices = self.dra.has_gpus(node);
        if !has_devices && plugin.is_none() && unsettled.is_none() && !self.says_it_has_gpus(node) {
            return Err(Obstacle::NoGpus);
        }
        if let Some(unsettled) = unsettled {
            return Err(unsettled);
        }
        let resource = || self.spec.placement.resource_name.clone();
        match (has_devices, plugin, self.spec.placement.allocation) {
            (true, Some(_), AllocationMode::Auto) => {
                Err(self.mixed_allocation("turn one of them off, or name the other one in placement.allocation"))
            }
            (true, Some(_), AllocationMode::DevicePlugin) if self.dra.holder_on(node).is_some() => {
                Err(self
                    .mixed_allocation("claims hold GPUs of it, and a pod of the device plugin may get the same ones"))
            }
            (true, plugin, AllocationMode::Auto | AllocationMode::Dra) => self.count_devices(node, plugin.is_some()),
            (true, None, AllocationMode::DevicePlugin) => Err(Obstacle::OnlyByClaims { resource: resource() }),
            (_, Some(gpus), AllocationMode::DevicePlugin) | (false, Some(gpus), AllocationMode::Auto) => {
                sharing::shared(node, &resource(), self.pods.users_on(node)).map_or(Ok(Gpus::ByPlugin(gpus)), Err)
            }
            (false, Some(_), AllocationMode::Dra) => Err(Obstacle::OnlyByPlugin { resource: resource() }),
            (false, None, AllocationMode::Dra) => Err(Obstacle::NothingPublished { resource: resource() }),
            (false, None, _) => self.without_offer(node),
        }
    }

    fn says_it_has_gpus(&self, node: &Node) -> bool {
        let resource = &self.spec.placement.resource_name;
        says_it_has_gpus(node, resource) || sharing::shared(node, resource, &[]).is_some()
    }

    /// The GPUs of a node that says that it has some, and of which neither a plugin nor a driver offers any.
    fn without_offer(&self, node: &Node) -> Result<Gpus<'a>, Obstacle> {
        let resource = &self.spec.placement.resource_name;
        if let Some(shared) = sharing::shared(node, resource, &[]) {
            return Err(shared);
        }
        let unhealthy = plugin::unhealthy(node, resource, self.naming).map(Gpus::ByPlugin);
        unhealthy.ok_or_else(|| Obstacle::NothingPublished {
            resource: resource.clone(),
        })
    }

    fn count_devices(&self, node: &Node, plugin_too: bool) -> Result<Gpus<'a>, Obstacle> {
        let resource = &self.spec.placement.resource_name;
        let users = self.pods.users_on(node);
        if let Some(pod) = users.first().filter(|_| !plugin_too) {
            let pod = self.naming.all(Holder::Pod, [&*pod.name]);
            let resource = resource.clone();
            return Err(Obstacle::LeftByPlugin { pod, resource });
        }
        let devices = mixed_allocation::without_those_of(self.dra.devices(node)?, users, resource, self.naming)
            .map_err(|fault| self.mixed_allocation(&fault))?;
        if devices.all().next().is_none() {
            let class = self.spec.placement.device_class_name.clone();
            return Err(Obstacle::NotOfClass { class });
        }
        let selectors = separation::selectors(&devices)?;
        Ok(Gpus::ByClaims { devices, selectors })
    }

    fn mixed_allocation(&self, fault: &str) -> Obstacle {
        Obstacle::TwoLedgers {
            resource: self.spec.placement.resource_name.clone(),
            fault: fault.to_owned(),
        }
    }

    /// Pods that have GPUs of a node the other way, where there are two ways.
    fn neighbours(&self, node: &Node) -> Option<Vec<String>> {
        let resource = &self.spec.placement.resource_name;
        let users = self.pods.users_on(node);
        let both = self.dra.has_gpus(node) && plugin::count(node, resource, users, self.naming).is_some();
        both.then(|| users.iter().map(|pod| self.naming.token(&pod.name)).collect())
    }

    fn held_by_run(&self, node: &Node) -> Option<Obstacle> {
        let here = self.busy.iter().filter(|other| *other.node == *node.name);
        let run = here.map(|other| &other.name).min()?.clone();
        Some(Obstacle::HeldByRun { run })
    }

    fn too_few(&self, report: &NodeReport) -> Option<Obstacle> {
        let min = i64::from(self.spec.placement.min_gpus);
        let never = report.taken.iter().filter(|taken| taken.why.is_for_good());
        let never: i64 = never.map(|taken| taken.gpus).sum();
        if report.total < min {
            Some(Obstacle::TooFew)
        } else if report.total - never < min {
            Some(Obstacle::NotWhole)
        } else if report.free < min {
            Some(Obstacle::NotEnoughFree)
        } else {
            None
        }
    }

    /// Counts the workers that also find cpu, memory and pod slots on the node.
    fn fill(&self, report: &mut NodeReport, node: &Node) -> Option<Obstacle> {
        let namespace = match report.allocation {
            Some(Allocation::Dra) => &self.by_claims,
            _ => &self.by_plugin,
        };
        let min = i64::from(self.spec.placement.min_gpus);
        let room = room(node, self.pods.on(node), &namespace.pods, self.spec);
        if room.workers < min {
            return Some(Obstacle::NoRoom {
                resource: room.short_of,
                workers: room.workers,
            });
        }
        if let Some(forbidden) = namespace.forbids(min) {
            return Some(forbidden);
        }
        report.usable = report.free.min(room.workers).min(namespace.workers());
        None
    }
}

impl Gpus<'_> {
    fn allocation(&self) -> Allocation {
        match self {
            Self::ByClaims { .. } => Allocation::Dra,
            Self::ByPlugin(_) => Allocation::DevicePlugin,
        }
    }

    fn total(&self) -> i64 {
        match self {
            Self::ByClaims { devices, .. } => count(devices.free.len() + devices.taken.len()),
            Self::ByPlugin(gpus) => gpus.total,
        }
    }

    fn free(&self) -> i64 {
        match self {
            Self::ByClaims { devices, .. } => count(devices.free.len()),
            Self::ByPlugin(gpus) => gpus.free,
        }
    }

    fn taken(&self, dra: &Dra<'_>, naming: &Naming) -> Vec<Taken> {
        match self {
            Self::ByClaims { devices, .. } => devices.tally(dra.busy(), naming),
            Self::ByPlugin(gpus) => gpus.taken.clone(),
        }
    }
}

/// Adds what the slices say about the devices that the workers will probably get.
fn described(plan: PlacementStatus, devices: &NodeDevices<'_>) -> PlacementStatus {
    let chosen = &devices.free[..usize::try_from(plan.gpus).unwrap_or_default().min(devices.free.len())];
    let distinct = |name: &str| {
        let mut values: Vec<&str> = chosen
            .iter()
            .filter_map(|(id, device)| attribute(id, device, name))
            .filter_map(Attribute::text)
            .collect();
        values.sort_unstable();
        values.dedup();
        (!values.is_empty()).then(|| values.join(", "))
    };
    PlacementStatus {
        product: distinct("productName"),
        driver_version: distinct("driverVersion"),
        devices: chosen
            .iter()
            .map(|(id, device)| DeviceStatus {
                pool: id.pool.to_owned(),
                name: id.device.to_owned(),
                uuid: attribute(id, device, "uuid")
                    .and_then(Attribute::string)
                    .map(str::to_owned),
            })
            .collect(),
        ..plan
    }
}
