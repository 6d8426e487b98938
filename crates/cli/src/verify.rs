//! `verify`: compares the files of a report with its statement.

use std::io::ErrorKind;
use std::path::Path;

use perfval_report::{Predicate, STATEMENT, Statement, sha256};
use perfval_verdict::saved::FILE_BYTES;

use crate::args::VerifyArgs;
use crate::error::Error;
use crate::input;
use crate::screen::Screen;

/// Exit code if a file was changed or is missing.
const CHANGED: u8 = 1;

/// Compares every file of the folder with the statement in it.
pub fn run(screen: &mut Screen, args: &VerifyArgs) -> Result<u8, Error> {
    let path = args.directory.join(STATEMENT);
    let Some(text) = read(&path)? else {
        return Err(Error::BadInput(format!(
            "{} does not exist: give the folder that `kubectl perfval report --directory` wrote",
            path.display()
        )));
    };
    let statement = Statement::read(&text).map_err(|error| Error::BadInput(format!("{}: {error}", path.display())))?;
    // The exit code is that of all files, however many lines are read.
    screen.answer(&format!("{}\n", heading(&statement.predicate)))?;
    let mut code = 0;
    for (name, digest) in statement.files() {
        let (state, of_file) = match read(&args.directory.join(name))? {
            Some(content) if sha256(&content) == digest => ("unchanged", 0),
            Some(_) => ("CHANGED", CHANGED),
            None => ("MISSING", CHANGED),
        };
        code = code.max(of_file);
        screen.answer(&format!("  {state:<9}  {name}\n"))?;
    }
    if code == CHANGED {
        screen.answer("Do not rely on this report. Write it again with `kubectl perfval report`.\n")?;
    }
    Ok(code)
}

/// The run of a statement in one line.
fn heading(run: &Predicate) -> String {
    let verdict = run.verdict.map_or("no verdict yet", |verdict| verdict.as_str());
    let number = run.run.map(|number| format!(", run {number}")).unwrap_or_default();
    let node = run
        .node
        .as_deref()
        .map(|node| format!(", on {node}"))
        .unwrap_or_default();
    format!("{}{number}{node}: {verdict}", run.validation)
}

/// A file of the folder; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match input::bytes(path, FILE_BYTES) {
        Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}
