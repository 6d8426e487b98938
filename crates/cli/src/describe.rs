//! `describe`: one validation, in the order of a person's questions: verdict, reason, margin, and next steps.

mod layout;
mod page;
mod parts;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use perfval_api::{PerfValidation, Reason, condition};

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
    screen.print(&page(screen, session, &object))?;
    Ok(0)
}

/// Condition of an object that the operator cannot read as it is now, or has no room for ([`condition::TRIED_AGAIN`]).
pub fn unreadable(object: &PerfValidation) -> Option<&Condition> {
    let stalled = condition::find(object.status.as_ref()?, condition::STALLED);
    stalled.filter(|stalled| {
        stalled.reason == Reason::SpecUnreadable.as_str() && stalled.observed_generation == object.metadata.generation
    })
}

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
