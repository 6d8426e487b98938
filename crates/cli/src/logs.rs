//! `logs`: what every part of a run printed, in the order of time, without secrets.

mod source;

use kube::ResourceExt as _;

use crate::args::LogsArgs;
use crate::error::Error;
use crate::screen::Screen;
use crate::session::Session;

pub use source::{Wanted, read, sources};

/// Prints the logs.
pub async fn run(screen: &mut Screen, session: &Session, args: &LogsArgs) -> Result<u8, Error> {
    let object = session.pick(args.name.as_deref()).await?;
    let wanted = Wanted {
        parts: &args.parts,
        gpus: &args.gpus,
        operator_namespace: &args.operator_namespace,
    };
    let (sources, unread) = sources(session, &object, &wanted).await?;
    for why in unread {
        screen.note(&why);
    }
    if sources.is_empty() {
        let name = object.name_any();
        screen.note(&format!(
            "No pod of {name} is there: a run removes its own. `kubectl perfval keep {name}` keeps those of the next one, and `describe` says what is saved."
        ));
        return Ok(0);
    }
    let mut lines = Vec::new();
    for source in &sources {
        match read(session, &object, source, args.tail).await {
            Ok(found) => lines.extend(found),
            Err(why) => screen.note(&why),
        }
    }
    lines.sort_by(|one, other| one.time.cmp(&other.time));
    let width = lines
        .iter()
        .map(|line| line.from.chars().count())
        .max()
        .unwrap_or_default();
    let text = lines
        .iter()
        .map(|line| format!("{} {:<width$}  {}\n", line.time, line.from, line.text))
        .collect::<Vec<_>>()
        .concat();
    screen.say(&text)?;
    Ok(0)
}
