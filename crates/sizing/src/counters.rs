//! Counters: what devices of a pool take from one another, such as a MIG partition from its whole card.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use crate::inventory::{Consumption, Counter, Device, Slice};

/// Remaining counters of a pool, by set and counter.
pub struct PoolCounters<'a> {
    left: BTreeMap<(&'a str, &'a str), Decimal>,
}

impl<'a> PoolCounters<'a> {
    /// The counters of a valid pool's slices with nothing taken.
    pub fn new(slices: impl Iterator<Item = &'a Slice>) -> Self {
        let counters = slices.flat_map(|slice| amounts(&slice.shared_counters));
        Self {
            left: counters.map(|(key, value)| (key, value.unwrap_or_default())).collect(),
        }
    }

    /// Takes what a device consumes, whether or not it is there: the scheduler has given it away already.
    pub fn take(&mut self, device: &'a Device) {
        for (key, amount) in amounts(&device.consumes) {
            if let Some(left) = self.left.get_mut(&key) {
                *left = left.saturating_sub(amount.unwrap_or_default());
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
            && amounts(&device.consumes).all(|(key, amount)| {
                let left = self.left.get(&key).copied().unwrap_or_default();
                amount.is_some_and(|amount| amount <= left)
            })
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
        known.extend(counters.iter().map(|counter| (&**set, &*counter.name)));
    }
    let shared = slices.clone().flat_map(|slice| amounts(&slice.shared_counters));
    if let Some(((set, counter), _)) = shared.into_iter().find(|(_, amount)| amount.is_none()) {
        return Some(format!("counter {set}/{counter} is not an amount"));
    }
    slices.flat_map(|slice| &slice.devices).find_map(|device| {
        let ((set, counter), amount) =
            amounts(&device.consumes).find(|(key, amount)| !known.contains(key) || amount.is_none())?;
        Some(match amount {
            Some(_) => format!("{} consumes {set}/{counter}, which the pool does not have", device.name),
            None => format!("what {} consumes of {set}/{counter} is not an amount", device.name),
        })
    })
}

/// Amounts by set and counter. An amount that is negative or no quantity becomes `None`: a negative one would give
/// other devices more than the card has.
fn amounts(sets: &[Consumption]) -> impl Iterator<Item = ((&str, &str), Option<Decimal>)> {
    sets.iter().flat_map(|Consumption { set, counters }| {
        let amount = |value: &Result<Decimal, _>| value.as_ref().ok().copied().filter(|value| *value >= Decimal::ZERO);
        counters
            .iter()
            .map(move |Counter { name, value }| ((&**set, &**name), amount(value)))
    })
}
