//! One node: how many GPUs a run could have there, or what rules it out.

use perfval_api::{
    Allocation, AllocationMode, ExpectedBy, ExpectedGpus, PerfValidationSpec, PlacementStatus, PlanDetails,
};

use super::devices::attribute;
use super::dra::Dra;
use super::gpus::{Gpus, describe};
use super::namespace::Namespace;
use super::naming::{Holder, Naming};
use super::node::{HOSTNAME, claims_gpus, ineligible, tolerations};
use super::plugin::{self, PluginGpus};
use super::pods::PodsByNode;
use super::report::{NodeObstacle, NodeReport};
use super::room::room;
use super::{expected, mixed_allocation, separation, sharing};
use crate::inventory::{CacheVolume, Node, OfRun, PodUse};
use crate::{Granted, HeldNodes, Plan};

/// Everything that a node is judged by.
pub struct Circumstances<'a> {
    pub dra: Dra<'a>,
    pub pods: &'a PodsByNode<'a>,
    by_claims: Namespace,
    by_plugin: Namespace,
    pub spec: &'a PerfValidationSpec,
    pub naming: &'a Naming,
    pub held: &'a HeldNodes,
    /// The volume of the model cache, where not every node can reach it.
    pub cache: Option<&'a CacheVolume>,
}

impl<'a> Circumstances<'a> {
    /// The cluster as a run of this spec sees it. `others` are the other runs of its namespace, each with the number of its
    /// pods.
    pub fn new(
        dra: Dra<'a>,
        pods: &'a PodsByNode<'a>,
        of_run: OfRun<'a>,
        spec: &'a PerfValidationSpec,
        held: &'a HeldNodes,
        others: &[(Granted<'_>, usize)],
    ) -> Self {
        Self {
            dra,
            pods,
            by_claims: Namespace::read(of_run, spec, true, others),
            by_plugin: Namespace::read(of_run, spec, false, others),
            spec,
            naming: of_run.naming,
            held,
            cache: of_run.cache_volume.present(),
        }
    }

    /// Limits of the namespace for workers that get their GPUs in this way.
    pub fn namespace(&self, allocation: Option<&Allocation>) -> &Namespace {
        match allocation {
            Some(Allocation::Dra) => &self.by_claims,
            _ => &self.by_plugin,
        }
    }

    /// Reports the GPUs of a node and the obstacle that rules it out.
    pub fn report(&self, node: &Node) -> NodeReport {
        let (mut report, uncounted) = self.counted(node);
        report.obstacle = match uncounted {
            Some(NodeObstacle::NoGpus) => Some(NodeObstacle::NoGpus),
            uncounted => self
                .unavailable(node)
                .or(uncounted)
                .or_else(|| self.too_few(&report))
                .or_else(|| self.fill(&mut report, node)),
        };
        report
    }

    /// The same without the room for workers, which [`Circumstances::fill`] counts for the best nodes only.
    pub fn glance(&self, node: &Node) -> NodeReport {
        if let Some(obstacle) = self.unavailable(node) {
            return NodeReport {
                node: node.name.to_string(),
                obstacle: Some(obstacle),
                ..NodeReport::default()
            };
        }
        let (mut report, uncounted) = self.counted(node);
        report.obstacle = uncounted.or_else(|| self.too_few(&report));
        report
    }

    /// The GPUs of a node, or why they cannot be counted.
    fn counted(&self, node: &Node) -> (NodeReport, Option<NodeObstacle>) {
        let mut report = NodeReport {
            node: node.name.to_string(),
            ..NodeReport::default()
        };
        match self.count(node) {
            Ok(gpus) => {
                report.allocation = Some(gpus.allocation());
                (report.total, report.free) = (gpus.total(), gpus.free());
                report.taken = gpus.taken(&self.dra, self.naming);
                let expected = self.expected(node, &gpus);
                report.expected = Some(expected).filter(|expected| expected.gpus > report.healthy());
                (report, None)
            }
            Err(obstacle) => (report, Some(obstacle)),
        }
    }

    /// Obstacle that rules out a node regardless of its free GPUs.
    fn unavailable(&self, node: &Node) -> Option<NodeObstacle> {
        ineligible(node, self.spec, self.cache).or_else(|| self.held_by_run(node))
    }

    /// The GPUs that a node shows, free or not; none where they cannot be counted.
    pub fn total(&self, node: &Node) -> i64 {
        self.count(node).map_or(0, |gpus| gpus.total())
    }

    /// Returns true if a node has GPUs or claims to have some.
    pub fn has_gpus(&self, node: &Node) -> bool {
        !matches!(self.ways(node), Err(NodeObstacle::NoGpus))
    }

    /// The plan of a run on a node without obstacle.
    pub fn plan(&self, node: &Node, report: &NodeReport, most: i64) -> Option<Plan> {
        let gpus = self.count(node).ok()?;
        let max = self.spec.placement.max_gpus.map_or(i64::MAX, i64::from);
        let workers = self.spec.workers(report.usable.min(max).min(most));
        let placement = PlacementStatus {
            node: report.node.clone(),
            allocation: gpus.allocation(),
            gpus: workers * self.spec.gpus_per_worker(),
            node_gpus: report.total,
            faulty_gpus: report.faulty(),
            ..PlacementStatus::default()
        };
        let details = PlanDetails::default();
        let mut plan = Plan { placement, details };
        plan.details.neighbours = self.neighbours(node);
        plan.details.tolerations = tolerations(node, self.spec);
        match gpus {
            Gpus::ByClaims { devices, selectors } => {
                plan.details.selectors = selectors;
                describe(&mut plan, &devices);
            }
            Gpus::ByPlugin(_) => {
                let label = |key: &str| node.label(key).map(str::to_owned);
                plan.placement.product = label(expected::PRODUCT);
                plan.placement.driver_version = label("nvidia.com/cuda.driver-version.full");
            }
        }
        plan.expect(report.expected);
        Some(plan)
    }

    /// GPUs that a node should have according to the spec and the node itself.
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

    /// Ways in which a node gives out GPUs: true if through claims, and the GPUs of its device plugin.
    fn ways(&self, node: &Node) -> Result<(bool, Option<PluginGpus>), NodeObstacle> {
        let resource = &self.spec.placement.resource_name;
        let plugin = plugin::count(node, resource, || self.users_on(node), self.naming);
        let unsettled = self.dra.unsettled(node);
        let has_devices = self.dra.has_gpus(node);
        if !has_devices && plugin.is_none() && unsettled.is_none() && !self.claims_gpus(node) {
            return Err(NodeObstacle::NoGpus);
        }
        match unsettled {
            Some(unsettled) => Err(unsettled),
            None => Ok((has_devices, plugin)),
        }
    }

    /// Pods that have GPUs of a node from the device plugin.
    fn users_on(&self, node: &Node) -> Vec<&'a PodUse> {
        self.pods.users_on(node, &self.spec.placement.resource_name)
    }

    fn count(&self, node: &Node) -> Result<Gpus<'a>, NodeObstacle> {
        let (has_devices, plugin) = self.ways(node)?;
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
            (true, None, AllocationMode::DevicePlugin) => Err(NodeObstacle::OnlyByClaims { resource: resource() }),
            (_, Some(gpus), AllocationMode::DevicePlugin) | (false, Some(gpus), AllocationMode::Auto) => {
                sharing::shared(node, &resource(), &self.users_on(node)).map_or(Ok(Gpus::ByPlugin(gpus)), Err)
            }
            (false, Some(_), AllocationMode::Dra) => Err(NodeObstacle::OnlyByPlugin { resource: resource() }),
            (false, None, AllocationMode::Dra) => Err(NodeObstacle::NothingPublished { resource: resource() }),
            (false, None, _) => self.without_offer(node),
        }
    }

    fn claims_gpus(&self, node: &Node) -> bool {
        let resource = &self.spec.placement.resource_name;
        claims_gpus(node, resource) || sharing::shared(node, resource, &[]).is_some()
    }

    /// GPUs of a node that claims to have some, although no plugin and no driver offers any.
    fn without_offer(&self, node: &Node) -> Result<Gpus<'a>, NodeObstacle> {
        let resource = &self.spec.placement.resource_name;
        if let Some(shared) = sharing::shared(node, resource, &[]) {
            return Err(shared);
        }
        let unhealthy = plugin::unhealthy(node, resource, self.naming).map(Gpus::ByPlugin);
        unhealthy.ok_or_else(|| NodeObstacle::NothingPublished {
            resource: resource.clone(),
        })
    }

    fn count_devices(&self, node: &Node, plugin_too: bool) -> Result<Gpus<'a>, NodeObstacle> {
        let resource = &self.spec.placement.resource_name;
        let users = self.users_on(node);
        if let Some(pod) = users.first().filter(|_| !plugin_too) {
            let pod = self.naming.all(Holder::Pod, [&*pod.name]);
            let resource = resource.clone();
            return Err(NodeObstacle::LeftByPlugin { pod, resource });
        }
        let devices = mixed_allocation::without_devices_in_use(self.dra.devices(node)?, &users, resource, self.naming)
            .map_err(|fault| self.mixed_allocation(&fault))?;
        if devices.all().next().is_none() {
            let class = self.spec.placement.device_class_name.clone();
            return Err(NodeObstacle::NotOfClass { class });
        }
        let selectors = separation::selectors(&devices)?;
        Ok(Gpus::ByClaims { devices, selectors })
    }

    fn mixed_allocation(&self, fault: &str) -> NodeObstacle {
        NodeObstacle::TwoLedgers {
            resource: self.spec.placement.resource_name.clone(),
            fault: fault.to_owned(),
        }
    }

    /// Pods that have GPUs of a node the other way, where there are two ways.
    fn neighbours(&self, node: &Node) -> Option<Vec<String>> {
        let (by_claims, by_plugin) = self.ways(node).ok()?;
        let users = self.users_on(node);
        (by_claims && by_plugin.is_some()).then(|| users.iter().map(|pod| self.naming.token(&pod.name)).collect())
    }

    fn held_by_run(&self, node: &Node) -> Option<NodeObstacle> {
        let run = self.held.run_on(&node.name)?;
        // The end of that run does not make a small node larger.
        let (report, uncounted) = self.counted(node);
        if uncounted.is_none() && self.too_few(&report) == Some(NodeObstacle::TooFew) {
            return None;
        }
        let run = self.naming.shows(run).then(|| run.to_owned());
        Some(NodeObstacle::HeldByRun { run })
    }

    /// Fewest workers of a run on this node. A run that selects this node alone and expects more GPUs than it has needs only those
    /// that are left: it fails for the missing ones, and no wait brings them back. Two workers stay, because gates compare them.
    fn min_workers(&self, report: &NodeReport) -> i64 {
        let min = self.spec.min_workers();
        if shows_missing_gpus(report) && self.spec.placement.node_selector.contains_key(HOSTNAME) {
            self.spec.workers(report.healthy()).max(2).min(min)
        } else {
            min
        }
    }

    fn too_few(&self, report: &NodeReport) -> Option<NodeObstacle> {
        let min = self.min_workers(report) * self.spec.gpus_per_worker();
        if report.total < min {
            Some(NodeObstacle::TooFew)
        } else if report.whole() < min {
            Some(NodeObstacle::NotWhole)
        } else if report.free < min {
            Some(NodeObstacle::NotEnoughFree)
        } else {
            None
        }
    }

    /// Counts the workers that also find cpu, memory and pod slots on the node, and room in the quotas.
    pub fn fill(&self, report: &mut NodeReport, node: &Node) -> Option<NodeObstacle> {
        let namespace = self.namespace(report.allocation.as_ref());
        let min = self.min_workers(report);
        let room = room(node, self.pods.on(node), &namespace.pods, self.spec);
        if room.workers < min {
            return Some(NodeObstacle::NoRoom {
                resource: room.short_of,
                workers: room.workers,
            });
        }
        if let Some(forbidden) = namespace.forbids(min) {
            return Some(forbidden);
        }
        let workers = self
            .spec
            .workers(report.free)
            .min(room.workers)
            .min(namespace.workers());
        report.usable = workers * self.spec.gpus_per_worker();
        None
    }

    /// As many GPUs as a node that was glanced at may turn out to have for the run.
    pub fn at_most(&self, report: &NodeReport) -> i64 {
        let namespace = self.namespace(report.allocation.as_ref());
        self.spec.workers(report.free).min(namespace.workers()) * self.spec.gpus_per_worker()
    }
}

/// Returns true if the spec expects more GPUs than a node has in service.
pub fn shows_missing_gpus(report: &NodeReport) -> bool {
    report.expected.is_some_and(|expected| expected.by == ExpectedBy::Spec)
}
