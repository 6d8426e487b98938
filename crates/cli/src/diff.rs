//! `diff`: two runs beside each other. It shows the distance of numbers within a run, and the differences of the two
//! environments. Only the gates decide if a change is good or bad.

mod comparison;
mod page;

use crate::args::DiffArgs;
use crate::error::Error;
use crate::output;
use crate::results::{self, RunOutcome};
use crate::screen::Screen;
use crate::session::Session;

use comparison::RunComparison;

/// Compares two runs.
pub async fn run(screen: &mut Screen, session: &Session, args: &DiffArgs) -> Result<u8, Error> {
    let (before, after) = match &args.after {
        Some(after) => (
            results::find(session, &args.before).await?,
            results::find(session, after).await?,
        ),
        None => last_two(session, &args.before).await?,
    };
    let comparison = RunComparison::new(&before, &after);
    let text = output::in_format(&comparison, args.output)?;
    screen.print(&text.unwrap_or_else(|| page::text(&comparison, screen.columns())))?;
    Ok(0)
}

async fn last_two(session: &Session, name: &str) -> Result<(RunOutcome, RunOutcome), Error> {
    if let (_, Some(_)) = results::named(Some(name))? {
        return Err(Error::BadInput(format!(
            "{name} is one run: name another one to compare it with"
        )));
    }
    let object = session.get(name).await?;
    let after = results::read_run(session, &object, None).await?;
    let history = object.status.iter().flat_map(|status| &status.state.history);
    let mut newest = None;
    for run in history.map(|entry| entry.run) {
        if let Some(before) = results::saved(session, &object, run).await? {
            return Ok((before, after));
        }
        newest = newest.or(Some(run));
    }
    Err(match newest {
        Some(run) => results::not_saved(session, name, run),
        None => Error::BadInput(format!(
            "{name} has one run only: run it again with {}, or name another validation",
            session.command("rerun", name)
        )),
    })
}
