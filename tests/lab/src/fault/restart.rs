//! Parts of the control plane that come back.

use super::within;
use crate::error::Error;
use crate::paths::StateDir;
use crate::supervisor::client;
use crate::{command, control_plane, enter};

/// Stops the API server and starts it again.
pub fn api_server(state: &StateDir) -> Result<(), Error> {
    client::stop(state, control_plane::API_SERVER_PROCESS)?;
    client::start(state, control_plane::API_SERVER_PROCESS)?;
    ready(state)
}

/// Kills etcd, without a word to the API server, and starts it again with its data.
pub fn etcd(state: &StateDir) -> Result<(), Error> {
    client::kill(state, control_plane::ETCD_PROCESS)?;
    client::start(state, control_plane::ETCD_PROCESS)?;
    ready(state)
}

fn ready(state: &StateDir) -> Result<(), Error> {
    within("the API server to be ready", || {
        Ok(command::output(&mut enter::kubectl(state, &["get", "--raw=/readyz"])?).is_ok())
    })
}
