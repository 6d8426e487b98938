//! `lab up`: builds what is missing, writes a cluster's files and plan, starts the supervisor and follows it.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Instant;

use crate::driver_root::Gpus;
use crate::error::{Error, FileResult as _};
use crate::images::{self, DynamoVersion, Image};
use crate::paths::{self, StateDir};
use crate::programs::{self, CONTROL_PLANE_FAMILIES, NODE_FAMILIES};
use crate::supervisor::{Phase, Plan, Report, client};
use crate::{control_plane, namespace, node, packages, pki};

/// Which lab is wanted.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Only etcd, API server, controllers, scheduler, kwok and the stand-in for Dynamo's operator; no node.
    #[arg(long)]
    pub control_plane: bool,
    /// Dynamo version of the image on the node and of the stand-in.
    #[arg(long, value_enum, default_value_t)]
    pub dynamo: DynamoVersion,
    /// Leave Dynamo's image (1.4 GB) out of the node: for tests of the lab itself.
    #[arg(long)]
    pub without_dynamo_image: bool,
    /// Number of simulated GPUs of the node.
    #[arg(long, default_value_t = 8)]
    pub gpus: u32,
    /// Product name of the simulated GPUs.
    #[arg(long, default_value = "NVIDIA H100 80GB HBM3")]
    pub gpu_product: String,
    /// Memory of each simulated GPU, in MiB.
    #[arg(long, default_value_t = 80 * 1024)]
    pub gpu_memory_mib: u64,
    /// Folder of a real driver (libraries in `lib64` or `usr/lib64`, `nvidia-smi` in `bin`), which takes the place of the
    /// simulated one: the node then has the GPUs of this machine, and nothing changes their settings.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["gpus", "gpu_product", "gpu_memory_mib", "control_plane"])]
    pub driver_root: Option<PathBuf>,
}

impl Options {
    fn gpus(&self) -> Result<Gpus, Error> {
        if let Some(driver) = &self.driver_root {
            return Gpus::real(driver);
        }
        Ok(Gpus {
            count: self.gpus,
            product: self.gpu_product.clone(),
            memory_mib: self.gpu_memory_mib,
            driver: None,
        })
    }

    fn title(&self) -> String {
        let Self {
            control_plane,
            dynamo,
            without_dynamo_image,
            gpus,
            gpu_product,
            gpu_memory_mib,
            driver_root,
        } = self;
        if *control_plane {
            return format!("control plane only, Dynamo {dynamo}");
        }
        let image = if *without_dynamo_image {
            " without its image"
        } else {
            ""
        };
        if let Some(driver) = driver_root {
            let driver = driver.display();
            return format!("one node with the GPUs of this machine, driver of {driver}, Dynamo {dynamo}{image}");
        }
        format!("one node with {gpus} x {gpu_product} of {gpu_memory_mib} MiB, Dynamo {dynamo}{image}")
    }
}

/// Brings the lab up, or returns at once if this very lab is up.
pub fn up(state: &StateDir, options: &Options) -> Result<(), Error> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    packages::check(!options.control_plane)?;
    let cache = paths::cache();
    fs::create_dir_all(&cache).file("create", &cache)?;
    let lock = cache.join("up.lock");
    let lock = File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .file("lock", lock)?;

    let started = Instant::now();
    let mut say = |text: &str| println!("[{:>5.1} s] {text}", started.elapsed().as_secs_f32());
    if namespace::find(state).is_some() {
        already_up(state, options, &mut say)?;
    } else {
        if state.root().exists() {
            say("cleaning up after a lab that died");
            crate::down::down(state)?;
        }
        prepare(state, options, &mut say)?;
        write_plan(state, options)?;
        namespace::launch(state)?;
        follow(state, &mut say)?;
    }
    drop(lock);
    say(&format!(
        "up: {}. Use it: lab exec -- kubectl get nodes",
        options.title()
    ));
    Ok(())
}

fn already_up(state: &StateDir, options: &Options, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let Some(Report { title, phase, .. }) = client::status(state)? else {
        return Err(Error::Supervisor("it does not answer: run `lab down`".to_owned()));
    };
    if title != options.title() {
        return Err(Error::OtherLab {
            running: title,
            wanted: options.title(),
        });
    }
    if let Phase::Starting(_) = phase {
        return follow(state, say);
    }
    let report = client::status(state)?.filter(|report| !report.is_healthy());
    match report.map(|report| report.to_string()) {
        Some(report) => Err(Error::DidNotComeUp(report)),
        None => Ok(()),
    }
}

/// Builds programs and images and writes every file of a new cluster.
fn prepare(state: &StateDir, options: &Options, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    for folder in [state.root().to_owned(), state.bin(), state.join("logs")] {
        fs::create_dir_all(&folder).file("create", &folder)?;
    }
    let node_families = if options.control_plane { &[] } else { NODE_FAMILIES };
    for family in CONTROL_PLANE_FAMILIES.iter().chain(node_families) {
        let folder = programs::build(family, say)?;
        for binary in family.binaries {
            let link = state.bin().join(binary);
            symlink(folder.join(binary), &link).file("link", link)?;
        }
    }
    // A copy: the running lab does not change when this program is compiled anew.
    let own = state.bin().join("lab");
    fs::copy("/proc/self/exe", &own).file("copy this program to", own)?;
    pki::write(state)?;
    control_plane::write_files(state)?;
    if options.control_plane {
        return Ok(());
    }
    node::write_files(state, &options.gpus()?)?;
    let dynamo = Image::Dynamo {
        version: options.dynamo,
    };
    let archives = [Image::Pause, Image::Busybox]
        .into_iter()
        .chain((!options.without_dynamo_image).then_some(dynamo))
        .map(|image| images::build(&image, say))
        .collect::<Result<Vec<_>, _>>()?;
    images::fill_store(&node::image_store(state), &state.bin(), &archives, say)
}

fn write_plan(state: &StateDir, options: &Options) -> Result<(), Error> {
    let mut steps = control_plane::steps(state, &options.dynamo.to_string());
    if !options.control_plane {
        steps.extend(node::steps(state, &options.gpus()?));
    }
    steps.extend(control_plane::last_steps(state));
    let plan = Plan {
        title: options.title(),
        steps,
    };
    let text = serde_json::to_string_pretty(&plan).map_err(|source| Error::Json {
        what: "the plan".to_owned(),
        source,
    })?;
    fs::write(state.plan(), text).file("write", state.plan())
}

/// Waits for the supervisor's socket and then for its last step.
fn follow(state: &StateDir, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let started = Instant::now();
    while client::status(state)?.is_none() {
        let gone = started.elapsed().as_secs() >= 1 && namespace::find(state).is_none();
        if gone || started.elapsed().as_secs() > 20 {
            let log = fs::read_to_string(state.log("supervisor")).unwrap_or_default();
            return Err(Error::DidNotComeUp(format!("the supervisor did not start:\n{log}")));
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    client::follow(state, say).map(drop)
}
