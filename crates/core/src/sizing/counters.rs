//! Counters: what devices of a pool take from one another, such as a MIG partition from its whole card.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::resource::v1::{Counter, Device};
use rust_decimal::Decimal;

use super::pools::Pool;
use crate::quantity;

/// What is left of the counters of a pool, by set and counter.
pub struct Counters<'a> {
    left: BTreeMap<(&'a str, &'a str), Decimal>,
}

impl<'a> Counters<'a> {
    /// The counters of a valid pool with nothing taken.
    pub fn of(pool: &Pool<'a>) -> Self {
        let sets = pool
            .slices()
            .flat_map(|slice| slice.spec.shared_counters.iter().flatten());
        let counters = sets.flat_map(|set| {
            let set_name = set.name.as_str();
            set.counters
                .iter()
                .map(move |(name, counter)| ((set_name, name.as_str()), value(counter)))
        });
        Self {
            left: counters.map(|(key, value)| (key, value.unwrap_or_default())).collect(),
        }
    }

    /// Takes what a device consumes, whether or not it is there: the scheduler has given it away already.
    pub fn take(&mut self, device: &'a Device) {
        for (key, amount) in consumption(device) {
            if let Some(left) = self.left.get_mut(&key) {
                *left -= amount.unwrap_or_default();
            }
        }
    }

    /// Whether everything that a device consumes is still there.
    pub fn suffice(&self, device: &Device) -> bool {
        consumption(device).all(|(key, amount)| {
            let left = self.left.get(&key).copied().unwrap_or_default();
            amount.is_some_and(|amount| amount <= left)
        })
    }
}

/// What is wrong with the counters of a pool.
pub fn fault(pool: &Pool<'_>) -> Option<String> {
    let mut known = BTreeSet::new();
    let mut sets = BTreeSet::new();
    for set in pool
        .slices()
        .flat_map(|slice| slice.spec.shared_counters.iter().flatten())
    {
        if !sets.insert(set.name.as_str()) {
            return Some(format!("two counter sets are called {}", set.name));
        }
        for (name, counter) in &set.counters {
            if value(counter).is_none() {
                return Some(format!(
                    "counter {}/{name} is not a number: {}",
                    set.name, counter.value.0
                ));
            }
            known.insert((set.name.as_str(), name.as_str()));
        }
    }
    pool.devices().find_map(|(id, device)| {
        let ((set, counter), _) = consumption(device).find(|(key, amount)| !known.contains(key) || amount.is_none())?;
        Some(format!(
            "{} consumes {set}/{counter}, which the pool does not have",
            id.device
        ))
    })
}

fn consumption(device: &Device) -> impl Iterator<Item = ((&str, &str), Option<Decimal>)> {
    device.consumes_counters.iter().flatten().flat_map(|consumed| {
        let set = consumed.counter_set.as_str();
        consumed
            .counters
            .iter()
            .map(move |(name, counter)| ((set, name.as_str()), value(counter)))
    })
}

fn value(counter: &Counter) -> Option<Decimal> {
    quantity::parse(&counter.value.0)
}
