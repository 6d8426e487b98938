//! `doctor`: everything that a first run still lacks, each with the command to type next. It only reads.

mod architecture;
mod asked;
mod check;
mod cluster;
mod dra;
mod gpus;
mod images;
mod operator;
mod pod_security;

use serde::Serialize;

use crate::args::DoctorArgs;
use crate::draw::wrap_on;
use crate::error::Error;
use crate::exit::UNREADABLE;
use crate::screen::Screen;
use crate::session::{Session, common_namespace};
use crate::shell::with_flags;
use crate::{manifest, output, size};

use asked::Asked;
use check::{Check, CheckResult};

/// Result for scripts.
#[derive(Serialize)]
struct DoctorAnswer<'a> {
    /// Number of checks that failed.
    missing: usize,
    /// Number of checks that could not be made.
    unknown: usize,
    checks: &'a [Check],
}

/// Makes all checks, and prints them line by line. `namespace` is that of the flags.
pub async fn run(
    screen: &mut Screen,
    args: &DoctorArgs,
    namespace: Option<&str>,
    open: impl AsyncFnOnce() -> Result<Session, Error>,
) -> Result<u8, Error> {
    let mut object = match &args.filename {
        Some(path) => manifest::read(path)?,
        None => size::defaults()?,
    };
    let namespace = common_namespace(&object, namespace)?;
    let session = &open().await?;
    let namespace = namespace.unwrap_or_else(|| session.namespace.clone());
    object.metadata.namespace = Some(namespace);
    let asked = Asked {
        session,
        object: &object,
        filename: args.filename.as_deref(),
        operator_namespace: &args.operator_namespace,
    };
    let (mut checks, operator) = cluster::checks(&asked).await?;
    checks.extend(pod_security::check(&asked).await);
    checks.extend(Box::pin(gpus::checks(&asked, operator.as_ref())).await);
    checks.extend(images::checks(&asked).await);
    for check in &mut checks {
        check.next = check.next.take().map(|next| with_flags(&next, &session.flags));
    }
    let count = |finding| checks.iter().filter(|check| check.found == finding).count();
    let (missing, unknown) = (count(CheckResult::Missing), count(CheckResult::Unknown));
    // A gap is certain, even if other checks have no answer.
    let code = match (missing, unknown) {
        (0, 0) => 0,
        (0, _) => UNREADABLE,
        _ => 1,
    };
    let answer = DoctorAnswer {
        missing,
        unknown,
        checks: &checks,
    };
    // The exit code is that of all checks, however many lines are read.
    if let Some(text) = output::in_format(&answer, args.output)? {
        screen.answer(&text)?;
        return Ok(code);
    }
    for check in &checks {
        screen.answer(&check.text(screen.unicode, screen.columns().unwrap_or(100)))?;
    }
    let again = asked.doctor(&args.operator_namespace);
    let run = asked.command("run");
    let next = if asked.given() {
        run
    } else {
        format!("kubectl perfval presets, then {run} --preset …")
    };
    let said = match (missing, unknown) {
        (0, 0) => format!("Nothing is missing. Next: {next}"),
        (0, unknown) => format!("No gap is known. Checks without an answer: {unknown}. Next: {next}"),
        (1, _) => format!("One thing is missing; the line below it has the remedy. Then look again: {again}"),
        (missing, _) => {
            format!("{missing} things are missing; the line below each has the remedy. Then look again: {again}")
        }
    };
    let said = wrap_on(&said, screen.columns(), "");
    screen.answer(&format!("\n{said}"))?;
    Ok(code)
}
