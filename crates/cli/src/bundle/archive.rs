use std::fmt::Write as _;
use std::io::{self, Write as _};

use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

/// Files on their way into an archive.
pub struct Archive {
    folder: String,
    time: DateTime<Utc>,
    /// Name, description and content of each file.
    files: Vec<(String, String, Vec<u8>)>,
    /// Missing parts, with the reasons.
    missing: Vec<String>,
}

impl Archive {
    /// An empty one; all files are in this folder.
    pub fn new(folder: &str, time: DateTime<Utc>) -> Self {
        Self {
            folder: folder.to_owned(),
            time,
            files: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Adds a file.
    pub fn add(&mut self, file: &str, what: &str, content: Vec<u8>) {
        self.files.push((file.to_owned(), what.to_owned(), content));
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
        let contents = ("CONTENTS.txt".to_owned(), String::new(), self.contents().into_bytes());
        let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        for (file, _, content) in std::iter::once(contents).chain(self.files) {
            let mut header = Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            header.set_mtime(u64::try_from(self.time.timestamp()).unwrap_or_default());
            tar.append_data(&mut header, format!("{}/{file}", self.folder), content.as_slice())?;
        }
        let mut packed = tar.into_inner()?;
        packed.flush()?;
        packed.finish()
    }
}
