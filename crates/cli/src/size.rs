//! `size`, with the cluster of the flags.

use perfval_commands::args::SizeArgs;
use perfval_commands::size;

use crate::error::Error;
use crate::screen::Screen;
use crate::session::Session;

/// Prints the answer; saved objects need no cluster.
pub async fn run(
    screen: &mut Screen,
    args: &SizeArgs,
    open: impl AsyncFnOnce() -> Result<Session, Error>,
) -> Result<u8, Error> {
    let connect = async || {
        let session = open().await.map_err(|error| error.to_string())?;
        Ok((session.client, session.namespace))
    };
    let (text, code) = size::run(args, connect).await?;
    screen.say(&text)?;
    Ok(code)
}
