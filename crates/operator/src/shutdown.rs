//! The end of the process: started by a signal, bounded in time.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::error::Error;

/// Time for which running passes may continue after a signal; below the 30 s that a pod gets.
pub const DRAIN: Duration = Duration::from_secs(20);

/// A token that SIGTERM or SIGINT cancels. A second signal ends the process at once.
pub fn on_signal() -> Result<CancellationToken, Error> {
    let listen = |kind| signal(kind).map_err(Error::Signals);
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let signalled = stop.clone();
    tokio::spawn(async move {
        let mut next = async || tokio::select! { _ = terminate.recv() => "SIGTERM", _ = interrupt.recv() => "SIGINT" };
        let name = next().await;
        info!(
            signal = name,
            "stopping: running passes finish, then the lease is released"
        );
        signalled.cancel();
        let name = next().await;
        info!(signal = name, "stopping at once");
        std::process::exit(130);
    });
    Ok(stop)
}
