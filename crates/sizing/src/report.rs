//! What sizing found on one node: data for scripts, words for people.

use std::fmt;

use perfval_api::{PlacementStatus, Reason};
use rust_decimal::prelude::Zero;
use serde::Serialize;

/// Holders that a report names.
const NAMED_HOLDERS: usize = 3;

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// Its name.
    pub node: String,
    /// Who gives out its GPUs: `DRA` or `DevicePlugin`; none where there are no GPUs or both do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation: Option<&'static str>,
    /// Its GPUs, free or not.
    #[serde(rename = "gpus")]
    pub total: i64,
    /// GPUs that workers could get.
    pub free: i64,
    /// All other GPUs, by what stands against them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<Taken>,
    /// GPUs that a run could have now, before `maxGPUs`: as many as are free and as there is room for workers.
    pub usable: i64,
    /// What stands against the node; none: a run could have it.
    #[serde(flatten)]
    pub obstacle: Option<Obstacle>,
    /// The plan of a run on this node.
    #[serde(skip)]
    pub plan: Option<PlacementStatus>,
}

/// GPUs of a node that no worker can get, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    /// The reason.
    #[serde(flatten)]
    pub why: TakenBy,
    /// How many.
    pub gpus: i64,
    /// Who has them, as `namespace/name`; at most three, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// How many more have them.
    #[serde(skip_serializing_if = "Zero::is_zero")]
    pub more: usize,
}

/// Why a worker cannot get a GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "why")]
pub enum TakenBy {
    /// A claim holds it, or a pod asked the device plugin for it.
    InUse,
    /// A pod has it from the device plugin, on a node where claims give out the others.
    InUseByPod {
        /// `namespace/name`.
        pod: String,
    },
    /// The device plugin reports it as unhealthy: it is in the node's capacity, but not in its allocatable.
    Unhealthy,
    /// The driver gives it to many claims at once, and a worker needs a whole GPU.
    Shareable,
    /// It is tainted.
    Tainted {
        /// Key of the taint, or name of the `DeviceTaintRule`.
        taint: String,
    },
    /// The counters that it consumes are used up, as by a MIG partition of it.
    CountersUsedUp,
    /// Another device of the same physical GPU is in use.
    TwinInUse,
    /// It would only be attached after the pod is bound, or the scheduler would take such a device first.
    BindsLater,
}

/// What stands against a node. The names are stable, for scripts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why")]
#[allow(missing_docs)] // every field is what the message says of it
pub enum Obstacle {
    /// It has no GPUs.
    NoGpus,
    /// It is being deleted.
    BeingDeleted,
    /// It is not Ready.
    NotReady,
    /// It is cordoned.
    Cordoned,
    /// It lacks a label that `nodeSelector` asks for.
    LabelMissing { label: String },
    /// It has a taint that our pods do not tolerate.
    NotTolerated { taint: String },
    /// Another run has it.
    HeldByRun { run: String },
    /// A driver is still publishing its devices.
    PoolIncomplete {
        driver: String,
        pool: String,
        slices: usize,
        announced: i64,
    },
    /// A driver publishes what no scheduler would use.
    PoolInvalid {
        driver: String,
        pool: String,
        fault: String,
    },
    /// Claims and a device plugin give out the same GPUs, and neither sees the other.
    TwoLedgers { resource: String, fault: String },
    /// Only claims give out its GPUs, and a pod still has some of a device plugin that offers none any more.
    LeftByPlugin { pod: String, resource: String },
    /// Only claims give out its GPUs, and the device plugin was asked for.
    OnlyByClaims { resource: String },
    /// Only a device plugin gives out its GPUs, and claims were asked for.
    OnlyByPlugin { resource: String },
    /// Devices are published, but the class is missing.
    ClassMissing { class: String },
    /// It says that it has GPUs, but nothing offers them.
    NothingPublished { resource: String },
    /// None of its devices is of the class.
    NotOfClass { class: String },
    /// The class's selector has no answer here.
    NotEvaluable { fault: String },
    /// The class holds what a worker must not get, and no claim can tell it apart.
    Inseparable { fault: String },
    /// It has fewer GPUs than the run asks for, free or not.
    TooFew,
    /// Too many of its GPUs are never given out as a whole.
    NotWhole,
    /// Too few of its GPUs are free.
    NotEnoughFree,
    /// Its GPUs are free, but something else is short.
    NoRoom { resource: String, workers: i64 },
    /// Its GPUs are free, but a `ResourceQuota` of the run's namespace leaves too little.
    QuotaExceeded {
        quota: String,
        resource: String,
        workers: i64,
    },
}

impl Obstacle {
    /// The reason that a run gives when nothing better is to be had.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NoGpus
            | Self::BeingDeleted
            | Self::NotReady
            | Self::Cordoned
            | Self::LabelMissing { .. }
            | Self::NotTolerated { .. }
            | Self::OnlyByClaims { .. }
            | Self::OnlyByPlugin { .. }
            | Self::NotOfClass { .. }
            | Self::Inseparable { .. }
            | Self::TooFew
            | Self::NotWhole => Reason::NoCandidateNode,
            Self::HeldByRun { .. } => Reason::NodeBusy,
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
    /// A line for people: `7 of 8 GPUs free (1 in use by team-a/train)`, behind what stands against the node.
    pub fn summary(&self) -> String {
        let Some(obstacle) = &self.obstacle else {
            return self.free_of_total();
        };
        match obstacle {
            Obstacle::NoGpus => "has no GPUs".to_owned(),
            Obstacle::BeingDeleted => "is being deleted".to_owned(),
            Obstacle::NotReady => "is not Ready".to_owned(),
            Obstacle::Cordoned => "is cordoned".to_owned(),
            Obstacle::LabelMissing { label } => format!("does not carry {label}"),
            Obstacle::NotTolerated { taint } => format!("has the taint {taint}, which is not tolerated"),
            Obstacle::HeldByRun { run } => format!("is held by the run of {run}"),
            Obstacle::PoolIncomplete {
                driver,
                pool,
                slices,
                announced,
            } => format!("{driver} is still publishing: pool {pool} has {slices} of {announced} slices"),
            Obstacle::PoolInvalid { driver, pool, fault } => format!("pool {pool} of {driver} is invalid: {fault}"),
            Obstacle::TwoLedgers { resource, fault } => {
                format!("gives its GPUs out by ResourceSlices and as {resource} at once: {fault}")
            }
            Obstacle::LeftByPlugin { pod, resource } => {
                format!(
                    "{pod} still has {resource} of a device plugin that offers none any more: which GPUs, nobody says"
                )
            }
            Obstacle::OnlyByClaims { resource } => {
                format!("gives its GPUs out by DRA only, and {resource} was asked for")
            }
            Obstacle::OnlyByPlugin { resource } => {
                format!("gives its GPUs out as {resource} only, and DRA was asked for")
            }
            Obstacle::ClassMissing { class } => {
                format!("devices are published, but the DeviceClass {class} is missing: the driver is half installed")
            }
            Obstacle::NothingPublished { resource } => format!(
                "is labelled as having GPUs, but neither ResourceSlices nor {resource} offer any: if the DRA plugin \
                 started before the driver, restart the plugin's pod"
            ),
            Obstacle::NotOfClass { class } => format!("none of its devices is of the class {class}"),
            Obstacle::NotEvaluable { fault } => format!("the class's selector cannot be evaluated: {fault}"),
            Obstacle::Inseparable { fault } => fault.clone(),
            Obstacle::TooFew => format!("has {} GPUs in all", self.total),
            Obstacle::NotWhole => {
                let never = self.taken.iter().filter(|taken| taken.why.is_for_good());
                let whole = self.total - never.map(|taken| taken.gpus).sum::<i64>();
                format!("only {whole} of {} GPUs can be had whole{}", self.total, self.because())
            }
            Obstacle::NotEnoughFree => self.free_of_total(),
            Obstacle::NoRoom { resource, workers } => {
                format!("{}, but {resource} for only {workers} workers", self.free_of_total())
            }
            Obstacle::QuotaExceeded {
                quota,
                resource,
                workers,
            } => format!(
                "{}, but ResourceQuota {quota} leaves {resource} for only {workers} workers",
                self.free_of_total()
            ),
        }
    }

    fn free_of_total(&self) -> String {
        format!("{} of {} GPUs free{}", self.free, self.total, self.because())
    }

    fn because(&self) -> String {
        let all: Vec<String> = self.taken.iter().map(Taken::to_string).collect();
        if all.is_empty() {
            return String::new();
        }
        format!(" ({})", all.join("; "))
    }
}

impl TakenBy {
    /// Whether no waiting makes the GPU a worker's.
    pub fn is_for_good(&self) -> bool {
        matches!(self, Self::Shareable | Self::BindsLater)
    }
}

impl Taken {
    /// GPUs that somebody has, or something stands against.
    pub fn by<'a>(why: TakenBy, gpus: i64, holders: impl IntoIterator<Item = &'a str>) -> Self {
        let mut holders: Vec<&str> = holders.into_iter().collect();
        holders.sort_unstable();
        holders.dedup();
        Self {
            why,
            gpus,
            more: holders.len().saturating_sub(NAMED_HOLDERS),
            by: holders.into_iter().take(NAMED_HOLDERS).map(str::to_owned).collect(),
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
        Ok(())
    }
}
