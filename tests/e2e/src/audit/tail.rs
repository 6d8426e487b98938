//! The audit log as it grows.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::{Call, Entry};
use crate::lab::Lab;

/// The log from now on.
pub struct AuditTail {
    path: PathBuf,
    file: BufReader<File>,
    /// A line whose end is not written yet.
    begun: String,
}

impl AuditTail {
    /// The log of the lab, behind its last line.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn new(lab: &Lab) -> io::Result<Self> {
        Self::of(PathBuf::from(lab.run(&["audit-log"]).await.trim()))
    }

    fn of(path: PathBuf) -> io::Result<Self> {
        let mut file = File::open(&path)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self {
            path,
            file: BufReader::new(file),
            begun: String::new(),
        })
    }

    /// Requests of a user that were answered since the last call.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn calls(&mut self, user: &str) -> io::Result<Vec<Call>> {
        let mut calls = self.rest(user)?;
        // The API server moves a full log aside and begins a new one.
        if File::open(&self.path)?.metadata()?.ino() != self.file.get_ref().metadata()?.ino() {
            calls.extend(self.rest(user)?);
            self.file = BufReader::new(File::open(&self.path)?);
            calls.extend(self.rest(user)?);
        }
        Ok(calls)
    }

    fn rest(&mut self, user: &str) -> io::Result<Vec<Call>> {
        let mut calls = Vec::new();
        while self.file.read_line(&mut self.begun)? > 0 && self.begun.ends_with('\n') {
            // Most lines are about other users.
            let entry = self
                .begun
                .contains(user)
                .then(|| serde_json::from_str::<Entry>(&self.begun));
            if let Some(Ok(entry)) = entry
                && entry.stage == "ResponseComplete"
                && entry.user.username == user
            {
                calls.push(entry.into());
            }
            self.begun.clear();
        }
        Ok(calls)
    }
}

#[cfg(test)]
mod tests {
    use super::super::OPERATOR;
    use super::super::tests::{CONTROLLER, request};
    use super::*;

    #[test]
    fn a_tail_reads_whole_lines_and_follows_a_log_that_was_moved_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.log");
        let line = |at, user| format!("{}\n", request(at, user, "get", "pods"));
        std::fs::write(&path, line(0, OPERATOR)).expect("write");
        let mut tail = AuditTail::of(path.clone()).expect("a tail");
        let mut log = File::options().append(true).open(&path).expect("open");
        let mut seen = |text: &str| {
            std::io::Write::write_all(&mut log, text.as_bytes()).expect("write");
            tail.calls(OPERATOR).expect("read").len()
        };
        let (own, other) = (line(1, OPERATOR), line(2, CONTROLLER));
        assert_eq!(seen(&format!("{own}{other}{}", &own[..20])), 1);
        assert_eq!(seen(&own[20..]), 1);
        std::fs::rename(&path, folder.path().join("audit-1.log")).expect("move");
        std::fs::write(&path, line(3, OPERATOR)).expect("write");
        assert_eq!(seen(&own), 2);
    }
}
