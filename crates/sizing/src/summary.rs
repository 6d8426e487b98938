//! Why no node will do, in a message that stays readable with any number of nodes.

use perfval_api::{PerfValidationSpec, Reason};

use super::Sizing;
use super::report::{NodeReport, Obstacle};

/// Groups of nodes that a message shows for each reason, and nodes that it names of each group.
const GROUPS: usize = 3;
const NAMED_NODES: usize = 3;
/// Characters of what a message says of a group: room for two taints and their tolerations.
const TEXT: usize = 400;

/// Reasons against a node from the one that time heals soonest to those that it does not heal.
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

/// The most hopeful reason decides: while one node may still come free, waiting may help.
pub fn none_fits(reports: &[NodeReport], spec: &PerfValidationSpec) -> Sizing {
    let mut with_gpus: Vec<(Reason, &NodeReport)> = reports
        .iter()
        .filter_map(|report| match report.obstacle.as_ref()? {
            Obstacle::NoGpus => None,
            obstacle => Some((obstacle.reason(), report)),
        })
        .collect();
    with_gpus.sort_by_key(|(reason, report)| (hope(*reason), &report.node));
    let Some(&(reason, _)) = with_gpus.first() else {
        return Sizing::Wait {
            reason: Reason::NoCandidateNode,
            message: format!("none of {} nodes has a GPU", reports.len()),
        };
    };
    let wanted = match spec.placement.min_gpus {
        1 => "a GPU".to_owned(),
        gpus => format!("{gpus} GPUs or more"),
    };
    let message = format!("no node for {wanted}: {}", grouped(&with_gpus));
    if HOPELESS.contains(&reason) {
        Sizing::Refuse { reason, message }
    } else {
        Sizing::Wait { reason, message }
    }
}

fn hope(reason: Reason) -> usize {
    BY_HOPE
        .iter()
        .position(|known| *known == reason)
        .unwrap_or(BY_HOPE.len())
}

/// `n1, n2, n3 and 11 more: is cordoned; n4: 3 of 8 GPUs free (5 in use by a/b); and 85 more nodes (85 Saturated)`. Nodes
/// of which the same is to be said stand together, in the order of the first of them.
fn grouped(nodes: &[(Reason, &NodeReport)]) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut further: Vec<(Reason, usize)> = Vec::new();
    for &(reason, report) in nodes {
        let says = report.summary();
        let of_reason = groups.iter().filter(|group| group.reason == reason).count();
        if let Some(group) = groups.iter_mut().find(|group| group.says == says) {
            group.nodes.push(&report.node);
        } else if of_reason < GROUPS {
            let nodes = vec![report.node.as_str()];
            groups.push(Group { reason, says, nodes });
        } else {
            match further.last_mut().filter(|(last, _)| *last == reason) {
                Some((_, count)) => *count += 1,
                None => further.push((reason, 1)),
            }
        }
    }
    let mut texts: Vec<String> = groups.iter().map(Group::text).collect();
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

/// Nodes of which the same is to be said.
struct Group<'a> {
    reason: Reason,
    says: String,
    nodes: Vec<&'a str>,
}

impl Group<'_> {
    fn text(&self) -> String {
        let named = self
            .nodes
            .iter()
            .take(NAMED_NODES)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        let more = match self.nodes.len().saturating_sub(NAMED_NODES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let says: String = self.says.chars().take(TEXT).collect();
        format!("{named}{more}: {says}")
    }
}
