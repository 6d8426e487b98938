//! `watch`.

use crate::args::WatchArgs;
use crate::error::Error;
use crate::follow;
use crate::screen::Screen;
use crate::session::Session;

/// Follows a validation until its run is over.
pub async fn run(screen: &mut Screen, session: &Session, args: &WatchArgs) -> Result<u8, Error> {
    let object = session.pick(args.name.as_deref()).await?;
    Box::pin(follow::to_the_end(screen, session, object, args.timeout)).await
}
