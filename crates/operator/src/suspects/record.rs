//! Record of passes under way in a file, and of deaths in the Lease.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use kube::api::ObjectMeta;
use perfval_api::meta::RERUN;
use serde::{Deserialize, Serialize};

use crate::version;

/// Annotation of the Lease.
const ANNOTATION: &str = "perfvalidation.dev/deaths";
/// Objects in it: as many passes are under way at once in one namespace.
const OBJECTS: usize = 64;
/// Longest file that is read.
const FILE_BYTES: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassRecord {
    pub uid: String,
    /// Digest of the object's spec.
    pub asked: String,
    /// Its `namespace/name`, for people.
    pub name: String,
}

/// Processes that died in passes of one object.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Deaths {
    pub count: u32,
    pub asked: String,
    pub name: String,
}

/// The annotation's value.
#[derive(Serialize, Deserialize)]
struct DeathCounts {
    version: String,
    objects: BTreeMap<String, Deaths>,
}

/// Digest of what a user changes to have an object looked at again: the spec, a deletion, or the rerun annotation.
pub fn asked(object: &ObjectMeta) -> String {
    let mut digest = DefaultHasher::new();
    object.generation.hash(&mut digest);
    let rerun = object
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(RERUN));
    rerun.hash(&mut digest);
    format!("{:016x}", digest.finish())
}

impl PassRecord {
    pub fn new(object: &ObjectMeta) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            uid: text(&object.uid),
            asked: asked(object),
            name: format!("{}/{}", text(&object.namespace), text(&object.name)),
        }
    }

    /// Adds a death in this pass.
    pub fn count(&self, all: &mut BTreeMap<String, Deaths>) {
        let earlier = all.get(&self.uid).filter(|deaths| deaths.asked == self.asked);
        let count = earlier.map_or(0, |deaths| deaths.count);
        let deaths = Deaths {
            count: count.saturating_add(1),
            asked: self.asked.clone(),
            name: self.name.clone(),
        };
        if all.len() < OBJECTS || all.contains_key(&self.uid) {
            all.insert(self.uid.clone(), deaths);
        }
    }

    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let (uid, asked, name) = (words.next()?, words.next()?, words.next()?);
        words.next().is_none().then_some(Self { uid, asked, name })
    }
}

/// The deaths in a Lease. Those under another version of the operator count no more: it may have the remedy.
pub fn read(lease: &ObjectMeta) -> BTreeMap<String, Deaths> {
    let text = lease
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(ANNOTATION));
    let counted: Option<DeathCounts> = text.and_then(|text| serde_json::from_str(text).ok());
    let counted = counted.filter(|counted| counted.version == version::long());
    counted.map(|counted| counted.objects).unwrap_or_default()
}

/// Puts deaths into the record of a Lease.
pub fn write(deaths: &BTreeMap<String, Deaths>, lease: &mut ObjectMeta) {
    if deaths.is_empty() {
        if let Some(annotations) = &mut lease.annotations {
            annotations.remove(ANNOTATION);
        }
        return;
    }
    let counted = DeathCounts {
        version: version::long().to_owned(),
        objects: deaths.clone(),
    };
    // Texts and numbers have a JSON form.
    let text = serde_json::to_string(&counted).unwrap_or_default();
    lease
        .annotations
        .get_or_insert_default()
        .insert(ANNOTATION.to_owned(), text);
}

/// The file of the passes under way, a line for each.
#[derive(Debug)]
pub struct PassFile {
    file: File,
    length: usize,
}

impl PassFile {
    /// Opens the file, and reads what a process before has left in it.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<PassRecord>)> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = Vec::new();
        (&file).take(FILE_BYTES).read_to_end(&mut bytes)?;
        let passes = String::from_utf8_lossy(&bytes)
            .lines()
            .filter_map(PassRecord::read)
            .collect();
        let length = bytes.len();
        Ok((Self { file, length }, passes))
    }

    /// Replaces its content by one write, so that a death in the middle leaves the old or the new passes: a shorter
    /// content is filled up with empty lines.
    pub fn write(&mut self, passes: &[PassRecord]) -> io::Result<()> {
        let lines = passes
            .iter()
            .map(|pass| format!("{} {} {}\n", pass.uid, pass.asked, pass.name));
        let text: String = lines.collect();
        let length = text.len();
        let filled = text + &"\n".repeat(self.length.saturating_sub(length));
        self.length = length;
        self.file.write_all_at(filled.as_bytes(), 0)
    }
}
