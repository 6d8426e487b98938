//! What a command that ends by itself has to say.

use std::process::ExitCode;

/// What a command answers: the text for standard output and the exit code.
pub(crate) type Answer = (String, ExitCode);
