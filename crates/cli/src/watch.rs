//! `watch`.

use crate::args::WatchArgs;
use crate::error::Error;
use crate::follow::{self, Patience};
use crate::screen::Screen;
use crate::session::Session;

/// Follows a validation until its run is over.
pub async fn run(screen: &mut Screen, session: &Session, args: &WatchArgs) -> Result<u8, Error> {
    let object = session.pick(args.name.as_deref()).await?;
    let patience = Patience { timeout: args.timeout };
    Box::pin(follow::to_the_end(screen, session, object, patience)).await
}
