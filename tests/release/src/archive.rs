//! Archives whose bytes depend on names and contents alone.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use tar::{Archive, Builder, Header};

use crate::Result;

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    mode: u32,
    content: Vec<u8>,
}

impl File {
    /// A file to be read.
    pub fn plain(content: Vec<u8>) -> Self {
        Self { mode: 0o644, content }
    }

    /// A file to be run.
    pub fn program(content: Vec<u8>) -> Self {
        Self { mode: 0o755, content }
    }
}

/// A .tar.gz of these files in the order of their names.
pub fn write(files: &BTreeMap<String, File>, time: u64) -> Result<Vec<u8>> {
    let mut tar = Builder::new(GzBuilder::new().write(Vec::new(), Compression::best()));
    for (name, file) in files {
        let mut header = Header::new_gnu();
        header.set_size(file.content.len() as u64);
        header.set_mode(file.mode);
        header.set_mtime(time);
        tar.append_data(&mut header, name, file.content.as_slice())?;
    }
    let mut packed = tar.into_inner()?;
    packed.flush()?;
    Ok(packed.finish()?)
}

/// The files of a .tar.gz.
pub fn read(archive: &[u8]) -> Result<BTreeMap<String, File>> {
    let mut files = BTreeMap::new();
    for entry in Archive::new(GzDecoder::new(archive)).entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let name = entry.path()?.to_string_lossy().into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            files.insert(name, File::plain(content));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_written_again_is_the_same_despite_other_times() {
        let files = BTreeMap::from([
            ("b/c".to_owned(), File::plain(b"two".into())),
            ("a".to_owned(), File::plain(b"one".into())),
        ]);
        let (early, late) = (write(&files, 1).unwrap(), write(&files, 2).unwrap());
        assert_ne!(early, late);
        assert_eq!(read(&late).unwrap(), files);
        assert_eq!(write(&read(&late).unwrap(), 1).unwrap(), early);
    }
}
