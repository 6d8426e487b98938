//! Faults on demand: what goes wrong on real clusters, switched on and off by command.

mod gpus;
mod plugin;
mod reboot;
mod restart;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};

use clap::Subcommand;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::dynamo::{CONFIG_MAP, NAMESPACE};
use crate::error::Error;
use crate::paths::StateDir;
use crate::supervisor::client;
use crate::{cgroup, command, enter, node};

const DEADLINE: Duration = Duration::from_secs(90);

/// A fault to switch on or off.
#[derive(Debug, Clone, Subcommand)]
pub enum Fault {
    /// The DRA plugin forgets its devices: the slice stays, every new claim fails with "empty device edits". Returns when
    /// the kubelet is connected to it again.
    StaleDra,
    /// Restarts the DRA plugin, which then knows its devices again. Returns when the kubelet is connected to it.
    HealDra,
    /// Stops the API server and starts it again; returns when it is ready.
    RestartApiserver,
    /// Kills etcd (SIGKILL) and starts it again; returns when the API server is ready.
    RestartEtcd,
    /// Stops any process of the lab, by its name in `lab status`.
    Stop {
        /// Its name.
        process: String,
    },
    /// Starts a stopped process of the lab.
    Start {
        /// Its name.
        process: String,
    },
    /// Resets the node as a loss of power does: every pod's processes end at once, the kubelet and containerd come back.
    Reboot,
    /// Freezes every process of a pod's containers (SIGSTOP).
    Freeze(PodName),
    /// Lets them go on (SIGCONT).
    Thaw(PodName),
    /// Kills them (SIGKILL).
    Kill(PodName),
    /// Lets a pod's containers use at most so many CPUs from now on.
    Throttle {
        /// Which pod.
        #[command(flatten)]
        pod: PodName,
        /// CPUs, e.g. 0.2.
        cpus: f64,
    },
    /// Slows one GPU: workers created from now on that are given it run at this share of full speed.
    SlowGpu {
        /// The GPU's number.
        gpu: u32,
        /// Share of full speed, e.g. 0.1.
        speed: f64,
    },
    /// Lets one GPU's driver say that the hardware holds its clocks down for heat. It changes what is said, not the speed:
    /// that is `slow-gpu`.
    ThrottleGpu {
        /// The GPU's number.
        gpu: u32,
    },
    /// Lets one GPU's driver report an XID error.
    XidGpu {
        /// The GPU's number.
        gpu: u32,
        /// The XID, e.g. 79: the GPU has fallen off the bus.
        xid: u64,
    },
    /// Lets one GPU's driver say that something else works on it and holds 2 GiB of its memory.
    ShareGpu {
        /// The GPU's number.
        gpu: u32,
    },
    /// Lets one GPU's driver say that its PCIe link runs on half of its lanes.
    NarrowLink {
        /// The GPU's number.
        gpu: u32,
    },
    /// Lets one GPU's driver count packets that its NVLinks send again.
    NvlinkGpu {
        /// The GPU's number.
        gpu: u32,
    },
    /// Lets one GPU's driver report double-bit ECC errors, and a replaced row of memory for each.
    EccGpu {
        /// The GPU's number.
        gpu: u32,
        /// How many.
        errors: u64,
    },
    /// Faults of the stand-in for Dynamo's operator, e.g. `never-ready`, `failed-then-heals=20@NAMESPACE`, `liveness=3`.
    Dgd {
        /// Comma list of faults; empty for none.
        faults: String,
    },
    /// Undoes the faults of GPUs and `dgd` faults, and heals the DRA plugin if it was made stale.
    Clear,
}

/// A pod, and optionally one of its containers.
#[derive(Debug, Clone, clap::Args)]
pub struct PodName {
    /// `NAMESPACE/POD`.
    pod: String,
    /// Only this container.
    #[arg(long)]
    container: Option<String>,
}

/// Switches a fault.
pub fn apply(state: &StateDir, fault: &Fault) -> Result<(), Error> {
    match fault {
        Fault::StaleDra => plugin::make_stale(state),
        Fault::HealDra => plugin::restart(state),
        Fault::RestartApiserver => restart::api_server(state),
        Fault::RestartEtcd => restart::etcd(state),
        Fault::Stop { process } => client::stop(state, process),
        Fault::Start { process } => client::start(state, process),
        Fault::Reboot => reboot::node(state),
        Fault::Freeze(pod) => signal(state, pod, Signal::SIGSTOP),
        Fault::Thaw(pod) => signal(state, pod, Signal::SIGCONT),
        Fault::Kill(pod) => signal(state, pod, Signal::SIGKILL),
        Fault::Throttle { pod, cpus } => throttle(state, pod, *cpus),
        Fault::SlowGpu { gpu, speed } => slow_gpu(state, *gpu, *speed),
        Fault::ThrottleGpu { gpu } => gpus::set(state, *gpu, "throttled", json!(true)),
        Fault::XidGpu { gpu, xid } => gpus::set(state, *gpu, "xid", json!(xid)),
        Fault::ShareGpu { gpu } => gpus::set(state, *gpu, "shared", json!(true)),
        Fault::NarrowLink { gpu } => gpus::set(state, *gpu, "narrowLink", json!(true)),
        Fault::NvlinkGpu { gpu } => gpus::set(state, *gpu, "nvlinkReplaysPerSecond", json!(20)),
        Fault::EccGpu { gpu, errors } => {
            gpus::set(state, *gpu, "doubleBitErrors", json!(errors))?;
            gpus::set(state, *gpu, "remappedRows", json!(errors))
        }
        Fault::Dgd { faults } => set(state, &json!({ "dgd": faults })),
        Fault::Clear => {
            set(state, &json!({ "dgd": "", "gpuSpeed": "" }))?;
            gpus::clear(state)?;
            if plugin::stale_mark(state).exists() {
                plugin::restart(state)
            } else {
                Ok(())
            }
        }
    }
}

fn signal(state: &StateDir, name: &PodName, signal: Signal) -> Result<(), Error> {
    let containers = running_containers(state, name)?;
    for (container, id) in &containers {
        for process in cgroup::container_processes(state, id)? {
            match kill(Pid::from_raw(process), signal) {
                Ok(()) | Err(nix::Error::ESRCH) => {}
                Err(source) => {
                    let doing = format!("send {signal} to process {process} of container {container}");
                    return Err(Error::System { doing, source });
                }
            }
        }
        println!("{signal} sent to {} container {container}", name.pod);
    }
    Ok(())
}

fn throttle(state: &StateDir, name: &PodName, cpus: f64) -> Result<(), Error> {
    // The kernel takes no quota under a millisecond.
    if !(0.01..=1024.0).contains(&cpus) {
        return Err(Error::Usage(format!("CPUs are a number from 0.01 to 1024, not {cpus}")));
    }
    for (container, id) in &running_containers(state, name)? {
        cgroup::limit_cpu(state, id, cpus)?;
        println!("{} container {container} has {cpus} CPUs now", name.pod);
    }
    Ok(())
}

/// Name and id of the pod's running containers that are meant; an error if there is none.
fn running_containers(state: &StateDir, name: &PodName) -> Result<Vec<(String, String)>, Error> {
    let Some((namespace, pod)) = name.pod.split_once('/') else {
        return Err(Error::Usage(format!("{:?} is no NAMESPACE/POD", name.pod)));
    };
    let text = command::output(&mut enter::kubectl(
        state,
        &["get", "pod", pod, "-n", namespace, "-o", "json"],
    )?)?;
    let object: Value = serde_json::from_str(&text).map_err(|source| Error::Json {
        what: format!("pod {}", name.pod),
        source,
    })?;
    let statuses = object["status"]["containerStatuses"].as_array().into_iter().flatten();
    let running = statuses.filter(|status| status["state"]["running"].is_object());
    let named = running.filter_map(|status| {
        let id = status["containerID"].as_str()?.strip_prefix("containerd://")?;
        Some((status["name"].as_str()?.to_owned(), id.to_owned()))
    });
    let meant: Vec<_> = named
        .filter(|(container, _)| name.container.as_ref().is_none_or(|only| only == container))
        .collect();
    if meant.is_empty() {
        return Err(Error::Usage(format!("pod {} has no such running container", name.pod)));
    }
    Ok(meant)
}

fn slow_gpu(state: &StateDir, gpu: u32, speed: f64) -> Result<(), Error> {
    if !(speed > 0.0 && speed.is_finite()) {
        return Err(Error::Usage(format!("a GPU's speed is a positive number, not {speed}")));
    }
    let read = [
        "get",
        "configmap",
        CONFIG_MAP,
        "-n",
        NAMESPACE,
        "-o",
        "jsonpath={.data.gpuSpeed}",
    ];
    let current = command::output(&mut enter::kubectl(state, &read)?)?;
    set(state, &json!({ "gpuSpeed": with_speed(&current, gpu, speed) }))
}

/// `3=0.1,5=0.5` with one GPU's speed set.
fn with_speed(current: &str, gpu: u32, speed: f64) -> String {
    let pairs = current.split(',').filter_map(|pair| pair.split_once('='));
    let mut speeds: BTreeMap<String, String> = pairs
        .map(|(gpu, speed)| (gpu.trim().to_owned(), speed.trim().to_owned()))
        .collect();
    speeds.insert(gpu.to_string(), speed.to_string());
    speeds
        .iter()
        .map(|(gpu, speed)| format!("{gpu}={speed}"))
        .collect::<Vec<_>>()
        .join(",")
}

/// Changes keys of the ConfigMap the stand-in for Dynamo's operator reads.
fn set(state: &StateDir, data: &Value) -> Result<(), Error> {
    let patch = json!({ "data": data }).to_string();
    let arguments = [
        "patch",
        "configmap",
        CONFIG_MAP,
        "-n",
        NAMESPACE,
        "--type=merge",
        "-p",
        &patch,
    ];
    command::output(&mut enter::kubectl(state, &arguments)?).map(drop)
}

/// Numbers of the GPUs of the first node.
fn gpu_numbers(state: &StateDir) -> Result<Range<u32>, Error> {
    let devices = node::driver_root_path(state).join("mock-nvml.json");
    let text = fs::read_to_string(&devices).map_err(|_| Error::NoNode)?;
    let config: Value = serde_json::from_str(&text).map_err(|source| Error::Json {
        what: "the GPUs".to_owned(),
        source,
    })?;
    let count = config["gpus"].as_u64().and_then(|count| count.try_into().ok());
    Ok(0..count.unwrap_or_default())
}

/// Waits for a condition, at most a minute and a half: an API server may take that long under load.
fn within(what: &str, mut condition: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
    let started = Instant::now();
    while !condition()? {
        if started.elapsed() > DEADLINE {
            return Err(Error::Supervisor(format!(
                "gave up after {} s waiting for {what}",
                DEADLINE.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::with_speed;

    #[test]
    fn a_speed_is_added_or_replaced() {
        assert_eq!(with_speed("", 3, 0.1), "3=0.1");
        assert_eq!(with_speed("3=0.1", 5, 0.5), "3=0.1,5=0.5");
        assert_eq!(with_speed("3=0.1,5=0.5", 3, 1.0), "3=1,5=0.5");
    }
}
