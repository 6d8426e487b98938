//! GPUs that no worker can get, and why.

use std::fmt;

use rust_decimal::prelude::Zero;
use serde::Serialize;

use super::naming::{Holder, Naming};

/// Most holders whose names are in a report.
const NAMED_HOLDERS: usize = 3;

/// GPUs of a node that no worker can get, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    /// The reason.
    #[serde(flatten)]
    pub why: TakenBy,
    /// Number of GPUs.
    pub gpus: i64,
    /// Holders as `namespace/name`; at most three, in order. Only those that messages may name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Number of further holders.
    #[serde(skip_serializing_if = "Zero::is_zero")]
    pub more: usize,
    /// Holders that messages may not name, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<String>,
}

/// Reason why a worker cannot get a GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "why")]
pub enum TakenBy {
    /// A claim holds it, or the device plugin gave it to a pod.
    InUse,
    /// A pod has it from the device plugin, on a node where claims give out the others.
    InUseByPod {
        /// The pod, for people; all pods of other namespaces are one if messages may not name them.
        pod: String,
    },
    /// The device plugin reports it as unhealthy: it is in the node's capacity, but not in its allocatable.
    Unhealthy,
    /// The driver gives it to many claims at once, and a worker needs a whole GPU.
    Shareable,
    /// It is tainted.
    Tainted {
        /// Key of the taint, with the name of its `DeviceTaintRule` if it has one.
        taint: String,
    },
    /// The counters that it consumes are used up, as by a MIG partition of it.
    CountersUsedUp,
    /// Another device of the same physical GPU is in use.
    TwinInUse,
    /// It would only be attached after the pod is bound, or the scheduler would take such a device first.
    BindsLater,
}

impl TakenBy {
    /// Returns true if no waiting frees the GPU for a worker.
    pub fn is_for_good(&self) -> bool {
        matches!(self, Self::Shareable | Self::BindsLater)
    }

    /// Returns true if the GPU is out of service, and not in use by another pod or claim.
    pub fn is_faulty(&self) -> bool {
        matches!(self, Self::Unhealthy | Self::Tainted { .. })
    }
}

impl Taken {
    /// GPUs that are in use, or that something else rules out.
    pub fn by<'a>(
        why: TakenBy,
        gpus: i64,
        (holder, names): (Holder, impl IntoIterator<Item = &'a str>),
        naming: &Naming,
    ) -> Self {
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        let known = names.len();
        names.retain(|name| naming.shows(name));
        Self {
            why,
            gpus,
            others: holder.foreign(known - names.len()),
            more: names.len().saturating_sub(NAMED_HOLDERS),
            by: names.into_iter().take(NAMED_HOLDERS).map(str::to_owned).collect(),
        }
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.gpus)?;
        match &self.why {
            TakenBy::InUse => f.write_str("in use"),
            TakenBy::InUseByPod { pod } => write!(f, "in use by {pod} through the device plugin"),
            TakenBy::Unhealthy => f.write_str("unhealthy"),
            TakenBy::Shareable => f.write_str("given out in shares: allowMultipleAllocations, a setting of the driver"),
            TakenBy::Tainted { taint } => write!(f, "tainted: {taint}"),
            TakenBy::CountersUsedUp => f.write_str("used up by partitions"),
            TakenBy::TwinInUse => f.write_str("in use through another device of the same GPU"),
            TakenBy::BindsLater => f.write_str("attached only after binding: bindingConditions"),
        }?;
        if !self.by.is_empty() {
            write!(f, " by {}", self.by.join(", "))?;
        }
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        match &self.others {
            None => Ok(()),
            Some(others) if self.by.is_empty() => write!(f, " by {others}"),
            Some(others) => write!(f, " and {others}"),
        }
    }
}
