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

/// Nodes that only lack a label and were not examined one by one.
pub struct Unlabelled {
    /// Obstacle of each of them.
    pub obstacle: NodeObstacle,
    /// The first by name, as many as a message contains.
    pub first: Vec<String>,
    /// Number of these nodes.
    pub nodes: usize,
}

/// The most hopeful reason decides: while one node may still come free, waiting may help. `all` is the number of nodes,
/// with GPUs or without.
pub fn none_fits(all: usize, reports: &[NodeReport], unlabelled: &[Unlabelled], spec: &PerfValidationSpec) -> Sizing {
    let examined = reports.iter().filter_map(|report| match report.obstacle.as_ref()? {
        NodeObstacle::NoGpus => None,
        obstacle => Some(Said {
            hope: hope(obstacle),
            reason: obstacle.reason(),
            says: report.summary(),
            named: vec![&report.node],
            nodes: 1,
        }),
    });
    let mut with_gpus: Vec<Said<'_>> = examined.chain(unlabelled.iter().map(Said::from_unlabelled)).collect();
    with_gpus.sort_by_key(|said| (said.hope, said.named.first().copied()));
    let Some(reason) = with_gpus.first().map(|said| said.reason) else {
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
fn grouped(nodes: Vec<Said<'_>>) -> String {
    let mut groups: Vec<Said<'_>> = Vec::new();
    let mut further: Vec<(Reason, usize)> = Vec::new();
    for said in nodes {
        let of_reason = groups.iter().filter(|group| group.reason == said.reason).count();
        if let Some(group) = groups.iter_mut().find(|group| group.says == said.says) {
            group.nodes += said.nodes;
            group.named.extend(said.named);
            group.named.truncate(NAMED_NODES);
        } else if of_reason < GROUPS {
            groups.push(said);
        } else {
            match further.iter_mut().find(|(known, _)| known.word() == said.reason.word()) {
                Some((_, count)) => *count += said.nodes,
                None => further.push((said.reason, said.nodes)),
            }
        }
    }
    let mut texts: Vec<String> = groups.iter().map(Said::text).collect();
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
struct Said<'a> {
    /// Place in the order of hope.
    hope: usize,
    reason: Reason,
    says: String,
    /// The first of them by name.
    named: Vec<&'a str>,
    nodes: usize,
}

impl<'a> Said<'a> {
    fn from_unlabelled(unlabelled: &'a Unlabelled) -> Self {
        let report = NodeReport {
            obstacle: Some(unlabelled.obstacle.clone()),
            ..NodeReport::default()
        };
        Self {
            hope: hope(&unlabelled.obstacle),
            reason: unlabelled.obstacle.reason(),
            says: report.summary(),
            named: unlabelled.first.iter().map(String::as_str).collect(),
            nodes: unlabelled.nodes,
        }
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
