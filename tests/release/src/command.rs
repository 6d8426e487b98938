//! Running programs.

use std::process::{Command, Stdio};

use crate::Result;

/// What a program printed; an error with its words if it fails.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{name}: {}", output.status).into())
    }
}

/// The same as one line of text.
pub fn line(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8(output(command)?)?.trim().to_owned())
}
