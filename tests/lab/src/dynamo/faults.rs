//! Faults on demand, read from the ConfigMap `kube-system/lab-faults`.
//!
//! | key | value |
//! |---|---|
//! | `dgd` | comma list of `FAULT[=SECONDS][@NAMESPACE]`, the faults of [`Faults`] |
//! | `gpuSpeed` | handed to `lab-worker`, e.g. `3=0.1,5=0.5`; workers that already run keep theirs |

use std::collections::BTreeMap;

/// Name of the ConfigMap.
pub const CONFIG_MAP: &str = "lab-faults";
/// Its namespace.
pub const NAMESPACE: &str = "kube-system";

/// What goes wrong on purpose for the graphs of one namespace.
#[expect(clippy::struct_excessive_bools, reason = "each is one switch")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// `never-ready`: no component is ever reported ready, whatever its pods say.
    pub never_ready: bool,
    /// `failed-then-heals`: state `failed` for the first seconds of a graph's life (30), then the truth.
    pub failed_seconds: Option<u64>,
    /// `ready-below-spec`: state `successful` at once, with one worker fewer than wanted; seen on real clusters (aicr #1181).
    pub ready_below_spec: bool,
    /// `stale-status`: `observedGeneration` stays behind the object's generation.
    pub stale_status: bool,
    /// `slow-delete`: the finalizer stays for so many seconds after the deletion (60), also when the pods are long gone.
    pub delete_seconds: Option<u64>,
    /// `liveness`: missed answers after which the kubelet restarts a worker: Dynamo's 3 since 1.5, 1 before.
    pub liveness_failures: Option<i32>,
    /// `grace`: seconds that pods have to end (1), Dynamo's 60 otherwise: a test need not wait for what still starts.
    pub grace_seconds: Option<u64>,
    /// `canaries`: workers are asked for a small completion of their own when idle, as Dynamo does since 1.5.
    pub canaries: bool,
    /// Speeds of single GPUs.
    pub gpu_speed: Option<String>,
}

impl Faults {
    /// The faults that hold in a namespace. Words it does not know come back second.
    pub fn read(data: &BTreeMap<String, String>, namespace: &str) -> (Self, Vec<String>) {
        let mut faults = Self {
            gpu_speed: data.get("gpuSpeed").filter(|speed| !speed.is_empty()).cloned(),
            ..Self::default()
        };
        let mut unknown = Vec::new();
        for fault in data
            .get("dgd")
            .into_iter()
            .flat_map(|list| list.split(','))
            .map(str::trim)
        {
            let (what, only) = fault.split_once('@').unwrap_or((fault, namespace));
            if only != namespace {
                continue;
            }
            let (name, seconds) = match what.split_once('=') {
                Some((name, seconds)) => (name, seconds.parse().ok()),
                None => (what, None),
            };
            match name {
                "" => {}
                "never-ready" => faults.never_ready = true,
                "failed-then-heals" => faults.failed_seconds = seconds.or(Some(30)),
                "ready-below-spec" => faults.ready_below_spec = true,
                "stale-status" => faults.stale_status = true,
                "liveness" => {
                    faults.liveness_failures = seconds.and_then(|count| i32::try_from(count).ok()).or(Some(3));
                }
                "grace" => faults.grace_seconds = seconds.or(Some(1)),
                "canaries" => faults.canaries = true,
                "slow-delete" => faults.delete_seconds = seconds.or(Some(60)),
                _ => unknown.push(fault.to_owned()),
            }
        }
        (faults, unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dgd: &str) -> (Faults, Vec<String>) {
        Faults::read(&BTreeMap::from([("dgd".to_owned(), dgd.to_owned())]), "perf")
    }

    #[test]
    fn a_list_of_faults_is_read_for_one_namespace() {
        let cases = [
            ("", Faults::default()),
            (
                "never-ready",
                Faults {
                    never_ready: true,
                    ..Faults::default()
                },
            ),
            (
                "never-ready@perf",
                Faults {
                    never_ready: true,
                    ..Faults::default()
                },
            ),
            ("never-ready@other", Faults::default()),
            (
                "failed-then-heals",
                Faults {
                    failed_seconds: Some(30),
                    ..Faults::default()
                },
            ),
            (
                "failed-then-heals=7@perf",
                Faults {
                    failed_seconds: Some(7),
                    ..Faults::default()
                },
            ),
            (
                "slow-delete=90, stale-status",
                Faults {
                    delete_seconds: Some(90),
                    stale_status: true,
                    ..Faults::default()
                },
            ),
            (
                "grace=2,canaries",
                Faults {
                    grace_seconds: Some(2),
                    canaries: true,
                    ..Faults::default()
                },
            ),
            (
                "liveness=5",
                Faults {
                    liveness_failures: Some(5),
                    ..Faults::default()
                },
            ),
            (
                "ready-below-spec,never-ready@other",
                Faults {
                    ready_below_spec: true,
                    ..Faults::default()
                },
            ),
        ];
        for (dgd, faults) in cases {
            assert_eq!(read(dgd), (faults, vec![]), "{dgd}");
        }
    }

    #[test]
    fn a_word_it_does_not_know_is_reported() {
        assert_eq!(read("never-redy").1, ["never-redy"]);
    }

    #[test]
    fn gpu_speeds_hold_in_every_namespace() {
        let data = BTreeMap::from([("gpuSpeed".to_owned(), "3=0.1".to_owned())]);
        assert_eq!(Faults::read(&data, "any").0.gpu_speed.as_deref(), Some("3=0.1"));
    }
}
