//! Counters: what devices of a pool take from one another, such as a MIG partition from its whole card.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use crate::inventory::{Consumption, Device, Slice};

/// Remaining counters of a pool, by set and counter.
pub struct PoolCounters<'a> {
    left: BTreeMap<(&'a str, &'a str), Decimal>,
}

impl<'a> PoolCounters<'a> {
    /// The counters of a valid pool's slices with nothing taken.
    pub fn new(slices: impl Iterator<Item = &'a Slice>) -> Self {
        Self {
            left: slices.flat_map(|slice| amounts(&slice.shared_counters)).collect(),
        }
    }

    /// Takes what a device consumes, whether or not it is there: the scheduler has given it away already.
    pub fn take(&mut self, device: &'a Device) {
        for (key, amount) in amounts(&device.consumes) {
            if let Some(left) = self.left.get_mut(&key) {
                *left = left.saturating_sub(amount);
            }
        }
    }

    /// Returns true if everything that a device consumes is still available. While any counter of the pool is
    /// overdrawn, the scheduler gives out none of the devices that consume counters.
    pub fn suffice(&self, device: &Device) -> bool {
        if device.consumes.is_empty() {
            return true;
        }
        let overdrawn = self.left.values().any(|left| *left < Decimal::ZERO);
        !overdrawn
            && amounts(&device.consumes).all(|(key, amount)| self.left.get(&key).is_some_and(|left| amount <= *left))
    }
}

/// Fault in the counters of a pool's slices.
pub fn fault<'a>(slices: impl Iterator<Item = &'a Slice> + Clone) -> Option<String> {
    let mut known = BTreeSet::new();
    let mut sets = BTreeSet::new();
    for Consumption { set, counters } in slices.clone().flat_map(|slice| &slice.shared_counters) {
        if !sets.insert(&**set) {
            return Some(format!("two counter sets are called {set}"));
        }
        known.extend(counters.iter().map(|(name, _)| (&**set, &**name)));
    }
    let shared = slices.clone().flat_map(|slice| amounts(&slice.shared_counters));
    if let Some(((set, counter), _)) = shared.into_iter().find(|(_, amount)| *amount < Decimal::ZERO) {
        return Some(format!("counter {set}/{counter} is not an amount"));
    }
    slices.flat_map(|slice| &slice.devices).find_map(|device| {
        let ((set, counter), amount) =
            amounts(&device.consumes).find(|(key, amount)| !known.contains(key) || *amount < Decimal::ZERO)?;
        Some(if amount < Decimal::ZERO {
            format!("what {} consumes of {set}/{counter} is not an amount", device.name)
        } else {
            format!("{} consumes {set}/{counter}, which the pool does not have", device.name)
        })
    })
}

/// Amounts by set and counter. A valid pool has no negative ones: they would give other devices more than the card has.
fn amounts(sets: &[Consumption]) -> impl Iterator<Item = ((&str, &str), Decimal)> {
    sets.iter().flat_map(|Consumption { set, counters }| {
        counters.iter().map(move |(name, amount)| ((&**set, &**name), *amount))
    })
}
