//! Bounds of the numbers and lists in a record. A pod printed it, so any digits may be there: they are looked at where they are
//! read.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use rust_decimal::Decimal;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Largest number of a trial. Counters in microseconds stay below it, and sums of many stay far from 64 bits; a product of two
/// does not fit into a decimal for sure, so judging multiplies with checks.
pub(crate) const MOST: i64 = 1_000_000_000_000_000;
/// No request and no trial is longer (s).
pub(crate) const WEEK: i64 = 7 * 24 * 3600;
/// Workers, and GPUs, that a trial records: more than any node has.
pub const MOST_PER_NODE: usize = 64;

/// A value that can be searched for a number beyond [`MOST`].
pub(crate) trait Bounded {
    fn is_bounded(&self) -> bool;
}

impl Bounded for i64 {
    fn is_bounded(&self) -> bool {
        (-MOST..=MOST).contains(self)
    }
}

impl Bounded for u64 {
    fn is_bounded(&self) -> bool {
        *self <= MOST.unsigned_abs()
    }
}

impl Bounded for Decimal {
    fn is_bounded(&self) -> bool {
        self.abs() <= Self::from(MOST)
    }
}

impl<T: Bounded> Bounded for Option<T> {
    fn is_bounded(&self) -> bool {
        self.as_ref().is_none_or(T::is_bounded)
    }
}

impl<T: Bounded> Bounded for Vec<T> {
    fn is_bounded(&self) -> bool {
        self.iter().all(T::is_bounded)
    }
}

impl<K, T: Bounded> Bounded for BTreeMap<K, T> {
    fn is_bounded(&self) -> bool {
        self.values().all(T::is_bounded)
    }
}

/// Numbers that a measurement can have.
pub(crate) fn bounded<'de, D: Deserializer<'de>, T: Bounded + Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    let read = T::deserialize(input)?;
    if read.is_bounded() {
        Ok(read)
    } else {
        Err(D::Error::custom("a number beyond ±10^15, and no trial has one"))
    }
}

/// Seconds since the runner started. The size of the judged data grows with them: a result with 10^18 required as
/// many windows of two seconds (found by fuzzing).
pub(crate) fn second<'de, D: Deserializer<'de>>(input: D) -> Result<i64, D::Error> {
    let second = i64::deserialize(input)?;
    if (0..=WEEK).contains(&second) {
        Ok(second)
    } else {
        Err(D::Error::custom(format!(
            "a sample of second {second}, and a trial has 0 to {WEEK}"
        )))
    }
}

/// A list or a set of at most [`MOST_PER_NODE`] entries. A longer one is refused before it takes memory: an empty entry of 3 bytes
/// becomes one of hundreds.
pub(crate) fn short<'de, D, L>(input: D) -> Result<L, D::Error>
where
    D: Deserializer<'de>,
    L: Default + IntoIterator<Item: Deserialize<'de>> + Extend<<L as IntoIterator>::Item>,
{
    input.deserialize_seq(ShortList(PhantomData))
}

struct ShortList<L>(PhantomData<L>);

impl<'de, L> Visitor<'de> for ShortList<L>
where
    L: Default + IntoIterator<Item: Deserialize<'de>> + Extend<<L as IntoIterator>::Item>,
{
    type Value = L;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST_PER_NODE}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<L, A::Error> {
        let (mut list, mut read) = (L::default(), 0);
        while let Some(entry) = entries.next_element::<L::Item>()? {
            read += 1;
            if read > MOST_PER_NODE {
                return Err(A::Error::invalid_length(read, &self));
            }
            list.extend([entry]);
        }
        Ok(list)
    }
}
