//! The flags of `lab up` and `lab prepare`.

use std::path::PathBuf;

use crate::driver_root::Gpus;
use crate::error::Error;
use crate::images::DynamoVersion;
use crate::node::MOST_NODES;

/// Which lab is wanted.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Only etcd, API server, controllers, scheduler and the stand-in for Dynamo's operator; kwok in place of a node, where pods of validations stay pending.
    #[arg(long)]
    pub control_plane: bool,
    /// Dynamo version of the image on the node and of the stand-in.
    #[arg(long, value_enum, default_value_t)]
    pub dynamo: DynamoVersion,
    /// Leave Dynamo's image (1.4 GB) out of the node: for tests of the lab itself.
    #[arg(long)]
    pub without_dynamo_image: bool,
    /// Number of nodes.
    #[arg(long, default_value_t = 1, conflicts_with = "control_plane", value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST_NODES)))]
    pub nodes: u8,
    /// Number of simulated GPUs of each node.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(..=63))]
    pub gpus: u32,
    /// Product name of the simulated GPUs.
    #[arg(long, default_value = "NVIDIA H100 80GB HBM3")]
    pub gpu_product: String,
    /// Memory of each simulated GPU, in MiB.
    #[arg(long, default_value_t = 80 * 1024)]
    pub gpu_memory_mib: u64,
    /// Folder of a real driver (libraries in `lib64` or `usr/lib64`, `nvidia-smi` in `bin`), which takes the place of the
    /// simulated one: the node then has the GPUs of this machine, and nothing changes their settings.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["nodes", "gpus", "gpu_product", "gpu_memory_mib", "control_plane"])]
    pub driver_root: Option<PathBuf>,
    /// Number of the process that takes this lab down again. Without one the lab belongs to a person.
    #[arg(long, value_name = "PID")]
    pub holder: Option<u32>,
}

impl Options {
    /// GPUs of a node, by its number from 1.
    pub fn gpus(&self, node: u8) -> Result<Gpus, Error> {
        if let Some(driver) = &self.driver_root {
            return Gpus::real(driver);
        }
        Ok(Gpus {
            count: self.gpus,
            first: self.gpus * (u32::from(node) - 1),
            product: self.gpu_product.clone(),
            memory_mib: self.gpu_memory_mib,
            driver: None,
        })
    }

    /// One line that names this lab. Another lab with the same title is the same lab.
    pub fn title(&self) -> String {
        let Self {
            control_plane,
            dynamo,
            without_dynamo_image,
            nodes,
            gpus,
            gpu_product,
            gpu_memory_mib,
            driver_root,
            holder: _,
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
        let nodes = if *nodes == 1 {
            "one node".to_owned()
        } else {
            format!("{nodes} nodes, each")
        };
        format!("{nodes} with {gpus} x {gpu_product} of {gpu_memory_mib} MiB, Dynamo {dynamo}{image}")
    }
}
