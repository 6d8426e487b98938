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
use crate::screen::Screen;
use crate::session::Session;
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

/// Makes all checks, and prints them line by line.
pub async fn run(
    screen: &mut Screen,
    args: &DoctorArgs,
    open: impl AsyncFnOnce() -> Result<Session, Error>,
) -> Result<u8, Error> {
    let mut object = match &args.filename {
        Some(path) => manifest::read(path)?,
        None => size::defaults()?,
    };
    let session = &open().await?;
    object.metadata.namespace.get_or_insert(session.namespace.clone());
    let mut checks = Vec::new();
    let asked = Asked {
        session,
        object: &object,
        given: args.filename.is_some(),
        operator_namespace: &args.operator_namespace,
    };
    checks.extend(cluster::checks(&asked).await?);
    checks.extend(pod_security::check(&asked).await);
    checks.extend(Box::pin(gpus::checks(&asked)).await);
    checks.extend(images::checks(&asked).await);
    let count = |finding| checks.iter().filter(|check| check.found == finding).count();
    let (missing, unknown) = (count(CheckResult::Missing), count(CheckResult::Unknown));
    let code = u8::from(missing > 0);
    let answer = DoctorAnswer {
        missing,
        unknown,
        checks: &checks,
    };
    if let Some(text) = output::in_format(&answer, args.output)? {
        screen.say(&text)?;
        return Ok(code);
    }
    for check in &checks {
        screen.say(&check.text(screen.unicode, screen.columns().unwrap_or(100)))?;
    }
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let file = args.filename.as_ref().map(|path| format!(" -f {}", path.display()));
    let file = file.unwrap_or_default();
    let again = format!("kubectl perfval doctor -n {namespace}{file}");
    let next = match &*file {
        "" => format!("kubectl perfval presets, then kubectl perfval run -n {namespace} --preset …"),
        file => format!("kubectl perfval run -n {namespace}{file}"),
    };
    let said = match (missing, unknown) {
        (0, 0) => format!("Nothing is missing. Next: {next}"),
        (0, unknown) => format!("Nothing is known to be missing; {unknown} could not be looked at. Next: {next}"),
        (1, _) => format!("One thing is missing; the line below it has the remedy. Then look again: {again}"),
        (missing, _) => {
            format!("{missing} things are missing; the line below each has the remedy. Then look again: {again}")
        }
    };
    let said = wrap_on(&said, screen.columns(), "");
    screen.say(&format!("\n{said}"))?;
    Ok(code)
}
