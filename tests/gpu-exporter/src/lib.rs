//! Test equipment: a small stand-in for NVIDIA's DCGM exporter.
//!
//! It reads the GPUs of the node through NVML and serves them under DCGM's names, as the exporter does. The driver's library
//! is opened by name, so a simulated driver is read like a real one. It only asks: no call changes a setting.

mod gpu;
mod page;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use tokio::net::TcpListener;

use page::Gpus;

/// How it is started.
#[derive(Clone, Debug, clap::Parser)]
#[command(version, about)]
pub struct Options {
    /// Address to serve `/metrics` on.
    #[arg(long, default_value = "0.0.0.0:9400")]
    pub listen: SocketAddr,
    /// The driver's library; absent: `libnvidia-ml.so.1` where the system finds it.
    #[arg(long)]
    pub library: Option<PathBuf>,
    /// Milliseconds between two readings; NVIDIA's own exporter reads every 30 seconds by default.
    #[arg(long, default_value_t = 1000)]
    pub interval: u64,
    /// Print the page once instead of serving it.
    #[arg(long)]
    pub once: bool,
    /// Name of the node on the page.
    #[arg(long, default_value = "localhost")]
    pub hostname: String,
}

/// Why it ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no driver, or none that answers.
    #[error("the driver cannot be read: {0}; name its library with --library")]
    Nvml(#[from] NvmlError),
    /// The address cannot be served.
    #[error("cannot serve {address}: {source}")]
    Serve {
        /// As given.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// No runtime.
    #[error("cannot start: {0}")]
    Runtime(io::Error),
}

/// The driver whose library this is, or the system's.
fn driver(library: Option<&PathBuf>) -> Result<Nvml, NvmlError> {
    let name = library.map_or_else(|| "libnvidia-ml.so.1".into(), |path| path.clone().into_os_string());
    Nvml::builder().lib_path(&name).init()
}

/// Serves the page until the process ends.
pub fn run(options: &Options) -> Result<(), Error> {
    let nvml = driver(options.library.as_ref())?;
    if options.once {
        print!("{}", Gpus::of(&nvml, &options.hostname).page());
        return Ok(());
    }
    let page = Arc::new(Mutex::new(String::new()));
    let (shown, hostname) = (page.clone(), options.hostname.clone());
    let interval = Duration::from_millis(options.interval.max(1));
    thread::spawn(move || {
        let mut gpus = Gpus::of(&nvml, &hostname);
        loop {
            let text = gpus.page();
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = text;
            thread::sleep(interval);
        }
    });
    let show = move || async move { page.lock().unwrap_or_else(PoisonError::into_inner).clone() };
    let routes = Router::new().route("/metrics", get(show));
    let wrong = |source| Error::Serve {
        address: options.listen,
        source,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(Error::Runtime)?;
    runtime.block_on(async {
        let listener = TcpListener::bind(options.listen).await.map_err(wrong)?;
        axum::serve(listener, routes).await.map_err(wrong)
    })
}
