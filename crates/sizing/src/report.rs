//! Result of sizing for one node: data for scripts, words for people.

use perfval_api::text::number_of;
use perfval_api::{Allocation, ExpectedGpus, Reason};
use serde::Serialize;
use thiserror::Error;

use super::taken::Taken;

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// Its name.
    pub node: String,
    /// Mechanism that gives out its GPUs: `DRA` or `DevicePlugin`; `None` if there are no GPUs or both do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
    /// Its GPUs, free or not.
    #[serde(rename = "gpus")]
    pub total: i64,
    /// GPUs that workers could get.
    pub free: i64,
    /// GPUs that the node should have, if it has fewer healthy ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedGpus>,
    /// All other GPUs, by what rules them out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<Taken>,
    /// GPUs that a run could have now, before `maxGPUs`: as many as are free and as there is room for workers.
    pub usable: i64,
    /// Obstacle that rules out the node; `None` if a run could have it.
    #[serde(flatten)]
    pub obstacle: Option<NodeObstacle>,
}

/// Obstacle that rules out a node. The names are stable, for scripts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Error)]
#[serde(tag = "why")]
#[allow(missing_docs)] // every field is what the message says of it
pub enum NodeObstacle {
    /// It has no GPUs.
    #[error("has no GPUs")]
    NoGpus,
    /// It is being deleted.
    #[error("is being deleted")]
    BeingDeleted,
    /// It is not Ready.
    #[error("is not Ready")]
    NotReady,
    /// It is cordoned, and the spec does not name it.
    #[error("is cordoned, and placement.nodeSelector does not name it")]
    Cordoned,
    /// It lacks a label that `nodeSelector` requires.
    #[error("does not carry {label}")]
    LabelMissing { label: String },
    /// The cluster has taken it out of service, or is about to remove it.
    #[error("is out of service: it has the taint {taint}")]
    OutOfService { taint: String },
    /// It has taints that our pods do not tolerate; the tolerations are as the spec would write them.
    #[error("{}", not_tolerated(.taints, .tolerations))]
    NotTolerated {
        taints: Vec<String>,
        tolerations: Vec<String>,
    },
    /// It cannot reach the volume of the model cache.
    #[error("cannot reach the volume of the model cache {claim}: only nodes with {nodes} can")]
    VolumeElsewhere { claim: String, nodes: String },
    /// Another run has it; the name is absent if messages may not name the run.
    #[error("is held by {}", held_by(.run.as_deref()))]
    HeldByRun {
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
    /// A driver is still publishing its devices.
    #[error("{driver} is still publishing: pool {pool} has {slices} of {announced} slices")]
    PoolIncomplete {
        driver: String,
        pool: String,
        slices: usize,
        announced: i64,
    },
    /// A driver publishes what no scheduler would use.
    #[error("pool {pool} of {driver} is invalid: {fault}")]
    PoolInvalid {
        driver: String,
        pool: String,
        fault: String,
    },
    /// Claims and a device plugin give out the same GPUs, and neither sees the other.
    #[error("gives its GPUs out by ResourceSlices and as {resource} at once: {fault}")]
    TwoLedgers { resource: String, fault: String },
    /// Only claims give out its GPUs, and a pod still has some of a device plugin that offers none any more.
    #[error("{pod} still has {resource} of a device plugin that offers none any more: which GPUs is unknown")]
    LeftByPlugin { pod: String, resource: String },
    /// Only claims give out its GPUs, but the spec wants the device plugin.
    #[error("gives its GPUs out by DRA only, but the run needs {resource}")]
    OnlyByClaims { resource: String },
    /// Only a device plugin gives out its GPUs, but the spec wants claims.
    #[error("gives its GPUs out as {resource} only, but the run needs DRA")]
    OnlyByPlugin { resource: String },
    /// Its device plugin gives one GPU to several pods: what it offers is less than whole GPUs.
    #[error("its {offered} {resource} are {}", .are.explain(.how))]
    SharedGpus {
        resource: String,
        offered: i64,
        are: SharedAs,
        how: String,
    },
    /// Devices are published, but the class is missing.
    #[error("devices are published, but the DeviceClass {class} is missing: the driver is half installed")]
    ClassMissing { class: String },
    /// The node claims to have GPUs, but nothing offers them.
    #[error(
        "has GPUs by its labels or its capacity, but neither ResourceSlices nor {resource} offer any: if the DRA plugin \
         started before the driver, restart the plugin's pod"
    )]
    NothingPublished { resource: String },
    /// None of its devices is of the class.
    #[error("none of its devices is of the class {class}")]
    NotOfClass { class: String },
    /// The class's selector has no answer here.
    #[error("the class's selector cannot be evaluated: {fault}")]
    NotEvaluable { fault: String },
    /// The class holds what a worker must not get, and no claim can exclude it.
    #[error("{fault}")]
    Inseparable { fault: String },
    /// It has fewer GPUs than the run needs, free or not.
    #[error("has too few GPUs")]
    TooFew,
    /// Too many of its GPUs are never given out as a whole.
    #[error("has too few whole GPUs")]
    NotWhole,
    /// Too few of its GPUs are free.
    #[error("has too few free GPUs")]
    NotEnoughFree,
    /// Its GPUs are free, but something else is short.
    #[error("{resource} for only {}", number_of(*.workers, "worker"))]
    NoRoom { resource: String, workers: i64 },
    /// Its GPUs are free, but a `ResourceQuota` of the run's namespace leaves too little.
    #[error(
        "ResourceQuota {quota} leaves {resource} for only {}{}",
        number_of(*.workers, "worker"),
        if *.for_now { " while other runs of this namespace use it" } else { "" }
    )]
    QuotaExceeded {
        quota: String,
        resource: String,
        workers: i64,
        /// True if the quota leaves enough once other runs of the namespace are over.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        for_now: bool,
    },
}

fn not_tolerated(taints: &[String], tolerations: &[String]) -> String {
    let (s, is) = if taints.len() == 1 { ("", "is") } else { ("s", "are") };
    let (taints, tolerations) = (taints.join(" and "), tolerations.join(", "));
    format!("has the taint{s} {taints}, which {is} not tolerated: add to placement.tolerations: [{tolerations}]")
}

fn held_by(run: Option<&str>) -> String {
    run.map_or_else(
        || "a run of another namespace".to_owned(),
        |run| format!("the run of {run}"),
    )
}

impl NodeObstacle {
    /// The reason that a run gives when no node has a better one.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NoGpus
            | Self::BeingDeleted
            | Self::NotReady
            | Self::Cordoned
            | Self::LabelMissing { .. }
            | Self::OutOfService { .. }
            | Self::NotTolerated { .. }
            | Self::VolumeElsewhere { .. }
            | Self::OnlyByClaims { .. }
            | Self::OnlyByPlugin { .. }
            | Self::SharedGpus { .. }
            | Self::NotOfClass { .. }
            | Self::Inseparable { .. }
            | Self::TooFew
            | Self::NotWhole => Reason::NoCandidateNode,
            // Both end with the runs that are ahead.
            Self::HeldByRun { .. } | Self::QuotaExceeded { for_now: true, .. } => Reason::NodeBusy,
            Self::PoolIncomplete { .. } | Self::PoolInvalid { .. } => Reason::PoolUnsettled,
            Self::TwoLedgers { .. } => Reason::MixedAllocation,
            Self::ClassMissing { .. } => Reason::DeviceClassMissing,
            Self::NothingPublished { .. } => Reason::NoDevicesPublished,
            Self::NotEvaluable { .. } => Reason::SelectorNotEvaluable,
            Self::NotEnoughFree | Self::LeftByPlugin { .. } | Self::NoRoom { .. } => Reason::Saturated,
            Self::QuotaExceeded { .. } => Reason::QuotaExceeded,
        }
    }
}

impl NodeReport {
    /// GPUs that are out of service.
    pub fn faulty(&self) -> i64 {
        let faulty = self.taken.iter().filter(|taken| taken.why.is_faulty());
        faulty.map(|taken| taken.gpus).sum()
    }

    /// GPUs that a worker may have at some time.
    pub(crate) fn whole(&self) -> i64 {
        let never = self.taken.iter().filter(|taken| taken.why.is_for_good());
        self.total - never.map(|taken| taken.gpus).sum::<i64>()
    }

    /// GPUs that are in service, free or not.
    pub fn healthy(&self) -> i64 {
        self.total - self.faulty()
    }

    /// A line for people: `7 of 8 GPUs free (1 in use by team-a/train)`, behind what rules out the node.
    pub fn summary(&self) -> String {
        let Some(obstacle) = &self.obstacle else {
            return self.free_of_total();
        };
        match obstacle {
            NodeObstacle::TooFew => format!("has {} in all{}", number_of(self.total, "GPU"), self.expected_text()),
            NodeObstacle::NotWhole => {
                let (whole, total, because) = (self.whole(), self.total, self.because());
                format!("only {whole} of {total} GPUs can be had whole{because}")
            }
            NodeObstacle::NotEnoughFree => self.free_of_total(),
            NodeObstacle::NoRoom { .. } | NodeObstacle::QuotaExceeded { .. } => {
                format!("{}, but {obstacle}", self.free_of_total())
            }
            _ => obstacle.to_string(),
        }
    }

    fn free_of_total(&self) -> String {
        let (expected, because) = (self.expected_text(), self.because());
        format!("{} of {} GPUs free{expected}{because}", self.free, self.total)
    }

    /// GPUs that a node should show if it shows too few.
    fn expected_text(&self) -> String {
        let more = self.expected.filter(|expected| expected.gpus > self.total);
        more.map_or(String::new(), |expected| {
            format!(", {} expected by {}", expected.gpus, expected.by.in_words())
        })
    }

    fn because(&self) -> String {
        let all: Vec<String> = self.taken.iter().map(Taken::to_string).collect();
        if all.is_empty() {
            return String::new();
        }
        format!(" ({})", all.join("; "))
    }
}

/// Parts of a GPU that a device plugin gives out as whole ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SharedAs {
    /// A share of one, next to other pods' shares.
    Shares,
    /// A partition of one.
    Partitions,
    /// Nothing shows what, but there are more of them than GPUs.
    TooMany,
}

impl SharedAs {
    /// Describes a number of them and the remedy.
    pub fn explain(self, how: &str) -> String {
        let in_brackets = if how.is_empty() {
            String::new()
        } else {
            format!(" ({how})")
        };
        let (are, then) = match self {
            Self::Shares => (
                format!("shares of GPUs{in_brackets}"),
                "turn sharing off for this node in the device plugin's configuration",
            ),
            Self::Partitions => (format!("MIG partitions{in_brackets}"), "turn MIG off on this node"),
            Self::TooMany => (format!("more than {how}"), "give out each GPU once"),
        };
        format!("{are}, and a worker needs a whole GPU: {then}")
    }
}
