//! Test equipment: a stand-in for Dynamo's operator, whose module is not published and so cannot be run here.
//!
//! It reads the same DynamoGraphDeployment, makes the same pods for the real Dynamo frontend and mocker, and reports the same
//! misleading status. It never ships.
//!
//! | to change | go to |
//! |---|---|
//! | fields of the resource | `v1beta1`, `v1alpha1` |
//! | versions served | `crd` |
//! | how a shape is read | `shape` |
//! | what goes into the container `main` | `defaults` |
//! | Deployment, Service, service account | `deployment`, `service`, `discovery` |
//! | when they are written | `children` |
//! | state, conditions, counts | `status` |
//! | faults on demand | `faults` |
//! | deletion | `delete` |

mod children;
mod controller;
mod crd;
mod defaults;
mod delete;
mod deployment;
mod discovery;
mod error;
mod faults;
mod service;
mod shape;
mod status;
#[cfg(test)]
mod tests;
mod v1alpha1;
mod v1beta1;

use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Config};

pub use crd::Served;
pub use error::Error;
pub use faults::{CONFIG_MAP, NAMESPACE};

/// Field manager and user agent of the stand-in.
pub const FIELD_MANAGER: &str = "dynamo-operator-stand-in";

/// `lab dynamo-operator`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Versions of DynamoGraphDeployment that the API server offers.
    #[arg(long, value_enum, default_value = "both")]
    pub served: Served,
    /// Version of Dynamo to play: it is on the definition and on every graph.
    #[arg(long, default_value = "1.4.2")]
    pub dynamo_version: String,
    /// A graph's deletion lasts at least so many seconds.
    #[arg(long, default_value_t = 3)]
    pub delete_delay_seconds: u64,
    /// Install the definitions and leave: a running stand-in picks them up.
    #[arg(long)]
    pub install_only: bool,
}

/// Installs the definitions, then reconciles until it is asked to stop. The definition may go and come back any time.
pub async fn run(args: Args) -> Result<(), Error> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let client = connect().await?;
    crd::install(&client, args.served, &args.dynamo_version).await?;
    if args.install_only {
        return Ok(());
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut versions = pin!(
        watcher::watch_object(definitions, crd::NAME)
            .default_backoff()
            .filter_map(|event| async move { event.ok() })
            .map(|definition| definition.as_ref().and_then(crd::served_version))
    );
    let mut version: Option<String> = None;
    loop {
        let reconciling = async {
            match &version {
                Some(version) => controller::run(context(&client, &args, version)).await,
                None => std::future::pending().await,
            }
        };
        let next = tokio::select! {
            () = reconciling => return Ok(()),
            next = next_other(&mut versions, version.as_ref()) => next,
        };
        let Some(next) = next else { return Ok(()) };
        tracing::info!(?next, "version of DynamoGraphDeployment to reconcile");
        version = next;
    }
}

/// The first version that differs from the current one; none at the end of the stream.
async fn next_other(
    versions: &mut (impl futures::Stream<Item = Option<String>> + Unpin),
    current: Option<&String>,
) -> Option<Option<String>> {
    while let Some(next) = versions.next().await {
        if next.as_ref() != current {
            return Some(next);
        }
    }
    None
}

fn context(client: &Client, args: &Args, version: &str) -> controller::Context {
    controller::Context {
        client: client.clone(),
        resource: controller::resource(version),
        dynamo_version: args.dynamo_version.clone(),
        delete_delay: Duration::from_secs(args.delete_delay_seconds),
        written: Mutex::default(),
    }
}

async fn connect() -> Result<Client, Error> {
    let mut config = Config::infer()
        .await
        .map_err(|error| Error::Client(error.to_string()))?;
    config.default_retry = false;
    // The audit log distinguishes its writes from all others by this name.
    config
        .headers
        .push((http::header::USER_AGENT, http::HeaderValue::from_static(FIELD_MANAGER)));
    Client::try_from(config).map_err(|error| Error::Client(error.to_string()))
}
