//! Input files of the user; `-` is standard input.

use std::fmt::Display;
use std::fs::File;
use std::io::{Read as _, stdin};
use std::path::Path;

use crate::error::Error;

/// The bytes of a file, at most `limit` and one more, which shows that it is too large.
pub fn bytes(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        stdin().take(limit + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
    };
    read.map_err(Error::file(path))?;
    Ok(bytes)
}

/// Refuses standard input for more than one file.
pub fn check_stdin<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Error> {
    let stdin = paths.into_iter().filter(|path| path.as_os_str() == "-");
    if stdin.count() > 1 {
        return Err(Error::BadInput(
            "standard input can be read once: give one of the two as a file".to_owned(),
        ));
    }
    Ok(())
}

/// The text of a file with at most `limit` bytes. `unusable` makes the error for a text that is too large or not UTF-8.
pub fn text(path: &Path, limit: u64, unusable: impl Fn(&dyn Display) -> Error) -> Result<String, Error> {
    let bytes = bytes(path, limit)?;
    if bytes.len() as u64 > limit {
        return Err(unusable(&format!("larger than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| unusable(&error))
}
