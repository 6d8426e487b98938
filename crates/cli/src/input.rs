//! Input files of the user; `-` is standard input.

use std::fs::File;
use std::io::{Read, Result, stdin};
use std::path::Path;

/// Opens a file for reading.
pub fn open(path: &Path) -> Result<Box<dyn Read>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(stdin().lock()));
    }
    Ok(Box::new(File::open(path)?))
}

/// The bytes of a file, at most `limit` and one more, which shows that it is too large.
pub fn bytes(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
