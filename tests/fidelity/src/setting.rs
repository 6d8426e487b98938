//! Place, time and conditions of recorded trials.

use std::fmt;

use chrono::{DateTime, Utc};
use perfval_api::DeviceStatus;
use serde::{Deserialize, Serialize};

use crate::corpus::LabRun;
use crate::fault::Fault;
use crate::matrix::ROUTERS;

/// 2026-11-22T10:30:00Z: thresholds were fixed on earlier recordings.
const FREEZE: i64 = 1_795_343_400;

/// The moment from which on trials are evidence: no threshold was changed after a look at them.
pub fn freeze() -> DateTime<Utc> {
    DateTime::from_timestamp(FREEZE, 0).unwrap_or(DateTime::UNIX_EPOCH)
}

/// Place of the engines.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Simulated engines in a real cluster, with the operator.
    Lab,
    /// Simulated engines on loopback.
    Rig,
    /// vLLM on real GPUs, on loopback.
    Silicon,
}

impl Place {
    /// The word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Rig => "rig",
            Self::Silicon => "silicon",
        }
    }
}

/// The machine.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Hardware {
    /// Product name of its GPUs.
    pub product: String,
    /// Number of them that are used.
    pub gpus: i64,
    /// Version of their driver.
    pub driver: String,
    /// CPUs of the machine.
    pub cpus: i64,
    /// The GPUs that are used.
    pub devices: Vec<DeviceStatus>,
}

/// Strength of a fault.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Conditions {
    /// Share of the time in which a foreign process computes on the GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Report of that process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burner: Option<Burner>,
    /// Factor by which a worker is slower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Time for which a worker stands still (s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// CPUs of the load generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// Processes that never rest, on the one CPU that the frontend has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rivals: Option<u32>,
    /// Workers, where they are not as many as GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<i64>,
    /// True if the machine had other work: ten processes and more wanted each of its CPUs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub busy_machine: bool,
}

/// A foreign process on a GPU.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Burner {
    /// End of its first product (seconds since 1970).
    pub began: f64,
    /// Share of the time in which it had work on the GPU.
    pub busy: f64,
    /// Products of matrices that it finished.
    pub products: u64,
}

/// Trials that may be compared: the same place, router and load.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// Place of the engines.
    pub place: Place,
    /// True if the machine had other work.
    pub busy_machine: bool,
    router: usize,
    /// Product and number of GPUs, requests in flight for each, tokens in and out; the lab and the rig have one load each.
    load: Option<(String, i64, i32, i32, i32)>,
}

impl Setting {
    /// That of a run.
    pub fn of(run: &LabRun) -> Self {
        let benchmark = &run.spec.benchmark;
        let hardware = run.hardware.as_ref().filter(|_| run.place == Place::Silicon);
        Self {
            place: run.place,
            busy_machine: run.conditions.busy_machine,
            router: ROUTERS.iter().position(|router| *router == run.router).unwrap_or(0),
            load: hardware.map(|hardware| {
                let Hardware { product, gpus, .. } = hardware;
                let tokens = (benchmark.input_tokens, benchmark.output_tokens);
                (
                    product.clone(),
                    *gpus,
                    benchmark.concurrency_per_gpu,
                    tokens.0,
                    tokens.1,
                )
            }),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.place.as_str())?;
        if self.busy_machine {
            f.write_str(", busy machine")?;
        }
        match &self.load {
            Some((product, gpus, per_gpu, input, output)) => {
                write!(f, ", {gpus} × {product}, {per_gpu} per GPU, {input}/{output} tokens")
            }
            None => Ok(()),
        }
    }
}

impl LabRun {
    /// True if thresholds may have been fixed on it.
    pub fn training(&self) -> bool {
        self.recorded.is_none_or(|at| at < freeze())
    }

    /// Its fault, and how hard it struck.
    pub fn what(&self) -> String {
        let Conditions {
            share,
            factor,
            seconds,
            rivals,
            ..
        } = &self.conditions;
        if let Some(rivals) = rivals {
            let others = if *rivals == 1 { "other" } else { "others" };
            return format!("frontend on one CPU with {rivals} busy {others}");
        }
        match (self.fault, share, factor, seconds) {
            (Fault::SlowGpu, Some(share), _, _) => {
                format!("foreign load on one GPU for {:.0} % of the time", share * 100.0)
            }
            (Fault::SlowerWorker, _, Some(factor), _) => format!("one worker {factor} × slower"),
            (Fault::FrozenTenSeconds, _, _, Some(seconds)) => format!("one worker frozen for {seconds} s"),
            (fault, ..) => fault.title().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(place: &str, per_gpu: i32, recorded: Option<&str>) -> LabRun {
        serde_json::from_value(json!({
            "place": place, "router": "LeastLoaded", "fault": "Healthy", "recorded": recorded, "gpus": [2, 2], "trials": [], "seconds": 1,
            "hardware": {"product": "NVIDIA H200", "gpus": 2, "cpus": 32},
            "spec": {"model": {"name": "m"}, "workload": {"dynamo": {"image": "i:1.4.2"}}, "benchmark": {"concurrencyPerGPU": per_gpu}},
        }))
        .expect("a run")
    }

    #[test]
    fn only_trials_after_the_freeze_are_evidence() {
        assert!(run("silicon", 256, None).training());
        assert!(run("silicon", 256, Some("2026-11-22T10:29:59Z")).training());
        assert!(!run("silicon", 256, Some("2026-11-22T10:30:00Z")).training());
    }

    #[test]
    fn trials_on_gpus_compare_under_one_load_only() {
        let setting = |place, per_gpu| Setting::of(&run(place, per_gpu, None));
        assert_ne!(setting("silicon", 256), setting("silicon", 128));
        assert_eq!(setting("lab", 256), setting("lab", 128));
        assert_eq!(
            setting("silicon", 256).to_string(),
            "silicon, 2 × NVIDIA H200, 256 per GPU, 128/128 tokens"
        );
    }
}
