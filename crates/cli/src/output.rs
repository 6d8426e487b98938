//! Answers for scripts.

use serde::Serialize;

use crate::args::Format;
use crate::error::Error;

/// An answer in a format for scripts; `None` where people read it.
pub fn in_format(answer: &impl Serialize, format: Format) -> Result<Option<String>, Error> {
    match format {
        Format::Table => Ok(None),
        Format::Json => json(answer).map(Some),
        Format::Yaml => yaml(answer).map(Some),
    }
}

pub fn json(answer: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(answer).map_err(|error| Error::Render(error.to_string()))?;
    Ok(text + "\n")
}

pub fn yaml(answer: &impl Serialize) -> Result<String, Error> {
    serde_saphyr::to_string(answer).map_err(|error| Error::Render(error.to_string()))
}
