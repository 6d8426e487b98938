//! Requests of a trial as the results keep them.

use rust_decimal::prelude::Zero;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::number::{WEEK, bounded};

/// Most points of one line that are taken over from a result.
const MOST_POINTS: usize = 1000;

/// Times of the measured requests of one trial that ended well.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RequestTimes {
    /// Number of these requests.
    #[serde(deserialize_with = "bounded")]
    pub count: i64,
    /// Lines of the record that this version does not understand.
    #[serde(default, deserialize_with = "bounded", skip_serializing_if = "Zero::is_zero")]
    pub unread: i64,
    /// From the second in which the first began to that in which the last did (s).
    pub seconds: i64,
    /// Length of one point over time (s).
    pub every: i64,
    /// Time to the first token.
    pub time_to_first_token: Distribution,
    /// Mean time from token to token of one request; an answer of one token has none.
    pub inter_token_latency: Distribution,
    /// Time to the end of the answer.
    pub request_latency: Distribution,
}

/// One time of these requests.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Distribution {
    /// In order of time; seconds in which no request began have no point.
    pub over_time: Vec<Quantiles>,
    /// Of all together, in order of their share.
    pub cdf: Vec<CdfPoint>,
}

/// Requests that began within some seconds; `[from, median, p90, p99]` as JSON.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(into = "[i64; 4]")]
pub struct Quantiles {
    /// First of these seconds; that of the first request is 0.
    pub from: i64,
    /// Half of them took at most so long (µs).
    pub median: i64,
    /// 90 % did (µs).
    pub p90: i64,
    /// 99 % did (µs).
    pub p99: i64,
}

/// A point of a cumulative distribution; `[per mille, µs]` as JSON.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct CdfPoint(
    /// Per mille of the requests, from the fastest
    pub i64,
    /// Longest time among them (µs).
    pub i64,
);

impl RequestTimes {
    /// Returns true if it can be drawn: a forged result must not cost more than a real one.
    fn is_plausible(&self) -> bool {
        let all = [
            &self.time_to_first_token,
            &self.inter_token_latency,
            &self.request_latency,
        ];
        self.count >= 0
            && (0..=WEEK).contains(&self.seconds)
            && (1..=WEEK).contains(&self.every)
            && all.into_iter().all(Distribution::is_plausible)
    }
}

impl Distribution {
    /// Longest time among the fastest `per_mille` of a thousand requests (µs), if that is a point of the
    /// distribution.
    pub fn at_most(&self, per_mille: i64) -> Option<i64> {
        let point = self.cdf.iter().find(|CdfPoint(share, _)| *share == per_mille)?;
        Some(point.1)
    }

    fn is_plausible(&self) -> bool {
        let taken = |us: i64| (0..=WEEK * 1_000_000).contains(&us);
        let points = &self.over_time;
        points.len() <= MOST_POINTS
            && self.cdf.len() <= MOST_POINTS
            && points.iter().all(|point| (0..=WEEK).contains(&point.from))
            && points.windows(2).all(|pair| pair[0].from < pair[1].from)
            && points
                .iter()
                .all(|point| [point.median, point.p90, point.p99].into_iter().all(taken))
            && self
                .cdf
                .iter()
                .all(|CdfPoint(share, us)| (0..=1000).contains(share) && taken(*us))
            && self
                .cdf
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1)
    }
}

impl From<Quantiles> for [i64; 4] {
    fn from(Quantiles { from, median, p90, p99 }: Quantiles) -> Self {
        [from, median, p90, p99]
    }
}

/// Reads times, which are only drawn and so make no trial unusable: an unknown form counts as absent.
pub fn if_understood<'de, D: Deserializer<'de>>(input: D) -> Result<Option<RequestTimes>, D::Error> {
    let value = Value::deserialize(input)?;
    let times = serde_json::from_value::<RequestTimes>(value).ok();
    Ok(times.filter(RequestTimes::is_plausible))
}
