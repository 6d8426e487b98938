use std::fmt::{self, Display, Write as _};
use std::io::{self, Read as _, Write as _};

use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

/// Most bytes of a packed result, and of all results, objects and logs: they wait in memory, and users of the namespace can
/// change them.
const PACKED: usize = 64 << 20;
const ALL: usize = 256 << 20;
/// Reason why a text is left out.
const TOO_LARGE: &str = "it is too large: the archive takes 64 MiB of a packed result, and 256 MiB of all";

/// Files on their way into an archive.
pub struct Archive {
    folder: String,
    time: DateTime<Utc>,
    /// Bytes that users of the namespace may still fill.
    pub(super) room: usize,
    /// Name, description and content of each file.
    files: Vec<(String, String, String)>,
    /// Missing parts, with the reasons.
    missing: Vec<String>,
}

impl Archive {
    /// An empty one; all files are in this folder.
    pub fn new(folder: &str, time: DateTime<Utc>) -> Self {
        Self {
            folder: folder.to_owned(),
            time,
            room: ALL,
            files: Vec::new(),
            missing: Vec::new(),
        }
    }

    pub fn add(&mut self, file: &str, what: &str, content: impl Display) {
        self.files.push((file.to_owned(), what.to_owned(), content.to_string()));
    }

    /// Adds a file that users of the namespace can change, if there is room for it.
    pub fn add_result(&mut self, file: &str, what: &str, content: impl Display) {
        let mut kept = BoundedText {
            text: String::new(),
            room: self.room,
        };
        if write!(kept, "{content}").is_err() {
            return self.leave_out(&format!("{what}, {file}"), TOO_LARGE);
        }
        self.room = kept.room;
        self.files.push((file.to_owned(), what.to_owned(), kept.text));
    }

    /// A packed result, if there is room for it.
    pub fn unpack(&self, packed: &[u8]) -> Result<Vec<u8>, String> {
        let most = PACKED.min(self.room);
        let mut text = Vec::new();
        let read = GzDecoder::new(packed).take(most as u64 + 1).read_to_end(&mut text);
        if read.map_err(|error| error.to_string())? > most {
            return Err(TOO_LARGE.to_owned());
        }
        Ok(text)
    }

    /// Records a missing part.
    pub fn leave_out(&mut self, what: &str, why: &str) {
        self.missing.push(format!("{what}: {why}"));
    }

    /// List of the contents and of the missing parts.
    pub fn contents(&self) -> String {
        let mut text = String::from("In this archive:\n");
        let width = self.files.iter().map(|(file, ..)| file.len()).max();
        let width = width.unwrap_or_default();
        for (file, what, _) in &self.files {
            let _ = writeln!(text, "  {file:<width$}  {what}");
        }
        if !self.missing.is_empty() {
            text.push_str("Not in it:\n");
            for missing in &self.missing {
                let _ = writeln!(text, "  {missing}");
            }
        }
        text.push_str(
            "Secrets were not read. Variables, fields and flags with secret names, and texts that look like tokens, are [hidden].\nIt holds names of nodes, namespaces, images and pods of the cluster.\n",
        );
        text
    }

    /// A .tar.gz.
    pub fn pack(self) -> io::Result<Vec<u8>> {
        let contents = ("CONTENTS.txt".to_owned(), String::new(), self.contents());
        let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        for (file, _, content) in std::iter::once(contents).chain(self.files) {
            let mut header = Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            header.set_mtime(u64::try_from(self.time.timestamp()).unwrap_or_default());
            tar.append_data(&mut header, format!("{}/{file}", self.folder), content.as_bytes())?;
        }
        let mut packed = tar.into_inner()?;
        packed.flush()?;
        packed.finish()
    }
}

/// A text that ends with an error where it is full. A small JSON may be long with its indents.
struct BoundedText {
    text: String,
    room: usize,
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.room = self.room.checked_sub(part.len()).ok_or(fmt::Error)?;
        self.text.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_no_room_is_left_out_and_listed() {
        let mut archive = Archive {
            room: 10,
            ..Archive::new("a", DateTime::UNIX_EPOCH)
        };
        archive.add("0.txt", "own", "12345678901");
        archive.add_result("1.txt", "first", "12345678");
        archive.add_result("2.json", "second", format_args!("{:#}", json!([[0]])));
        archive.add_result("3.txt", "third", "12");
        let contents = archive.contents();
        let listed =
            format!("\n  0.txt  own\n  1.txt  first\n  3.txt  third\nNot in it:\n  second, 2.json: {TOO_LARGE}\n");
        assert!(contents.contains(&listed), "{contents}");
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(b"1").expect("memory");
        let packed = packed.finish().expect("memory");
        assert_eq!(archive.unpack(&packed), Err(TOO_LARGE.to_owned()));
        archive.room = 1;
        assert_eq!(archive.unpack(&packed), Ok(b"1".to_vec()));
    }
}
