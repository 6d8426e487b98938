//! The log: one JSON object a line in a pod, text elsewhere.

use std::io::IsTerminal;

use tracing::error;
use tracing_subscriber::filter::{EnvFilter, LevelFilter, ParseError};

use crate::blocked::redacted;
use crate::cli::{LogFormat, in_pod};
use crate::error::Error;

/// Logs panics. The usual report shows their whole text, which may quote a secret.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or_default();
        error!(at, message = redacted(message, None), "panicked");
    }));
}

/// Starts logging to standard error.
pub fn start(format: LogFormat, directives: &str) -> Result<(), Error> {
    let filter = filter(directives).map_err(|source| Error::LogDirectives {
        directives: directives.to_owned(),
        source: Box::new(source),
    })?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let json = match format {
        LogFormat::Json => true,
        LogFormat::Text => false,
        LogFormat::Auto => in_pod(),
    };
    let started = if json {
        log.json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .try_init()
    } else {
        log.try_init()
    };
    started.map_err(Error::LogTaken)
}

/// The library reads a word that is no level as a target, and switches everything else off.
fn filter(directives: &str) -> Result<EnvFilter, ParseError> {
    for word in directives.split(',').filter(|part| !part.contains(['=', '['])) {
        word.parse::<LevelFilter>()?;
    }
    EnvFilter::try_new(directives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_refused() {
        for accepted in [
            "WARN",
            "off",
            "3",
            "info,",
            "info,perfval_cluster=debug",
            "[pass]=trace",
        ] {
            assert!(filter(accepted).is_ok(), "{accepted}");
        }
        for refused in ["warning", "inof", " info", "info,perfval_cluster", "kube=inof"] {
            assert!(filter(refused).is_err(), "{refused}");
        }
    }
}
