//! Input files of the user; `-` is standard input.

use std::fs::File;
use std::io::{self, Read, stdin};
use std::path::Path;

use crate::error::Error;

/// Opens a file for reading.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(stdin().lock()));
    }
    Ok(Box::new(File::open(path)?))
}

/// The bytes of a file, at most `limit` and one more, which shows that it is too large.
pub fn bytes(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
    read.map_err(Error::file(path))?;
    Ok(bytes)
}
