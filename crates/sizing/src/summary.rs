//! Reasons why no node will do, in a message that stays readable with any number of nodes.

use perfval_api::text::cut;
use perfval_api::{PerfValidationSpec, Reason};

use super::Sizing;
use super::report::{NodeObstacle, NodeReport};

/// Groups of nodes that a message shows for each reason.
const GROUPS: usize = 3;
/// Most nodes of a group whose names are in a message.
pub const NAMED_NODES: usize = 3;
/// Bytes of a group's text in a message: room for two taints and their tolerations.
const TEXT: usize = 400;

/// Reasons against a node: a quota, then the others as time heals them, never last.
const BY_HOPE: [Reason; 9] = [
    Reason::QuotaExceeded,
    Reason::NodeBusy,
    Reason::PoolUnsettled,
    Reason::Saturated,
    Reason::DeviceClassMissing,
    Reason::NoDevicesPublished,
    Reason::NoCandidateNode,
    Reason::MixedAllocation,
    Reason::SelectorNotEvaluable,
];
const HOPELESS: [Reason; 2] = [Reason::MixedAllocation, Reason::SelectorNotEvaluable];

/// The most hopeful reason decides: while one node may still come free, waiting may help. `all` is the number of nodes,
/// with GPUs or without. `unlabelled` are nodes that only lack a label and were not examined one by one.
pub fn none_fits<'a>(
    all: usize,
    reports: &'a [NodeReport],
    unlabelled: Vec<ObstacleGroup<'a>>,
    spec: &PerfValidationSpec,
) -> Sizing {
    let examined = reports
        .iter()
        .filter_map(|report| ObstacleGroup::new(report, vec![&report.node], 1));
    let mut with_gpus: Vec<ObstacleGroup<'_>> = examined.chain(unlabelled).collect();
    with_gpus.sort_by_key(|group| (group.hope, group.named.first().copied()));
    let Some(reason) = with_gpus.first().map(|group| group.reason) else {
        return Sizing::Wait {
            reason: Reason::NoCandidateNode,
            message: format!("none of {all} nodes has a GPU"),
        };
    };
    let wanted = match spec.min_gpus() {
        1 => "a GPU".to_owned(),
        gpus => format!("{gpus} GPUs or more"),
    };
    let message = format!("no node for {wanted}: {}", grouped(with_gpus));
    if HOPELESS.contains(&reason) {
        Sizing::Refuse { reason, message }
    } else {
        Sizing::Wait { reason, message }
    }
}

/// Place of an obstacle in that order. A node that the selector does not admit comes last: the others decide.
fn hope(obstacle: &NodeObstacle) -> usize {
    let is_admitted = !matches!(obstacle, NodeObstacle::LabelMissing { .. });
    let place = BY_HOPE.iter().position(|known| *known == obstacle.reason());
    place.filter(|_| is_admitted).unwrap_or(BY_HOPE.len())
}

/// `n1, n2, n3 and 11 more: is cordoned; n4: 3 of 8 GPUs free (5 in use by a/b); and 85 more nodes (85 Saturated)`.
/// Nodes with the same text form one group, in the order of the first of them.
fn grouped(nodes: Vec<ObstacleGroup<'_>>) -> String {
    let mut groups: Vec<ObstacleGroup<'_>> = Vec::new();
    let mut further: Vec<(Reason, usize)> = Vec::new();
    for node in nodes {
        let of_reason = groups.iter().filter(|group| group.reason == node.reason).count();
        if let Some(group) = groups.iter_mut().find(|group| group.says == node.says) {
            group.nodes += node.nodes;
            group.named.extend(node.named);
            group.named.truncate(NAMED_NODES);
        } else if of_reason < GROUPS {
            groups.push(node);
        } else {
            match further.iter_mut().find(|(known, _)| known.word() == node.reason.word()) {
                Some((_, count)) => *count += node.nodes,
                None => further.push((node.reason, node.nodes)),
            }
        }
    }
    let mut texts: Vec<String> = groups.iter().map(ObstacleGroup::text).collect();
    if !further.is_empty() {
        let count: usize = further.iter().map(|(_, count)| count).sum();
        let reasons: Vec<String> = further
            .iter()
            .map(|(reason, count)| format!("{count} {}", reason.as_str()))
            .collect();
        texts.push(format!("and {count} more nodes ({})", reasons.join(", ")));
    }
    texts.join("; ")
}

/// Nodes with the same text.
pub struct ObstacleGroup<'a> {
    /// Place in the order of hope.
    hope: usize,
    reason: Reason,
    says: String,
    /// The first of them by name.
    named: Vec<&'a str>,
    nodes: usize,
}

impl<'a> ObstacleGroup<'a> {
    /// Nodes with this report, some of them named in the message; `None` if they have no GPUs, or no obstacle.
    pub fn new(report: &NodeReport, named: Vec<&'a str>, nodes: usize) -> Option<Self> {
        let has_gpus = |obstacle: &&NodeObstacle| **obstacle != NodeObstacle::NoGpus;
        let obstacle = report.obstacle.as_ref().filter(has_gpus)?;
        Some(Self {
            hope: hope(obstacle),
            reason: obstacle.reason(),
            says: report.summary(),
            named,
            nodes,
        })
    }

    fn text(&self) -> String {
        let named = self.named.join(", ");
        let more = match self.nodes.saturating_sub(self.named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let says = cut(&self.says, TEXT);
        format!("{named}{more}: {says}")
    }
}
