//! The choice of a node.

use std::cmp::Reverse;

use perfval_api::{AllocationMode, ExpectedGpus, PerfValidationSpec, Reason};

use super::dra::Dra;
use super::examine::Circumstances;
use super::fleet::{Fleet, check_reads_of_run};
use super::report::{NodeObstacle, NodeReport};
use super::summary::{self, ObstacleGroup};
use super::{Sizing, expected, generator, namespace};
use crate::inventory::{Inventory, Node, OfRun};
use crate::{Granted, HeldNodes, OtherRun};

/// Examines every node for a run of this spec and chooses among them. The reports are sorted by name; there are none
/// if the cluster could not be read.
pub fn explain(inventory: &Inventory, spec: &PerfValidationSpec, busy: &[OtherRun]) -> (Vec<NodeReport>, Sizing) {
    let (fleet, of_run) = (Fleet::new(inventory), inventory.for_run());
    if let Err(sizing) = fleet.known(of_run) {
        return (Vec::new(), sizing);
    }
    let held = busy.iter().cloned().collect();
    let class = fleet.class(of_run, spec);
    let world = fleet.world(&class, of_run, spec, &held, &[]);
    let reports: Vec<NodeReport> = fleet.nodes.iter().map(|node| world.report(node)).collect();
    let best = fleet
        .nodes
        .iter()
        .zip(&reports)
        .filter(|(_, report)| report.obstacle.is_none())
        .min_by_key(|(_, report)| (Reverse(report.usable), &report.node));
    let sizing = refusal(&fleet, of_run, &world)
        .or_else(|| {
            let (node, report) = best?;
            let totals: Vec<i64> = reports.iter().map(|report| report.total).collect();
            planned(&fleet, &world, node, report, || totals)
        })
        .unwrap_or_else(|| summary::none_fits(fleet.nodes.len(), &reports, Vec::new(), spec));
    (reports, sizing)
}

/// Examines one node for a run of this spec. `None` if it does not exist or a read failed.
pub fn examine(inventory: &Inventory, spec: &PerfValidationSpec, node: &str) -> Option<NodeReport> {
    let (fleet, of_run) = (Fleet::new(inventory), inventory.for_run());
    fleet.known(of_run).ok()?;
    let node = fleet.nodes.iter().find(|known| *known.name == *node)?;
    let held = HeldNodes::default();
    let class = fleet.class(of_run, spec);
    Some(fleet.world(&class, of_run, spec, &held, &[]).report(node))
}

impl Fleet<'_> {
    /// Chooses the node with the most GPUs that a run of this spec could have now, and among equals the first by name.
    /// `held` are the nodes of other runs, `granted` what other runs of its namespace use.
    pub fn choose(
        &self,
        of_run: OfRun<'_>,
        spec: &PerfValidationSpec,
        held: &HeldNodes,
        granted: &[Granted<'_>],
    ) -> Sizing {
        if let Err(sizing) = self.known(of_run) {
            return sizing;
        }
        let class = self.class(of_run, spec);
        let world = self.world(&class, of_run, spec, held, granted);
        if let Some(refusal) = refusal(self, of_run, &world) {
            return refusal;
        }
        let gpus = self.gpu_nodes(&world);
        let (admitted, unlabelled) = self.admitted(spec, &gpus);
        let mut reports: Vec<(usize, NodeReport)> = admitted
            .into_iter()
            .map(|index| {
                self.examines();
                (index, world.glance(self.nodes[index]))
            })
            .collect();
        if let Some(best) = self.best(&world, &mut reports) {
            let (index, report) = &reports[best];
            let totals = || self.totals(&world).to_vec();
            if let Some(sizing) = planned(self, &world, self.nodes[*index], report, totals) {
                return sizing;
            }
        }
        let reports: Vec<NodeReport> = reports.into_iter().map(|(_, report)| report).collect();
        summary::none_fits(self.nodes.len(), &reports, unlabelled, spec)
    }

    /// Fails if anything that a run needs is unknown.
    pub(crate) fn known(&self, of_run: OfRun<'_>) -> Result<(), Sizing> {
        let reads = check_reads_of_run(of_run).and_then(|()| self.readable.clone());
        reads.map_err(|unread| Sizing::Wait {
            reason: Reason::CallFailed,
            message: format!("free GPUs cannot be counted: {unread}"),
        })
    }

    /// Those of the nodes with GPUs that the spec's selector admits, as indexes in order, and the others, which lack a
    /// label.
    fn admitted(&self, spec: &PerfValidationSpec, gpus: &[usize]) -> (Vec<usize>, Vec<ObstacleGroup<'_>>) {
        let mut labels = spec.placement.node_selector.iter();
        let Some((key, value)) = labels.next() else {
            return (gpus.to_vec(), Vec::new());
        };
        let mut admitted = self.labelled(key, value);
        admitted.retain(|index| gpus.binary_search(index).is_ok());
        let without = |admitted: &[usize], all: &[usize], key: &str, value: &str| {
            let lacks = |index: &&usize| admitted.binary_search(index).is_err();
            let names = all.iter().filter(lacks).take(summary::NAMED_NODES);
            let label = format!("{key}={value}");
            let report = NodeReport {
                obstacle: Some(NodeObstacle::LabelMissing { label }),
                ..NodeReport::default()
            };
            let nodes = all.len() - admitted.len();
            let group = ObstacleGroup::new(&report, names.map(|index| &*self.nodes[*index].name).collect(), nodes);
            group.filter(|_| nodes > 0)
        };
        let mut unlabelled: Vec<ObstacleGroup<'_>> = without(&admitted, gpus, key, value).into_iter().collect();
        for (key, value) in labels {
            let mut narrower = admitted.clone();
            narrower.retain(|index| self.nodes[*index].label(key) == Some(value));
            unlabelled.extend(without(&narrower, &admitted, key, value));
            admitted = narrower;
        }
        (admitted, unlabelled)
    }

    /// Index of the best report. Fills only those that may be the best; all of them if there is none.
    fn best(&self, world: &Circumstances<'_>, reports: &mut [(usize, NodeReport)]) -> Option<usize> {
        let open = |place: &usize| reports[*place].1.obstacle.is_none();
        let mut order: Vec<usize> = (0..reports.len()).filter(open).collect();
        order.sort_by_key(|place| Reverse(world.at_most(&reports[*place].1)));
        let mut best: Option<usize> = None;
        for place in order {
            let at_most = world.at_most(&reports[place].1);
            let is_beaten = |best: usize| (at_most, Reverse(place)) < (reports[best].1.usable, Reverse(best));
            if best.is_some_and(is_beaten) {
                break;
            }
            let (index, report) = &mut reports[place];
            report.obstacle = world.fill(report, self.nodes[*index]);
            let (usable, is_open) = (report.usable, report.obstacle.is_none());
            let is_better = |best: usize| (usable, Reverse(place)) > (reports[best].1.usable, Reverse(best));
            if is_open && best.is_none_or(is_better) {
                best = Some(place);
            }
        }
        best
    }
}

/// Obstacle that rules out all nodes at once.
fn refusal(fleet: &Fleet<'_>, of_run: OfRun<'_>, world: &Circumstances<'_>) -> Option<Sizing> {
    no_dra(fleet, of_run, &world.dra, world.spec).or_else(|| namespace::refusal(of_run, world.spec))
}

/// Plans a run on a node without obstacle, unless its load generator has no place. `totals` are the GPUs of each
/// node.
fn planned(
    fleet: &Fleet<'_>,
    world: &Circumstances<'_>,
    node: &Node,
    report: &NodeReport,
    totals: impl FnOnce() -> Vec<i64>,
) -> Option<Sizing> {
    let mut plan = match generator::with_home(world, world.plan(node, report, report.usable)?, &fleet.nodes) {
        Ok(gpus) => world.plan(node, report, gpus)?,
        Err(sizing) => return Some(sizing),
    };
    plan.expect(expected_by_anyone(fleet, world, node, report, totals));
    Some(Sizing::Chosen(Box::new(plan)))
}

/// GPUs that a node should have, if it has fewer healthy ones. The spec takes precedence over all other sources.
fn expected_by_anyone(
    fleet: &Fleet<'_>,
    world: &Circumstances<'_>,
    node: &Node,
    report: &NodeReport,
    totals: impl FnOnce() -> Vec<i64>,
) -> Option<ExpectedGpus> {
    if world.spec.placement.expect_gpus.is_some() {
        return report.expected;
    }
    let known = report.expected.map_or(report.total, |expected| expected.gpus);
    let all = fleet.nodes.iter().copied().zip(totals());
    expected::by_peers(node, known, all, |of| world.product(of)).or(report.expected)
}

/// Obstacle of a spec that wants claims where there can be none. A class that is missing while devices are published
/// is different: an installation under way, which waiting may complete.
fn no_dra(fleet: &Fleet<'_>, of_run: OfRun<'_>, dra: &Dra<'_>, spec: &PerfValidationSpec) -> Option<Sizing> {
    let class = &spec.placement.device_class_name;
    if spec.placement.allocation != AllocationMode::Dra {
        return None;
    }
    let message = if !fleet.has_slices {
        "this cluster has no Dynamic Resource Allocation: it does not serve resource.k8s.io/v1, which Kubernetes has from \
         1.34 on"
            .to_owned()
    } else if of_run.device_class.is_absent() && !dra.has_gpu_drivers() {
        format!(
            "neither the DeviceClass {class} nor any GPU in a ResourceSlice exists: no GPU driver for DRA is installed"
        )
    } else {
        return None;
    };
    Some(Sizing::Refuse {
        reason: Reason::DeviceClassMissing,
        message,
    })
}
