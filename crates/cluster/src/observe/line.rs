//! The queue as the API server has it: every run that holds or wants a node.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use kube::api::{Api, ListParams};
use kube::core::{DynamicObject, ResourceExt as _};
use perfval_api::{PerfValidation, PerfValidationStatus, Phase, PlacementStatus};
use perfval_run::machine;
use perfval_run::queue::{Contender, Hold, Line, Position};
use serde::Deserialize as _;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::Cluster;
use crate::call::{ALL, Read, Unread, read};

/// Objects in a page: 8 MiB hold as many of 40 KB, with a long spec and a long status.
const PAGE: u32 = 200;
/// Finished runs without a node are the most, and have the longest statuses: with 5,000 of them each look took 1.8 s.
const NOT_SETTLED: &str = "status.operatorState.settled!=true";
/// Most bytes of all specs that wait, as JSON. A namespace may have half of the rest: 8 MiB for the first one (some 6,000 objects, or
/// 500 of the greatest length), and two thirds of the one before for each further full one. A run beyond that waits until runs before it
/// in the list are over.
const ALL_BYTES: usize = 24 << 20;

impl Cluster {
    /// All runs that hold or want a node, in any namespace.
    pub(crate) async fn line(&self) -> Read<Line> {
        let runs = self.contenders(Some).await?;
        // Finished runs, which show it, are not in the list.
        Ok(Line { runs, usual: None })
    }

    /// All runs that hold a node or plan to, as they are now or later. A hundred that begin at once need two lists,
    /// not a hundred: a caller that comes while one is read waits for the next.
    pub(crate) async fn holders(&self) -> Read<Arc<[Contender]>> {
        let asked = Instant::now();
        let mut last = self.holders.lock().await;
        if let Some((began, holders)) = &*last
            && *began > asked
        {
            return Ok(holders.clone());
        }
        let began = Instant::now();
        let holders = self
            .contenders(|run| Some(run).filter(|run| run.holds.is_some()))
            .await?;
        let holders: Arc<[Contender]> = holders.into();
        *last = Some((began, holders.clone()));
        Ok(holders)
    }

    /// All objects that are not settled, reduced to contenders.
    async fn contenders(&self, keep: impl Fn(Contender) -> Option<Contender>) -> Read<Vec<Contender>> {
        let api: Api<PerfValidation> = Api::all(self.client.clone());
        let now = self.now();
        // A thousand objects have megabytes: each one is reduced before the next one is read.
        let reduce = |waiting: &mut Waiting, json: Box<RawValue>| {
            let found = contender(json.get(), now).transpose()?;
            found.map(|run| waiting.bounded(run).and_then(&keep)).transpose()
        };
        let call = "list PerfValidations";
        let params = ListParams::default().limit(PAGE).fields(NOT_SETTLED);
        let listed = self.list_as(ALL, api.resource_url(), params, Waiting::default(), reduce);
        let runs: serde_json::Result<Vec<Contender>> = read(call, listed.await)?.items.into_iter().collect();
        runs.map_err(|error| Unread::Unknown(format!("{call}: {error}")))
    }
}

/// Bytes of the specs that wait.
#[derive(Clone, Default)]
struct Waiting {
    all: usize,
    namespaces: HashMap<String, usize>,
}

impl Waiting {
    /// Drops the wish of a run for which there is no room. The node that a run holds always counts.
    fn bounded(&mut self, mut run: Contender) -> Option<Contender> {
        let Some(wish) = &run.wants else { return Some(run) };
        let bytes = wish.spec.bytes().len();
        let of_namespace = self.namespaces.entry(run.namespace.clone()).or_default();
        let taken = self.all + 2 * *of_namespace;
        if taken + 3 * bytes <= ALL_BYTES {
            *of_namespace += bytes;
            self.all += bytes;
            return Some(run);
        }
        run.wants = None;
        run.holds.is_some().then_some(run)
    }
}

/// Reads an object; `None` if it neither holds nor wants a node.
fn contender(json: &str, now: DateTime<Utc>) -> serde_json::Result<Option<Contender>> {
    if let Ok(object) = serde_json::from_str::<PerfValidation>(json) {
        let status = object.status.unwrap_or_default();
        let at_work = machine::is_at_work(&object.spec, &status, now);
        return Ok(Contender::new(&object.metadata, &object.spec, &status, at_work, now));
    }
    // An object that another version of the CRD wrote still holds its node, and must not hide the others. This operator cannot run
    // it, so it is in no queue.
    let object: DynamicObject = serde_json::from_str(json)?;
    Ok(stranger(&object))
}

/// The node that an object of another version holds. Only those fields are read; a phase that this version does not
/// know is not over.
fn stranger(object: &DynamicObject) -> Option<Contender> {
    let written = &object.data["status"];
    let node = written["placement"]["node"].as_str()?.to_owned();
    let phase = Option::<Phase>::deserialize(&written["phase"]);
    let known = phase.is_ok();
    let status = PerfValidationStatus {
        phase: phase.unwrap_or_default(),
        placement: Some(PlacementStatus {
            node: node.clone(),
            ..PlacementStatus::default()
        }),
        conditions: Vec::deserialize(&written["conditions"]).unwrap_or_default(),
        ..PerfValidationStatus::default()
    };
    if known && !perfval_sizing::holds_node(&status) {
        return None;
    }
    Some(Contender {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        position: Position::new(&object.metadata, &status),
        holds: Some(Hold {
            node,
            at_work: false,
            uses: None,
        }),
        wants: None,
        is_attended: true,
    })
}

#[cfg(test)]
mod tests {
    use perfval_api::PerfValidationSpec;
    use perfval_run::queue::Wish;
    use serde_json::json;

    use super::*;

    /// A run whose spec has about 16 KiB.
    fn waiting(namespace: &str, number: usize, node: Option<&str>) -> Contender {
        let spec = json!({
            "model": {"name": "m"},
            "workload": {"dynamo": {"image": "i:1.4.2", "worker": {"args": vec!["a".repeat(1_000); 16]}}},
        });
        let spec: PerfValidationSpec = serde_json::from_value(spec).expect("a spec");
        let holds = node.map(|node| Hold {
            node: node.to_owned(),
            at_work: true,
            uses: None,
        });
        Contender {
            namespace: namespace.to_owned(),
            name: number.to_string(),
            position: Position::new(&kube::api::ObjectMeta::default(), &PerfValidationStatus::default()),
            holds,
            wants: Some(Wish::new("run", &spec)),
            is_attended: true,
        }
    }

    #[test]
    fn specs_of_some_namespaces_leave_room_for_others_and_held_nodes_always_count() {
        let mut all = Waiting::default();
        let mut kept = |namespace: &str| {
            let kept = (0..2_000).filter_map(|number| all.bounded(waiting(namespace, number, None)));
            kept.count()
        };
        let of_hostile: Vec<usize> = ["0", "1", "2", "3", "4", "5", "6", "7"].map(&mut kept).into();
        assert!((400..550).contains(&of_hostile[0]), "{of_hostile:?} of 8 MiB");
        assert!(of_hostile.is_sorted_by(|one, next| one > next), "{of_hostile:?}");
        let late = kept("late");
        assert!(late > 5, "{late}");
        assert!(all.all <= ALL_BYTES, "{} bytes", all.all);
        let holder = all.bounded(waiting("0", 3_000, Some("n1")));
        let holder = holder.expect("it holds a node");
        assert!(holder.wants.is_none() && holder.holds.is_some());
    }
}
