//! Controllers that may not create pods: each tries again and again in growing pauses, and reports it in Events.

use serde_json::{Value, json};

use super::{World, uid, whose};

/// Refusals that are Events of their own; all later ones of a controller are one, as client-go makes them.
const APART: u32 = 10;

/// The tries of one controller for one object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tries {
    began: i64,
    refused: u32,
}

impl Tries {
    /// When the next one is due: 5 ms after the first, and twice as long each time.
    fn next(self) -> i64 {
        self.began + (5 * ((1 << self.refused.min(30)) - 1)) / 1000
    }
}

impl World {
    /// Whether a controller creates pods for an object now; a refusal is reported.
    pub(super) fn may_create(&mut self, of: &Value) -> bool {
        let (uid, now) = (uid(of), self.now());
        let mut tries = self
            .tries
            .get(&uid)
            .copied()
            .unwrap_or(Tries { began: now, refused: 0 });
        while tries.next() <= now {
            if !self.faults.no_roles {
                self.tries.remove(&uid);
                return true;
            }
            tries.refused += 1;
            self.report_refusal(of, tries.refused);
        }
        self.tries.insert(uid, tries);
        self.wake_at(tries.next());
        false
    }

    fn report_refusal(&mut self, of: &Value, number: u32) {
        let (namespace, name) = whose(of);
        let controller = format!("{name}-0");
        let event = format!("{controller}.{}", number.min(APART + 1));
        let words = format!(
            "Error creating: pods \"{controller}-{number:05}\" is forbidden: User \
             \"system:serviceaccount:kube-system:replicaset-controller\" cannot create resource \"pods\" in API group \"\" \
             in the namespace \"{namespace}\""
        );
        let combined = if number > APART {
            "(combined from similar events): "
        } else {
            ""
        };
        let now = self.by_controllers();
        self.server.put(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": namespace, "name": event},
            "involvedObject": {"kind": "ReplicaSet", "name": controller, "uid": uid(of)},
            "type": "Warning", "reason": "FailedCreate", "message": format!("{combined}{words}"),
            "firstTimestamp": now, "lastTimestamp": now,
        }));
    }
}
