//! `describe`: one validation, in the order of a person's questions: verdict, reason, margin, and next steps.

mod layout;
mod page;
mod parts;

use perfval_api::PerfValidation;

use crate::args::NameArgs;
use crate::draw::Ink;
use crate::error::Error;
use crate::screen::Screen;
use crate::session::Session;

use layout::PageLayout;

/// Columns where there is no terminal.
const COLUMNS: usize = 100;

/// Prints the page.
pub async fn run(screen: &mut Screen, session: &Session, args: &NameArgs) -> Result<u8, Error> {
    let object = session.pick(args.name.as_deref()).await?;
    screen.say(&page(screen, session, &object))?;
    Ok(0)
}

/// The page of a validation.
pub fn page(screen: &Screen, session: &Session, object: &PerfValidation) -> String {
    let page = PageLayout {
        ink: Ink {
            unicode: screen.unicode,
        },
        columns: screen.columns().unwrap_or(COLUMNS).clamp(20, 160),
        now: screen.now(),
        flags: session.flags.clone(),
    };
    page.render(object)
}
